"""How the hosts of a job are set, one beside the other: the odd ones out."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import altair as alt

from fabricobs.diagnosis.findings import Finding
from fabricobs.report.charts.drawing import INK, data, layers, sentences, tips, titled
from fabricobs.report.charts.source import Row, Source

_MOST_HOSTS = 12
_MOST_FACTS = 5
_MOST_LETTERS = 28
_ROW = 26  # pixels of a row
_HOST_WIDTH, _FACT_WIDTH = 110, 170  # pixels of a host's name, and of a fact
# Rules over `host_differences` say which facts they are about; `evidence/ABOUT_facts` has these.
_ABOUT = re.compile(r"\babout = '(\w+)'")
_Values = dict[str, dict[str, set[str]]]


def settings_compared(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw the facts in which hosts differ: a row a host, those like most as one."""
    model = source.model_of(finding)
    about = None if model is None or model.rule is None else _ABOUT.search(model.rule.when)
    if about is None:
        return None
    jobs = {entity.job for entity in finding.entities}
    rows = [r for r in source.rows(f"evidence/{about[1]}_facts") if r["job"] in jobs]
    values, wrong = _values(rows)
    usual = {fact: _usual(by_host, wrong[fact]) for fact, by_host in values.items()}
    differ = [fact for fact in values if any(v != usual[fact] for v in values[fact].values())]
    decides = {_fact(row) for row in rows if row["decides"]}
    facts = sorted(differ, key=lambda fact: fact not in decides)[:_MOST_FACTS]
    hosts = sorted({host for fact in facts for host in values[fact]})
    odd = [h for h in hosts if any(values[f].get(h, usual[f]) != usual[f] for f in facts)]
    if not odd:
        return None
    odd.sort(key=lambda h: -sum(values[f].get(h, usual[f]) != usual[f] for f in facts))
    cells = [_cell(h, f, values[f].get(h), usual[f]) for h in odd[:_MOST_HOSTS] for f in facts]
    like = len(hosts) - len(odd)
    others = f"{like:,} other {'host' if like == 1 else 'hosts'}"
    if like:
        cells += [_cell(others, f, usual[f], usual[f]) for f in facts]
    order = [*odd[:_MOST_HOSTS], others]
    caption = sentences(
        "≠ and dark: differs from what most hosts have, or is wrong by itself.",
        f"{len(odd) - _MOST_HOSTS:,} more hosts differ." if len(odd) > _MOST_HOSTS else "",
        f"{len(differ) - _MOST_FACTS:,} more facts differ." if len(differ) > _MOST_FACTS else "",
    )
    return titled(_matrix(cells, order, facts), "Settings of the hosts, by fact", caption)


def _fact(row: Row) -> str:
    return f"{row['fact']} {row['part']}" if row["part"] is not None else str(row["fact"])


def _values(rows: Sequence[Row]) -> tuple[_Values, dict[str, set[str]]]:
    """Return the values of each host by fact, and the values that are wrong by themselves."""
    values: _Values = defaultdict(lambda: defaultdict(set))
    wrong: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        values[_fact(row)][row["host"]].add(str(row["value"]))
        if row["bad"]:
            wrong[_fact(row)].add(str(row["value"]))
    return values, wrong


def _usual(by_host: dict[str, set[str]], wrong: set[str]) -> set[str]:
    """Return what most hosts have that is not wrong."""
    counts = Counter(tuple(sorted(v)) for v in by_host.values() if not v & wrong)
    return set(counts.most_common(1)[0][0]) if counts else set()


def _cell(host: str, fact: str, values: set[str] | None, usual: set[str]) -> Row:
    odd = values is not None and values != usual
    text = ", ".join(sorted(values)) if values else "not told"
    short = text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"
    return {
        "host": host,
        "fact": fact,
        "value": text,
        "label": f"≠ {short}" if odd else short,
        "series": "odd" if odd else "usual",
    }


def _matrix(cells: Sequence[Row], hosts: Sequence[str], facts: Sequence[str]) -> alt.LayerChart:
    axis = alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelLimit=260)
    base = alt.Chart(data(cells)).encode(
        x=alt.X("fact:N", title=None, sort=list(facts), axis=axis),
        y=alt.Y(
            "host:N",
            title=None,
            sort=list(hosts),
            axis=alt.Axis(domain=False, ticks=False, labelLimit=220),
        ),
        tooltip=tips(host="host", fact="fact", value="value"),
    )
    shade = alt.Color(
        "series:N",
        scale=alt.Scale(domain=["usual", "none", "odd"]),
        legend=None,
    )
    drawn = layers(
        base.mark_rect().encode(
            color=shade,
            opacity=alt.condition("datum.series == 'odd'", alt.value(1), alt.value(0.15)),
        ),
        base.transform_filter("datum.series == 'usual'")
        .mark_text(color=INK)
        .encode(text="label:N"),
        base.transform_filter("datum.series == 'odd'")
        .mark_text(style="inside", fontWeight="bold")
        .encode(text="label:N"),
    )
    rows = len({cell["host"] for cell in cells})
    least = _HOST_WIDTH + _FACT_WIDTH * len(facts)
    return drawn.properties(height=_ROW * rows, usermeta={"least_width": least})
