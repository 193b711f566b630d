"""Charts of answers: all parts a question is about, the worst first, and what would have shown."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import altair as alt

from fabricobs.diagnosis.findings import Finding, Question
from fabricobs.report.charts.bars import bars, percent_sign
from fabricobs.report.charts.drawing import sentences
from fabricobs.report.charts.ranks import rank_compute
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.charts.uplinks import uplink_shares
from fabricobs.report.wording import counted, number

_MOST_ROWS = 12
_NOTHING = Finding("", (), severity="info", confidence=0.0, title="", explanation="")


def _links(source: Source, question: Question) -> alt.LayerChart | None:
    rows = source.rows("report/error_rates")
    others = [row for row in rows if row["value"] is None]
    more = ""
    if others:
        most = others[0]
        errors = f"the most errors: {most['errors']:,} at {most['part']}"
        told = errors if most["errors"] else "they count no error"
        more = f"Of {counted(len(others), 'port')} more the bits are not counted; {told}."
    unit = "errors per 10^12 bits"
    if len(others) == len(rows):  # no port tells its bits: errors, not their rate
        unit, more = "errors", "The bits received are not counted, so that no rate is known."
        rows = [{**row, "value": row["errors"]} for row in rows]
        same = tuple(power for power in question.would_show if power.unit == "errors per run")
        question = replace(question, would_show=same)
    return _ranked(rows, question, unit, "Errors of the links by port", more)


def _congested(source: Source, question: Question) -> alt.LayerChart | None:
    ports = source.rows("report/ports")
    hosts = {port["owner"] for port in ports if port["is_host"]}
    to_nics = {
        (p["owner"], p["part"])
        for p in ports
        if p["far_owner"] in hosts and p["owner"] not in hosts
    }
    rows = [
        {"part": f"{row['owner']} {row['part']}", "value": 100 * row["pause_share"]}
        for row in source.rows("evidence/paused_ports")
        if not to_nics or (row["owner"], row["part"]) in to_nics
    ]
    rows.sort(key=lambda row: (-row["value"], row["part"]))
    title = "Time for which NICs pause their switch ports"
    words = "Mean over all the data; where only frames are counted, each is taken for 84 us."
    return _ranked(rows, question, "share of the time (%)", title, words, scale=100)


def _choice(source: Source, question: Question) -> alt.LayerChart | None:
    def of(row: Row) -> str | None:
        versions = " and ".join(row["versions"] or ())
        return row["network"] and f"{row['network']}{f', NCCL {versions}' if versions else ''}"

    return _chosen(source, of, "Network and version that ranks use")


def _gpudirect(source: Source, question: Question) -> alt.LayerChart | None:
    def of(row: Row) -> str | None:
        return None if row["gdr"] is None else f"GPUDirect {'on' if row['gdr'] else 'off'}"

    return _chosen(source, of, "GPUDirect of the ranks")


def _bandwidth(source: Source, _: Question) -> alt.LayerChart | None:
    rows = source.rows("evidence/reached_bandwidth")[:_MOST_ROWS]
    if not rows:
        return None
    shown = [
        {
            "part": f"{row['op']} {row['name'] or ''}".strip(),
            "value": row["best_gbytes_per_s"],
            "text": f"{row['best_gbytes_per_s']:,.1f} of {row['low_gbytes_per_s']:,.0f} to "
            f"{row['high_gbytes_per_s']:,.0f}",
        }
        for row in rows
    ]
    words = "Beside each bar what sound sites reach of it: the slowest first."
    return bars(shown, [], "bus bandwidth (GB/s)", "Bandwidth against that of sound sites", words)


# By what a model `answers`; the question of the job's pace has the chart of its steps.
ANSWERS: Mapping[str | None, Callable[[Source, Question], alt.LayerChart | None]] = {
    "slow_rank": lambda source, _: rank_compute(source, _NOTHING),
    "sick_link": _links,
    "routing": lambda source, _: uplink_shares(source, _NOTHING),
    "choice": _choice,
    "gpudirect": _gpudirect,
    "congested": _congested,
    "bandwidth": _bandwidth,
}


def _ranked(
    rows: Sequence[Row], question: Question, unit: str, title: str, words: str, scale: float = 1.0
) -> alt.LayerChart | None:
    """Draw the parts with the largest values, and from which value on a fault would have shown."""
    known = [row for row in rows if row["value"] is not None]
    if not known:
        return None
    worst = known[0]
    ports = counted(len(known), "port")
    sign = percent_sign(unit)
    most = f"The most: {worst['part']} with {number(round(worst['value'], 2))}{sign}, of {ports}."
    # What would have shown is said where nothing was: bars beyond the line would contradict it.
    power = next(iter(question.would_show), None) if question.answer == "ok" else None
    caption = sentences(
        most if worst["value"] else f"None on {ports}.",
        f"{_MOST_ROWS} of them are shown." if len(known) > _MOST_ROWS else "",
        words,
        f"The dashed line: {power.words} would have shown." if power else "",
    )
    shown = [
        {**row, "text": f"{number(round(row['value'], 2))}{sign}"} for row in known[:_MOST_ROWS]
    ]
    limits = [] if power is None else [{"value": scale * power.effect}]
    return bars(shown, limits, unit, title, caption)


def _chosen(source: Source, of: Callable[[Row], str | None], title: str) -> alt.LayerChart | None:
    """Draw how many ranks chose what, as NCCL's logs of their processes say."""
    ranks: Counter[str] = Counter()
    hosts: dict[str, set[str]] = {}
    for row in source.rows("evidence/nccl_choice"):
        choice = of(row) or "not known"
        ranks[choice] += int(row["ranks"])
        hosts.setdefault(choice, set()).add(row["host"])
    if not ranks.keys() - {"not known"}:
        return None
    rows = [
        {
            "part": choice,
            "value": count,
            "text": f"{counted(count, 'rank')} on {counted(len(hosts[choice]), 'host')}",
        }
        for choice, count in ranks.most_common(_MOST_ROWS)
    ]
    fewest = rows[-1]
    same = "All that is told is the same." if len(rows) == 1 else ""
    odd = "" if len(rows) == 1 else f"The fewest: {fewest['part']}, {fewest['text']}."
    return bars(rows, [], "ranks", title, sentences(same, odd))
