"""When each link went down, of what several sources tell, and which links went down together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import polars as pl

from fabricobs.diagnosis.cables import Cable
from fabricobs.diagnosis.cost import Span
from fabricobs.diagnosis.grouping import in_groups

# Messages of one event come from several processes and logs, within this time.
_ONE_EVENT = timedelta(seconds=15)
# A log prints an event once, or in a few lines; ranks tell of it when each asks.
_ONE_LINE = timedelta(seconds=2)
# By so much clocks of switches without NTP may be off.
_CLOCKS_OFF = timedelta(seconds=90)
# Those that tell the second.
_EXACT = ("kernel", "NCCL", "device log")
# Two ends of which no log names the cable are one if they go down so often at the same times: as
# many times each, where they were read less often.
_FEWEST_SHARED = 3
# Links that go down at the same times, from which one event took them along: two ends of a cable
# and two cables in one cage are fewer. A judgement.
_FEWEST_TOGETHER = 4
Silence = tuple[datetime, datetime]  # alive from, known until
_NOT_SILENT: Silence = (datetime.max, datetime.min)


@dataclass(frozen=True, slots=True)
class Downs:
    """How often a cable went down: `spans`, one an event, are when; `told` by which sources.

    `guessed` says that no log names the cable: its ends went down at the same times. `placed` is
    false where one end is a host of which no log tells a rank, nor that it has none. `stays` says
    that nothing tells the link up again: its last span lasts as long as its state is known.
    """

    cable: Cable
    spans: tuple[Span, ...]
    times: int
    told: tuple[str, ...]
    guessed: bool = False
    placed: bool = True
    stays: bool = False
    perhaps: tuple[str, ...] = ()  # NICs that may be the other end, as NCCL says without times

    @property
    def of_unknown_use(self) -> bool:
        """Whether it may be a host of no job that started again, for all that its switch tells."""
        unplaced = not self.placed or self.cable.far is None
        return unplaced and self.told == ("device log",) and self.times == 1


def together(
    told_of: Sequence[tuple[Downs, list[Span]]],
) -> Iterator[tuple[Downs, list[Downs], list[Span]]]:
    """Yield each that went down, with the others that one event took along, and the steps hit."""
    for group in in_groups(told_of, lambda one, other: _as_often(one[0], other[0])):
        if len(group) < _FEWEST_TOGETHER:
            yield from ((downs, [], hit) for downs, hit in group)
            continue
        (first, hit), *others = group
        yield first, [downs for downs, _ in others], hit


def _as_often(one: Downs, other: Downs) -> bool:
    """Say whether two links went down together each time.

    Links of one device are told by its neighbours, each by its own clock.
    """
    within = _CLOCKS_OFF if _owners(one) & _owners(other) else _ONE_EVENT
    same = (one.times, len(one.spans), one.stays) == (other.times, len(other.spans), other.stays)
    return same and all(
        _meets(span, [theirs], within) for span, theirs in zip(one.spans, other.spans, strict=True)
    )


def _owners(downs: Downs) -> set[str]:
    """Return the devices at the known ends of a link."""
    return {end.owner for end in downs.cable.ends}


def counted(cable: Cable) -> Downs:
    """Join what several sources tell of one event; what counters count beyond that is more.

    What tells the time best comes first: a status is asked minutes later.
    """
    exact = cable.rows.filter(pl.col("source").is_in(_EXACT))
    logs = [
        _apart(
            [(time, time) for time in rows["ts"].sort()],
            _ONE_LINE if source != "NCCL" else _ONE_EVENT,
        )
        for (_, source), rows in exact.group_by("device", "source", maintain_order=True)
    ]
    spans: list[Span] = []
    for log in sorted(logs, key=len, reverse=True):
        earlier = list(spans)
        spans += [span for span in log if not _meets(span, earlier, _ONE_EVENT)]
    rest = cable.rows.filter(pl.col("source").is_in(_EXACT).not_())
    rest = rest.sort(pl.col("ts") - pl.col("ts_before"), "ts")
    spans_of_rest: Iterable[Span] = rest.select("ts_before", "ts").iter_rows()
    for span in spans_of_rest:
        if not _meets(span, spans, _ONE_EVENT):
            spans.append(span)
    counters = cable.rows.filter(pl.col("source") == "counter")
    by_end = counters.group_by("owner", "part").agg(pl.col("risen").sum())["risen"]
    times = max(len(spans), times_of(by_end.to_list()))
    told = tuple(sorted(cable.rows["source"].unique().to_list()))
    return Downs(cable, tuple(sorted(spans)), times, told)


def _apart(spans: Iterable[Span], least: timedelta) -> list[Span]:
    """Return the spans, in order; of those that begin nearer to each other than that the first."""
    found: list[Span] = []
    for span in spans:
        if not found or span[0] - found[-1][0] > least:
            found.append(span)
    return found


def to_its_end(downs: Downs, silent: Mapping[tuple[str, str], Silence], ended: datetime) -> Downs:
    """Return the downs, the last of them as long as it lasts, where the link stays down.

    What an end carried in the interval in which it went down does not tell that it is up again.
    Where no log tells the second, it went down in the last interval in which it carried something.
    """
    *before, (begin, end) = downs.spans
    for known in downs.cable.ends:
        alive_from, known_until = silent.get((known.owner, known.part), _NOT_SILENT)
        until = min(known_until, ended)
        if alive_from <= end and until > end:
            began = begin if begin == end else max(begin, alive_from)
            return replace(downs, spans=(*before, (began, until)), stays=True)
    return downs


def times_of(by_end: Sequence[float]) -> int:
    """Return how often ends counted a link down: twice as many count the ups too."""
    fewest, most = int(min(by_end, default=0)), int(max(by_end, default=0))
    return fewest if 2 * fewest - 1 <= most <= 2 * fewest else most


def joined(found: list[Downs]) -> list[Downs]:
    """Make one of two ends without a known cable that went down at the same times, no third."""
    alone = [downs for downs in found if downs.cable.far is None]
    often = [place for place, downs in enumerate(alone) if downs.times >= _FEWEST_SHARED]
    twins = {one: [other for other in often if _at_once(alone[one], alone[other])] for one in often}
    pairs = [
        (one, other)
        for one, own in twins.items()
        for other in own
        if one < other and own == [other] and twins[other] == [one]
    ]
    gone = {place for pair in pairs for place in pair}
    return [
        *(downs for downs in found if downs.cable.far is not None),
        *(downs for place, downs in enumerate(alone) if place not in gone),
        *(_as_one(alone[one], alone[other]) for one, other in pairs),
    ]


def _as_one(one: Downs, other: Downs) -> Downs:
    near, far = sorted((one.cable, other.cable), key=lambda cable: not cable.near.is_nic)
    cable = Cable(near.near, far.near, pl.concat([near.rows, far.rows]))
    fuller = max(one, other, key=lambda downs: len(downs.spans))
    return replace(fuller, cable=cable, told=tuple(sorted({*one.told, *other.told})), guessed=True)


def _at_once(one: Downs, other: Downs) -> bool:
    """Say whether two ends, on two devices, went down together each time.

    Several downs of one may meet one of the other: NCCL's ranks do not tell close ones apart.
    """
    within = _ONE_EVENT + _ONE_LINE
    read_apart = min(len(_apart(downs.spans, _ONE_EVENT)) for downs in (one, other))
    return (
        one.cable.near.owner != other.cable.near.owner
        and (read_apart >= _FEWEST_SHARED or one.times == other.times)
        and all(_meets(span, other.spans, within) for span in one.spans)
        and all(_meets(span, one.spans, within) for span in other.spans)
    )


def _meets(span: Span, others: Iterable[Span], within: timedelta) -> bool:
    begin, end = span
    return any(begin <= until + within and since <= end + within for since, until in others)
