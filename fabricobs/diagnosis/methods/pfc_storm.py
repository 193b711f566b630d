"""PFC storms: a NIC that stops its switch port for much of the time and is stopped by nobody.

A pause a port sends says that its device cannot take more. Switches hand pauses on towards the
senders, so the root is the device that sends and receives none: a NIC, for it forwards nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from fabricobs.diagnosis.cost import cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Entity, Finding, Judgement
from fabricobs.diagnosis.job import JobPace
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.telling import driver, tell
from fabricobs.diagnosis.windows import Stretch, earliest, overlapping, spans, stretches

_RATED_GBPS = 400.0
_VICTIM_FRAMES = 100.0  # a second: 0.8 % of the time at 400 Gb/s
_MOST_VICTIMS = 16
_QUIET = 0.05  # of a port's rate: next to no traffic


@dataclass(frozen=True, slots=True)
class _Storm:
    """One NIC's storm: the intervals that show it, by what saw it, and when."""

    host: str
    nic: str
    switch: str | None
    port: str | None
    rows: pl.DataFrame
    found: tuple[Stretch, ...]

    @property
    def times(self) -> tuple[datetime, datetime, datetime]:
        """When it began, ended and was first sure."""
        return earliest(self.found)


def find_pfc_storms(evidence: Evidence, model: Model, paces: list[JobPace]) -> Judgement:
    """Return a finding for each NIC that storms; a unit judged is a NIC."""
    pauses = _with_shares(evidence.frame("nic_pauses"), model)
    loud = pauses.filter(
        (pl.col("share") >= pl.col("least_share"))
        & (
            pl.col("back_frames_per_second").fill_null(0)
            <= model.limit("root") * pl.col("frames_per_second")
        )
    )
    warnings = evidence.frame("storm_warnings")
    detected = evidence.frame("watchdogs").filter(
        (pl.col("detected") > 0) & pl.col("host").is_not_null()
    )
    nics = _nics(loud, warnings, detected)
    findings = []
    for host, nic in nics:
        storm = _storm(host, nic, loud, (warnings, detected), model)
        if storm is not None:
            findings.append(_finding(storm, evidence, model, paces))
    known = evidence.frame("nic_counters").row(0, named=True)["nics"]
    judged = len(evidence.frame("pause_counters"))
    return Judgement(tuple(findings), judged, max(known - judged, 0))


def _with_shares(pauses: pl.DataFrame, model: Model) -> pl.DataFrame:
    """Fill in shares of the time where only frames are counted, and what share is enough there."""
    full_us = model.limit("frame_us") * _RATED_GBPS / pl.col("speed_gbps").fill_null(_RATED_GBPS)
    frame_us = pl.coalesce(pl.col("frame_us"), full_us)
    measured = pl.col("share").is_not_null() | pl.col("frame_us").is_not_null()
    least = model.limit("pause_share")
    return pauses.with_columns(
        pl.coalesce(pl.col("share"), pl.col("frames_per_second") * frame_us / 1e6).alias("share"),
        pl.when(measured)
        .then(least)
        .otherwise(least * model.limit("certain"))
        .alias("least_share"),
    )


def _nics(*frames: pl.DataFrame) -> Iterable[tuple[str, str]]:
    both = pl.concat([frame.select("host", "nic") for frame in frames])
    return both.drop_nulls().unique().sort("host", "nic").iter_rows()


def _storm(
    host: str, nic: str, loud: pl.DataFrame, calls: Sequence[pl.DataFrame], model: Model
) -> _Storm | None:
    is_nic = (pl.col("host") == host) & (pl.col("nic") == nic)
    rows = loud.filter(is_nic)
    named = [call.filter(is_nic) for call in calls]
    least = int(model.limit("windows"))
    found = [s for _, part in rows.group_by("seen_at") for s in stretches(part, least)]
    found += [s for part in named for s in stretches(part, 1)]
    if not found:
        return None
    cable = pl.concat([part.select("switch", "port") for part in (rows, *named)]).drop_nulls()
    switch, port = cable.row(0) if len(cable) else (None, None)
    return _Storm(host, nic, switch, port, rows, tuple(found))


