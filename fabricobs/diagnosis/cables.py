"""Cables in evidence: the two ends of each, what was counted at them, and when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from fabricobs.diagnosis.cost import Span
from fabricobs.diagnosis.findings import Entity

# Ports are asked one after another, and a host's clock may be off by so much.
CLOCK_SLACK = timedelta(seconds=2)
NO_END = "an end no log names"  # as the evidence calls it


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable: a NIC of a host, or a port of a switch."""

    owner: str
    part: str
    is_nic: bool

    @property
    def entity(self) -> Entity:
        """The entity that is this end."""
        if self.is_nic:
            return Entity("nic", host=self.owner, nic=self.part)
        return Entity("port", switch=self.owner, port=self.part)

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"{self.owner} {self.part}"


@dataclass(frozen=True, slots=True)
class Cable:
    """What evidence tells of one cable; `far` is None where no log tells the other end.

    `near` is an end at which something was counted; `rows` are of both ends.
    """

    near: End
    far: End | None
    rows: pl.DataFrame

    @property
    def ends(self) -> tuple[End, ...]:
        """The known ends, `near` first."""
        return (self.near,) if self.far is None else (self.near, self.far)

    def at(self, end: End) -> pl.DataFrame:
        """Return the rows of one end."""
        return self.rows.filter(pl.col("owner") == end.owner, pl.col("part") == end.part)

    def turned(self) -> "Cable":
        """Return the same cable seen from its other end."""
        return self if self.far is None else Cable(self.far, self.near, self.rows)


def cables_in(rows: pl.DataFrame) -> Iterator[Cable]:
    """Yield each cable of which rows tell, with the rows of both its ends.

    Rows have the columns owner, part, is_nic, and far_owner, far_part, far_is_nic.
    """
    if rows.is_empty():
        return
    one = pl.concat_str("owner", "part", separator="\n")
    other = pl.concat_str("far_owner", "far_part", separator="\n")
    cable = pl.when(other < one).then(other + "\n" + one).otherwise(one + "\n" + other)
    keyed = rows.with_columns(pl.coalesce(cable, one).alias("cable"))
    for of_cable in keyed.partition_by("cable", maintain_order=True):
        first = of_cable.row(0, named=True)
        far = None
        if first["far_owner"] is not None:
            far = End(first["far_owner"], first["far_part"], first["far_is_nic"])
        yield Cable(End(first["owner"], first["part"], first["is_nic"]), far, of_cable)


def spans_of(rows: pl.DataFrame) -> list[Span]:
    """Return the time that the intervals `ts_before` to `ts` of rows cover, joined and in order."""
    spans: list[Span] = []
    for begin, end in rows.select("ts_before", "ts").sort("ts_before").iter_rows():
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans


def during(spans: Sequence[Span]) -> pl.Expr:
    """Say of rows whether their interval overlaps one of the spans."""
    overlaps = [
        (pl.col("ts") > begin - CLOCK_SLACK) & (pl.col("ts_before") < end + CLOCK_SLACK)
        for begin, end in spans
    ]
    return pl.any_horizontal(*overlaps, pl.lit(False))


def entities_of(ends: Sequence[End]) -> tuple[Entity, ...]:
    """Return the entities of ends, each once."""
    return tuple(dict.fromkeys(end.entity for end in ends))


def ends_in(rows: pl.DataFrame, most: int) -> tuple[End, ...]:
    """Return the ends of which rows tell, those that counted most first."""
    if rows.is_empty():
        return ()
    totals = rows.group_by("owner", "part", "is_nic").agg(pl.col("risen").sum())
    ordered = totals.sort("risen", "owner", "part", descending=[True, False, False]).head(most)
    return tuple(End(*row[:3]) for row in ordered.iter_rows())


def moment(time: datetime | Any) -> str:
    """Return a time as findings print it."""
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
