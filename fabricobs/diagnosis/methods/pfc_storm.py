"""PFC storms: a NIC that stops its switch port for much of the time and is stopped by nobody.

A pause a port sends says that its device cannot take more. Switches hand pauses on towards the
senders, so the root is the device that sends and receives none: a NIC, for it forwards nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from fabricobs.diagnosis.cables import CLOCK_SLACK
from fabricobs.diagnosis.cost import cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult, Power
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.windows import (
    Stretch,
    earliest,
    interval_of,
    overlapping,
    spans,
    stretches,
)

_RATED_GBPS = 400.0
_VICTIM_FRAMES = 100.0  # a second: 0.8 % of the time at 400 Gb/s
_MOST_VICTIMS = 16
_ABOUT = 2  # times as often, up to which two links are paused alike
_FEWEST_PEERS = 3  # to say that a port pauses more than others: as many as a quartile needs
_QUIET = 0.05  # of a port's rate: next to no traffic


@dataclass(frozen=True, slots=True)
class _Storm:
    """One NIC's storm: the intervals that show it, by what saw it, all with pauses, and when.

    `host` and `nic` are None where no log tells what the switch port is cabled to.
    """

    host: str | None
    nic: str | None
    switch: str | None
    port: str | None
    rows: pl.DataFrame
    all_rows: pl.DataFrame
    found: tuple[Stretch, ...]

    @property
    def device(self) -> str:
        """What a person calls the NIC."""
        return f"{self.nic} of {self.host}" if self.nic else "A device that no log names"

    @property
    def times(self) -> tuple[datetime, datetime, datetime]:
        """When it began, ended and was first sure."""
        return earliest(self.found)


def find_pfc_storms(evidence: Evidence, model: Model, trends: list[StepTimeTrend]) -> MethodResult:
    """Return a finding for each NIC that storms; a unit judged is a NIC."""
    pauses = _with_shares(evidence.frame("nic_pauses"), model)
    # Pauses that come in and do not go out; others are handed on, or are what a storm spreads to.
    roots = pauses.filter(
        pl.col("back_frames_per_second").fill_null(0)
        <= model.limit("root") * pl.col("frames_per_second")
    )
    loud = roots.filter(pl.col("share") >= model.limit("pause_share"))
    loud = _without_uplinks(_alone(loud, overlapping(roots, stretches(loud, 1)), model))
    warnings = evidence.frame("storm_warnings")
    detected = evidence.frame("watchdogs").filter(
        (pl.col("detected") > 0) & pl.col("host").is_not_null()
    )
    findings = []
    for end in _ends(loud, warnings, detected):
        storm = _storm(end, roots, loud, (warnings, detected), model)
        if storm is not None:
            findings.append(_finding(storm, evidence, model, trends))
    known = evidence.frame("nic_counters").row(0, named=True)["nics"]
    judged = len(evidence.frame("pause_counters"))
    return MethodResult(tuple(findings), judged, max(known - judged, 0), _power(evidence, model))


def _power(evidence: Evidence, model: Model) -> Power | None:
    """Return the shortest storm that two intervals show, or one that is long enough."""
    read = evidence.frame("counted_time").filter(pl.col("counts") == "pauses")["usual_seconds"]
    if read.is_empty():
        return None
    enough = model.limit("seconds")
    seconds = read[0] if read[0] >= enough else model.limit("windows") * read[0]
    share = model.limit("pause_share")
    return Power(share, "of the time", "a NIC that pauses its port for {}", seconds)


def _with_shares(pauses: pl.DataFrame, model: Model) -> pl.DataFrame:
    """Fill in shares of the time where only frames are counted: upper `estimate`s."""
    full_us = model.limit("frame_us") * _RATED_GBPS / pl.col("speed_gbps").fill_null(_RATED_GBPS)
    frame_us = pl.coalesce(pl.col("frame_us"), full_us)
    measured = pl.col("share").is_not_null() | pl.col("frame_us").is_not_null()
    return pauses.with_columns(
        # Frames that come sooner than they pause for refresh a pause: all of the time.
        pl.coalesce(pl.col("share"), pl.col("frames_per_second") * frame_us / 1e6)
        .clip(upper_bound=1.0)
        .alias("share"),
        (~measured).alias("estimate"),
        # A NIC, or the port to one that no log names.
        pl.coalesce(
            pl.concat_str("host", "nic", separator="\n"),
            pl.concat_str("switch", "port", separator="\n"),
        ).alias("end"),
    )


def _alone(loud: pl.DataFrame, roots: pl.DataFrame, model: Model) -> pl.DataFrame:
    """Drop estimated shares of ends that pause no more than their peers, or have too few peers.

    Peers are ends that pause and are not paused either, at the same time.
    """
    usual = roots.group_by("seen_at", "end", "counted").agg(pl.col("frames_per_second").median())

    def is_alone(seen_at: str, end: str, frames: float) -> bool:
        same = usual.filter(pl.col("seen_at") == seen_at)
        others = same.filter(pl.col("end") != end)["frames_per_second"].to_list()
        # Ports without a row pause next to never.
        silent = [0.0] * (int(same["counted"][0]) - len(same))
        peers = [*others, *silent]
        if len(peers) < _FEWEST_PEERS:
            return False
        return frames >= model.limit("alone") * float(np.quantile(peers, 0.75))

    keys = loud.select("seen_at", "end", "frames_per_second").iter_rows()
    kept = pl.Series([is_alone(*key) for key in keys], dtype=pl.Boolean)
    return loud.filter(~pl.col("estimate") | kept)


def _without_uplinks(loud: pl.DataFrame) -> pl.DataFrame:
    """Drop ports without a known cable of whose switch another is paused about as often.

    A switch that no log shows pauses all links to it; a NIC that storms has one.
    """
    usual = (
        loud.filter(pl.col("nic").is_null())
        .group_by("switch", "port")
        .agg(pl.col("frames_per_second").median())
    )
    pairs = usual.join(usual, on="switch", suffix="_other").filter(
        pl.col("port") != pl.col("port_other"),
        (pl.col("frames_per_second") / pl.col("frames_per_second_other")).is_between(
            1 / _ABOUT, _ABOUT
        ),
    )
    return loud.join(pairs, on=["switch", "port"], how="anti")


def _ends(*frames: pl.DataFrame) -> Iterable[tuple[str | None, str | None, str, str]]:
    """Yield host and NIC of what storms; switch and port only where those are unknown."""
    names = ("host", "nic", "switch", "port")
    both = pl.concat([frame.select(names) for frame in frames]).filter(
        pl.col("nic").is_not_null() | pl.col("port").is_not_null()
    )
    no_cable = [
        pl.when(pl.col("nic").is_null()).then(pl.col(name)).alias(name) for name in names[2:]
    ]
    return both.with_columns(no_cable).unique().sort(names).iter_rows()


def _storm(
    end: tuple[str | None, str | None, str, str],
    roots: pl.DataFrame,
    loud: pl.DataFrame,
    calls: Sequence[pl.DataFrame],
    model: Model,
) -> _Storm | None:
    host, nic, *of_switch = end
    is_end = pl.col("host").eq_missing(pl.lit(host)) & pl.col("nic").eq_missing(pl.lit(nic))
    if nic is None:
        is_end &= (pl.col("switch") == of_switch[0]) & (pl.col("port") == of_switch[1])
    rows = loud.filter(is_end)
    named = [call.filter(is_end) for call in calls]
    found = [s for _, part in rows.group_by("seen_at") for s in _lasting(part, model)]
    found += [s for part in named for s in stretches(part, 1)]
    if not found:
        return None
    cable = pl.concat([part.select("switch", "port") for part in (rows, *named)]).drop_nulls()
    switch, port = cable.row(0) if len(cable) else (None, None)
    return _Storm(host, nic, switch, port, rows, roots.filter(is_end), tuple(found))


def _lasting(rows: pl.DataFrame, model: Model) -> list[Stretch]:
    """Return stretches of several intervals, or of one as long as several usually are."""
    least = int(model.limit("windows"))
    enough = timedelta(seconds=model.limit("seconds"))
    single = [s for s in stretches(rows, 1) if s.windows < least and s.end - s.begin >= enough]
    return [*stretches(rows, least), *single]


def _finding(
    storm: _Storm, evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> Finding:
    start, end, detected_at = storm.times
    cost = cost_of(evidence, trends, spans(storm.found), read_every=interval_of(storm.found))
    victims = _victims(storm, evidence)
    share = _number(storm.rows["share"].median())
    frames = _number(storm.rows["frames_per_second"].median())
    back = _number(storm.rows["back_frames_per_second"].median())
    counted = len(storm.rows) > 0
    stopped = _stopped_with_traffic(storm, trends)
    words = {
        "host": storm.host or "the host at that port",
        "nic": storm.nic or "its NIC",
        "device": storm.device,
        "switch": storm.switch or "its switch",
        "port": f"{storm.switch} {storm.port}" if storm.port else "its switch port",
        "much": _much(storm),
        "since": f"{start:%H:%M:%S} UTC",
        "counted": _counted(storm, frames, back),
        "traffic": _traffic_sentence(storm, evidence),
        "stopped": stopped,
        "told": "" if stopped else None,
        "untold": None if stopped else "",
        "nic_port": storm.port,
        **_watchdog(storm, evidence),
        "victims": _victims_sentence(victims),
    }
    families = {"counters" if counted else "log"} | ({"topology"} if storm.port else set())
    if cost is not None and cost.felt:
        families.add("timing")
    entities = [Entity("nic", host=storm.host, nic=storm.nic)] if storm.nic else []
    path = []
    if storm.port:
        entities.append(Entity("port", switch=storm.switch, port=storm.port))
        path.append(Entity("switch", switch=storm.switch))
    return build_finding(
        model,
        evidence,
        words,
        entities=entities,
        related=(*path, *(Entity("host", host=host) for host in victims)),
        families=families,
        drivers=[
            driver(
                model,
                "pause_share",
                "share of the time it pauses its port while it storms",
                round(share, 3),
            ),
            driver(
                model,
                "root",
                "pauses received over those sent (0: all pauses begin there)",
                round(back / max(frames, 1.0), 4),
            ),
        ]
        if counted
        else [],
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
    )


def _mean_share(storm: _Storm) -> float:
    """Return the share of the time from its begin to its end that a storm stops its port.

    NIC and switch port count the same pauses: the one that saw more of them tells.
    """
    start, end, _ = storm.times
    rows = storm.all_rows.filter(pl.col("ts") > start, pl.col("ts_before") < end)
    stopped = rows.group_by("seen_at").agg((pl.col("share") * pl.col("seconds")).sum())
    return min(_number(stopped["share"].max()) / (end - start).total_seconds(), 1.0)


def _much(storm: _Storm) -> str:
    """Say how long a storm stopped its port; of one that no counter saw, how often it was seen."""
    if storm.rows.is_empty():
        times = len(storm.found)
        return "in a storm" if times == 1 else f"in {times:,} storms"
    about = "up to " if storm.rows["estimate"].all() else ""
    return f"for {about}{_mean_share(storm):.0%} of the time"


def _counted(storm: _Storm, frames: float, back: float) -> str:
    if storm.rows.is_empty():
        return "Logs tell of it; no counter shows a pause as long."
    estimate = " Only frames were counted: the share is an upper estimate."
    joined = (
        f" No log tells its cable: {storm.switch} {storm.port} is taken for the other end, for "
        "both counted as many pauses at that time, and no other NIC or port did."
    )
    return (
        f"{storm.rows['device'][0]} counted {frames:,.0f} pause frames a second in that direction "
        f"and {back:,.0f} in the other: the pauses began there."
        f"{estimate if storm.rows['estimate'].all() else ''}"
        f"{joined if storm.rows['is_joined'].any() else ''}"
    )


def _watchdog(storm: _Storm, evidence: Evidence) -> dict[str, str | None]:
    """Return the switch whose watchdog detected storms there, or none, and what is said of it."""
    switch = storm.switch
    watched = evidence.frame("watchdogs").filter(pl.col("switch").eq_missing(pl.lit(switch)))
    if switch is None or evidence.frame("watchdogs").is_empty():
        return {"watchdog": "No watchdog of a switch was seen in these files."}
    acted = int(watched.filter(pl.col("port") == storm.port)["detected"].sum() or 0)
    if acted:
        told = f"The watchdog of {switch} detected {acted:,} storms there and dropped what waited."
        return {"watchdog": told, "acted": switch}
    return {
        "watchdog": f"The watchdog of {switch} detected no storm there.",
        "watched": switch,
    }


def _traffic_sentence(storm: _Storm, evidence: Evidence) -> str:
    bytes_of = evidence.frame("nic_rates").filter(
        pl.col("host").eq_missing(pl.lit(storm.host)), pl.col("nic").eq_missing(pl.lit(storm.nic))
    )
    during = overlapping(bytes_of, storm.found)
    if during.is_empty() or not during["speed_gbps"][0]:
        return ""
    busy = _number(during["received_gbps"].median()) / float(during["speed_gbps"][0])
    little = " It sent pauses with next to no traffic." if busy < _QUIET else ""
    return f" The NIC received {busy:.0%} of its line rate meanwhile.{little}"


def _stopped_with_traffic(storm: _Storm, trends: Sequence[StepTimeTrend]) -> str:
    """Say that the pauses ended with the job, where counters were read after: what no storm needs.

    A storm pauses whether anything arrives or not.
    """
    job_end = max((t.last_time for t in trends if t.last_time is not None), default=None)
    if job_end is None or storm.rows.is_empty():
        return ""
    for _, rows in storm.all_rows.group_by("seen_at"):
        last = rows.sort("ts").row(-1, named=True)
        interval = last["ts"] - last["ts_before"]
        with_it = last["ts_before"] - CLOCK_SLACK <= job_end <= last["ts"] + interval + CLOCK_SLACK
        if not with_it or last["read_until"] < last["ts"] + interval / 2:
            return ""
    return (
        " The pauses ended with the job's last step, while counters were read on: a receiver that "
        "is slow pauses with the traffic, a storm needs none."
    )


def _victims(storm: _Storm, evidence: Evidence) -> list[str]:
    """Return the other hosts that are paused while the storm lasts."""
    rows = evidence.frame("paused_hosts").filter(
        (pl.col("frames_per_second") >= _VICTIM_FRAMES)
        & pl.col("host").ne_missing(pl.lit(storm.host))
    )
    during = overlapping(rows, storm.found)
    return during["host"].unique().sort().to_list()


def _victims_sentence(victims: list[str]) -> str:
    if not victims:
        return "No other host was seen paused."
    shown = ", ".join(victims[:_MOST_VICTIMS])
    more = f" and {len(victims) - _MOST_VICTIMS} more" if len(victims) > _MOST_VICTIMS else ""
    return f"Paused with it: {shown}{more}."


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