def _finding(storm: _Storm, evidence: Evidence, model: Model, paces: list[JobPace]) -> Finding:
    start, end, detected_at = storm.times
    cost = cost_of(evidence, paces, spans(storm.found))
    victims = _victims(storm, evidence)
    share = _number(storm.rows["share"].median())
    frames = _number(storm.rows["frames_per_second"].median())
    back = _number(storm.rows["back_frames_per_second"].median())
    told, step = _watchdog(storm, evidence)
    words = {
        "host": storm.host,
        "nic": storm.nic,
        "switch": storm.switch or "its switch",
        "port": f"{storm.switch} {storm.port}" if storm.port else "its switch port",
        "share": share,
        "since": f"{start:%H:%M:%S} UTC",
        "who": storm.rows["device"][0] if len(storm.rows) else storm.host,
        "frames": frames,
        "back": back,
        "traffic": _traffic_sentence(storm, evidence),
        "watchdog": told,
        "watchdog_step": step,
        "victims": _victims_sentence(victims),
    }
    families = {"counters"} | ({"topology"} if storm.port else set())
    if cost is not None and cost.felt:
        families.add("timing")
    entities = [Entity("nic", host=storm.host, nic=storm.nic)]
    path = []
    if storm.port:
        entities.append(Entity("port", switch=storm.switch, port=storm.port))
        path.append(Entity("switch", switch=storm.switch))
    return tell(
        model,
        evidence,
        words,
        entities=entities,
        related=(*path, *(Entity("host", host=host) for host in victims)),
        families=families,
        drivers=[
            driver(model, "pause_share", "share of the time it pauses its port", round(share, 3)),
            driver(
                model,
                "root",
                "pauses received over those sent",
                round(back / max(frames, 1.0), 4),
            ),
        ],
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
    )


def _watchdog(storm: _Storm, evidence: Evidence) -> tuple[str, str]:
    """Say what the switch's watchdog did, and what to do about it."""
    switch = storm.switch
    watched = evidence.frame("watchdogs").filter(pl.col("switch") == switch)
    if switch is None or evidence.frame("watchdogs").is_empty():
        return (
            "No watchdog of a switch is seen in these files.",
            "On the switch: show pfcwd config and show pfcwd stats; start it (pfcwd start_default) "
            "where it is off: it ends a storm after some 400 ms.",
        )
    acted = int(watched.filter(pl.col("port") == storm.port)["detected"].sum() or 0)
    if acted:
        return (
            f"The watchdog of {switch} detected {acted:,} storms there and drops what waits.",
            f"On {switch}: show pfcwd stats; what it drops is sent again: the NIC is to be mended, "
            "not the watchdog.",
        )
    return (
        f"The watchdog of {switch} detected no storm there.",
        f"On {switch}: show pfcwd config: whether {storm.port} is watched, and how long a pause "
        "must last.",
    )


def _traffic_sentence(storm: _Storm, evidence: Evidence) -> str:
    bytes_of = evidence.frame("nic_rates").filter(
        (pl.col("host") == storm.host) & (pl.col("nic") == storm.nic)
    )
    during = overlapping(bytes_of, storm.found)
    if during.is_empty() or not during["speed_gbps"][0]:
        return ""
    busy = _number(during["received_gbps"].median()) / float(during["speed_gbps"][0])
    little = " It pauses with next to no traffic." if busy < _QUIET else ""
    return f" Its port is {busy:.0%} busy meanwhile.{little}"


def _victims(storm: _Storm, evidence: Evidence) -> list[str]:
    """Return the other hosts that are paused while the storm lasts."""
    rows = evidence.frame("paused_hosts").filter(
        (pl.col("frames_per_second") >= _VICTIM_FRAMES) & (pl.col("host") != storm.host)
    )
    during = overlapping(rows, storm.found)
    return during["host"].unique().sort().to_list()


def _victims_sentence(victims: list[str]) -> str:
    if not victims:
        return "No other host is seen paused."
    shown = ", ".join(victims[:_MOST_VICTIMS])
    more = f" and {len(victims) - _MOST_VICTIMS} more" if len(victims) > _MOST_VICTIMS else ""
    return f"Paused with it: {shown}{more}."


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
