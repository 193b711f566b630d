"""A comparison of two sides as text and as JSON."""

import json
from dataclasses import asdict
from typing import Any

from fabricobs import __version__
from fabricobs.diagnosis.change import EXCLUDED_SHIFT, Change, Drift
from fabricobs.diagnosis.comparison import (
    COLLECTIVES,
    COUNTERS,
    ERRORS,
    HOSTS,
    RANKS,
    STEPS,
    UPLINKS,
    Comparison,
    Setting,
    is_change,
)
from fabricobs.diagnosis.sides import Side
from fabricobs.printing import escaped
from fabricobs.report.layout import aligned, few, labelled, wrapped
from fabricobs.report.wording import iso, moment_words, number

COMPARISON_VERSION = 1
# Of these groups every line is shown: they are few, and "no change" in them is news too.
_WHOLE = (STEPS, COLLECTIVES, COUNTERS)
_MOST_SHOWN = 8
_TITLES = {
    STEPS: "Steps",
    COLLECTIVES: "Collectives between hosts",
    COUNTERS: "Pauses and congestion",
    UPLINKS: "Uplinks",
    HOSTS: "Hosts, computation against their peers",
    RANKS: "Ranks, computation against their peers",
    ERRORS: "Errors, drops and retransmissions, share of the intervals with a rise",
}

_LEGEND = (
    "effect is Cliff's delta, -1 to 1 (of errors the difference of the shares); q is the false "
    f'discovery rate over all numbers. "no change" means that {EXCLUDED_SHIFT:.0%} can be excluded.'
)


def comparison_text(compared: Comparison) -> str:
    """Return a comparison for a terminal: what changed, then group by group the numbers."""
    blocks = [
        wrapped(sentence(compared)),
        "\n".join(_side(name, s) for name, s in (("A", compared.a), ("B", compared.b))),
    ]
    blocks.extend(_group(compared, group) for group in _TITLES if compared.of_group(group))
    if compared.settings:
        blocks.append("\n".join(["NCCL and where it ran", *map(_setting, compared.settings)]))
    elif compared.a.job != compared.b.job:
        blocks.append("NCCL and where it ran\n  no difference seen in what its logs tell")
    if compared.drift:
        blocks.append("\n".join(["Fabric and hosts", *map(_drift, compared.drift)]))
    if compared.missing:
        blocks.append(_missing(compared))
    if compared.changes:
        blocks.append(wrapped(_LEGEND))
    return "\n\n".join(blocks)


def sentence(compared: Comparison) -> str:
    """Return what changed in one sentence: the step time first, then how many other numbers."""
    changed = sum(map(is_change, compared.changes))
    same = sum(change.answer == "no change" for change in compared.changes)
    unsure = len(compared.changes) - changed - same
    counts = f"Of {len(compared.changes):,} numbers {changed:,} changed, {same:,} did not"
    counts += f", {unsure:,} cannot be told." if unsure else "."
    step = compared.step_time
    if not compared.changes and compared.drift:
        return f"Of the fabric and the hosts {len(compared.drift):,} things are not as they were."
    if not compared.changes and compared.settings:
        return (
            f"No number was measured on both sides; settings that differ: {len(compared.settings)}."
        )
    if not compared.changes:
        return "Cannot tell: the store holds nothing of either side that could be compared."
    return f"{_step_words(step)} {counts}"


def _step_words(step: Change | None) -> str:
    if step is None:
        return "No step times on either side."
    numbers = f"({number(step.a, step.unit)} -> {number(step.b, step.unit)})"
    if step.answer == "cannot tell":
        return f"Whether a step takes longer cannot be told: {step.reason}."
    if step.answer == "no change":
        return f"A step takes as long in B as in A {numbers}."
    way = "longer" if step.answer == "higher" else "shorter"
    return f"A step takes {abs(step.shift or 0):.1%} {way} in B {numbers}."


def _side(name: str, side: Side) -> str:
    begun = moment_words(side.begin, side.first_step)
    ended = moment_words(side.end, side.last_step)
    return f"{name}  {escaped(side.text)}: {side.steps:,} steps\n" + "\n".join(
        (labelled("from", begun), labelled("to", ended))
    )


def _group(compared: Comparison, group: str) -> str:
    if group in _WHOLE:
        shown, left = [c for c in compared.changes if c.group == group], []
    else:
        own = compared.of_group(group)
        shown = [change for change in own if is_change(change)][:_MOST_SHOWN]
        left = own[len(shown) :]
    lines = [aligned([_HEADER, *map(_row, shown)])] if shown else []
    lines += [f"    {_rest(left)}"] if left else []
    return "\n".join([_TITLES[group], *lines])


_HEADER = ("", "A", "B", "change", "effect", "q", "answer")


def _row(change: Change) -> tuple[str, ...]:
    because = f": {change.reason}" if change.reason else ""
    return (
        f"  {escaped(change.name)}",
        _value(change, change.a),
        _value(change, change.b),
        "-" if change.shift is None else _shift(change.shift),
        "-" if change.effect is None else f"{change.effect:+.2f}",
        "-" if change.q is None else f"{change.q:.1e}",
        change.answer + because,
    )


def _value(change: Change, value: float | None) -> str:
    if change.unit == "share" or change.what == "share":
        return "-" if value is None else f"{value:.2%}"
    return number(value, change.unit)


def _shift(shift: float) -> str:
    return f"x{1 + shift:,.1f}" if shift >= 1 else f"{shift:+.1%}"


def _rest(rest: list[Change]) -> str:
    counts: dict[str, int] = {}
    for change in rest:
        counts[change.answer] = counts.get(change.answer, 0) + 1
    return "others: " + ", ".join(f"{count:,} {answer}" for answer, count in counts.items())


def _setting(setting: Setting) -> str:
    a, b = (few([escaped(v) for v in side]) for side in (setting.only_a, setting.only_b))
    return labelled(setting.name, f" only A: {a or 'nothing'}; only B: {b or 'nothing'}")


def _drift(drift: Drift) -> str:
    return labelled(drift.kind, f" {escaped(drift.words)}")


def _missing(compared: Comparison) -> str:
    return wrapped("; ".join(compared.missing), "Not compared, for lack of data: ", hang=2)


def comparison_json(compared: Comparison) -> str:
    """Return the comparison as JSON: the same comparison gives the same bytes."""
    document = {
        "schema_version": COMPARISON_VERSION,
        "tool": "fabricobs",
        "tool_version": __version__,
        "sentence": sentence(compared),
        "a": _side_document(compared.a),
        "b": _side_document(compared.b),
        "changes": [asdict(change) for change in compared.changes],
        "settings": [asdict(setting) for setting in compared.settings],
        "missing": list(compared.missing),
        "drift": [asdict(drift) for drift in compared.drift],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _side_document(side: Side) -> dict[str, Any]:
    return asdict(side) | {"begin": iso(side.begin), "end": iso(side.end)}
