"""What ports count over time: errors of both ends of a link, pauses and marks of full queues."""

from collections.abc import Sequence

import altair as alt

from fabricobs.diagnosis.findings import Entity, Finding
from fabricobs.report.charts.drawing import sentences, titled
from fabricobs.report.charts.lanes import Lane, draw_lanes
from fabricobs.report.charts.source import Row, Source
from fabricobs.report.wording import iso

_MOST_BINS = 120
_MOST_LANES = 12
_MOST_PARTS = 4
_MOST_OF_A_PART = 3
_MOST_RELATED = 2
_TRAFFIC = {"rx_bytes": "received", "tx_bytes": "sent"}
_QUEUES = {
    "pfc_tx_frames": "pauses sent",
    "pfc_rx_frames": "pauses received",
    "ecn_marked_packets": "packets marked (ECN)",
    "np_ecn_marked_packets": "marked packets received",
    "np_cnp_sent": "congestion notifications sent",
    "drop_packets": "drops",
    "tx_discards": "drops before sending",
    "tx_bytes": "sent",
    "rx_bytes": "received",
}
_WORDS = {
    "rx": "receive",
    "tx": "send",
    "seq": "sequence",
    "ack": "acknowledgement",
    "err": "errors",
}
_DROPS = ("drop_packets", "tx_discards", "rx_discards")


def link_ends(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw what both ends of the accused link counted: errors, and the traffic beside them."""
    culprits = _parts(finding.entities)
    counted = [row for row in _signals(source, finding, ends=True) if row["peak"] > 0]
    counted.sort(key=lambda row: -_during(row, finding))
    errors = [row for row in counted if row["signal"] not in {*_TRAFFIC, *_QUEUES}]
    errors += [row for row in counted if row["signal"] in _DROPS]
    traffic = [row for row in counted if row["signal"] in _TRAFFIC]
    lanes = _lanes(_few_each(errors, traffic, culprits), culprits)
    if not lanes:
        return None
    told = {lane.part for lane in lanes}
    named = " and ".join(sorted(told & culprits) or sorted(told)[:2])
    caption = _caption(lanes, "No error is counted at either end." if not errors else "")
    return titled(draw_lanes(lanes, finding), f"Counters of {named} (rise per second)", caption)


def queue_signals(source: Source, finding: Finding) -> alt.LayerChart | None:
    """Draw pauses, marks, drops and traffic of the accused ports or switches."""
    culprits = _parts(finding.entities)
    rows = [row for row in _signals(source, finding, ends=False) if row["signal"] in _QUEUES]
    order = list(_QUEUES)
    most: dict[str, float] = {}
    for row in rows:
        if row["signal"] not in _TRAFFIC:
            most[row["part"]] = most.get(row["part"], 0.0) + _during(row, finding)
    rows.sort(key=lambda row: (-most.get(row["part"], 0.0), order.index(row["signal"])))
    # That a switch marks nothing is what some findings are about; that it drops nothing is not.
    told = [row for row in rows if row["peak"] > 0 or row["signal"] not in _DROPS]
    queues = [row for row in told if row["signal"] not in _TRAFFIC]
    traffic = [row for row in told if row["signal"] in _TRAFFIC]
    lanes = _lanes(_few_each(queues, traffic, culprits), culprits)
    if not any(row["value"] > 0 for lane in lanes for row in lane.rows):
        return None
    named = list(dict.fromkeys(lane.part for lane in lanes if lane.culprit))
    what = f"{', '.join(named)} " if named else ""
    more = len(culprits) - len(named)
    caption = _caption(
        lanes, f"{more:,} more culprits are not drawn." if named and more > 0 else ""
    )
    title = (
        f"Pauses, marks and traffic of {what}(per second)"
        if named
        else ("Pauses, marks and traffic (per second)")
    )
    return titled(draw_lanes(lanes, finding), title, caption)


def _signals(source: Source, finding: Finding, *, ends: bool) -> list[Row]:
    """Return the counters of the finding's parts: the culprits', then those of a few others."""
    entities = [*finding.entities, *finding.related[:_MOST_RELATED]]
    switches = sorted({e.switch for e in entities if e.switch and not e.port})
    return source.rows(
        "report/port_signals",
        parts=sorted(_parts(entities) - set(switches)),
        switches=switches,
        ends=ends,
        bins=_MOST_BINS,
    )


def _during(row: Row, finding: Finding) -> float:
    """Return how much a counter rose on average while a finding lasts: what matters of its port."""
    first, last = iso(finding.start) or "", iso(finding.end) or "~"
    rates = [
        rate
        for begin, end, rate in zip(row["begins"], row["ends"], row["rates"], strict=True)
        if end >= first and begin <= last
    ]
    return sum(rates) / len(rates) if rates else 0.0


def _parts(entities: Sequence[Entity]) -> set[str]:
    """Return the names of ports, NICs and switches as the store's parts have them."""
    parts = set()
    for entity in entities:
        owner, part = entity.host or entity.switch, entity.nic or entity.port
        if owner and (part or entity.switch):
            parts.add(f"{owner} {part}" if part else owner)
    return parts


def _few_each(counters: Sequence[Row], traffic: Sequence[Row], culprits: set[str]) -> list[Row]:
    """Return the first counters of each part and its traffic, the culprits' first."""
    parts = list(dict.fromkeys(row["part"] for row in (*counters, *traffic)))
    parts.sort(key=lambda part: part not in culprits)
    rows = []
    for part in parts[:_MOST_PARTS]:
        rows += [row for row in counters if row["part"] == part][:_MOST_OF_A_PART]
        rows += [row for row in traffic if row["part"] == part][:1]
    return rows


def _lanes(rows: Sequence[Row], culprits: set[str]) -> list[Lane]:
    lanes = []
    for row in rows[:_MOST_LANES]:
        name = _QUEUES.get(row["signal"]) or _words(row["signal"])
        traffic = row["signal"] in _TRAFFIC
        unit = "Gb/s" if traffic else "/s"
        moments = zip(row["begins"], row["ends"], row["rates"], strict=True)
        bars = [{"ts_before": b, "ts": e, "value": round(v, 6)} for b, e, v in moments]
        lanes.append(Lane(row["part"], name, unit, row["part"] in culprits, traffic, bars))
    return lanes


def _words(counter: str) -> str:
    """Return what a counter is called by a person: `rx_errors` are receive errors."""
    return " ".join(_WORDS.get(word, word) for word in counter.split("_"))


def _caption(lanes: Sequence[Lane], more: str = "") -> str:
    return sentences(
        "Each lane has its own scale, from 0 to its peak.",
        "Traffic is grey." if any(lane.traffic for lane in lanes) else "",
        more,
    )
