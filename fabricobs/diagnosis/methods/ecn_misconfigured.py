"""ECN that says nothing: leaves pause their NICs, and nobody was told to slow down before."""

from collections.abc import Sequence

import polars as pl

from fabricobs.diagnosis.cost import cost_of
from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.finding_builder import build_finding, driver
from fabricobs.diagnosis.findings import Entity, Finding, MethodResult
from fabricobs.diagnosis.job import StepTimeTrend
from fabricobs.diagnosis.model import Model
from fabricobs.diagnosis.windows import Stretch, earliest, overlapping, spans, stretches


def find_ecn_misconfigured(
    evidence: Evidence, model: Model, trends: list[StepTimeTrend]
) -> MethodResult:
    """Return one finding for the leaves that pause and do not mark; a unit judged is a leaf."""
    pauses, marks = evidence.frame("switch_pauses"), evidence.frame("nic_marks")
    leaves = pauses["leaf"].n_unique()
    if marks["cnp_per_second"].drop_nulls().is_empty():
        return MethodResult(not_checked=leaves)
    loud = pauses.filter(pl.col("frames_per_second") >= model.limit("pause_rate"))
    loud = _without_storms(loud, evidence.frame("nic_pauses"))
    silent: dict[str, list[Stretch]] = {}
    for (leaf,), rows in loud.group_by("leaf", maintain_order=True):
        found = stretches(rows, int(model.limit("windows")))
        told = overlapping(marks.filter(pl.col("switch") == leaf), found)
        cnps = _mean(told, "cnp_per_second")
        frames = _mean(overlapping(rows, found), "frames_per_second")
        if found and cnps is not None and cnps <= model.limit("cnps_per_pause") * (frames or 0.0):
            silent[str(leaf)] = found
    absurd = _absurd(evidence, model, silent)
    if not silent or not (absurd or len(silent) >= model.limit("leaves") * leaves):
        return MethodResult(judged=leaves)
    return MethodResult((_finding(silent, absurd, loud, evidence, model, trends),), leaves)


def _without_storms(loud: pl.DataFrame, nic_pauses: pl.DataFrame) -> pl.DataFrame:
    """Leave out intervals in which a NIC pauses its leaf: there the queues are not the cause."""
    storms = [s for _, rows in nic_pauses.group_by("host", "nic") for s in stretches(rows, 1)]
    return loud if not storms else loud.filter(~pl.col("ts").is_in(overlapping(loud, storms)["ts"]))


def _absurd(evidence: Evidence, model: Model, silent: dict[str, list[Stretch]]) -> dict[str, int]:
    """Return the marking thresholds, in bytes, of the silent leaves where no queue reaches them."""
    settings = evidence.frame("ecn_settings").filter(
        pl.col("device").is_in(list(silent))
        & (pl.col("min_threshold_bytes") > model.limit("most_bytes"))
    )
    return dict(settings.select("device", "min_threshold_bytes").iter_rows())


def _finding(
    silent: dict[str, list[Stretch]],
    absurd: dict[str, int],
    loud: pl.DataFrame,
    evidence: Evidence,
    model: Model,
    trends: list[StepTimeTrend],
) -> Finding:
    found = [stretch for each in silent.values() for stretch in each]
    start, end, _ = earliest(found)
    # All leaves must have been loud: the last of them settles it.
    detected_at = max(earliest(each)[2] for each in silent.values())
    cost = cost_of(evidence, trends, spans(found))
    if cost is None or not cost.felt:
        whole = cost_of(evidence, trends, spans(found), whole_run=True)
        cost = whole if whole is not None and whole.felt else cost
    frames = _mean(loud.filter(pl.col("leaf").is_in(list(silent))), "frames_per_second") or 0.0
    cnps = _mean(overlapping(evidence.frame("nic_marks"), found), "cnp_per_second") or 0.0
    names = sorted(silent)
    words = {
        "leaves": len(names),
        "switch": names[0],
        "frames": frames,
        "cnps": cnps,
        "per_pause": cnps / max(frames, 1.0),
        "settings": _settings_sentence(absurd),
    }
    families = {"counters", "topology"}
    if absurd:
        families.add("log")
    if cost is not None and cost.felt:
        families.add("timing")
    return build_finding(
        model,
        evidence,
        words,
        entities=[Entity("switch", switch=leaf) for leaf in names],
        related=_hosts(evidence, names),
        families=families,
        drivers=[
            driver(model, "pause_rate", "pauses a NIC gets", round(frames, 1), unit="frames/s"),
            driver(model, "cnps_per_pause", "CNPs a pause", cnps / max(frames, 1.0)),
        ],
        start=start,
        end=end,
        detected_at=detected_at,
        cost=cost,
    )


def _hosts(evidence: Evidence, leaves: Sequence[str]) -> list[Entity]:
    below = evidence.frame("leaf_hosts").filter(pl.col("leaf").is_in(list(leaves)))
    return [Entity("host", host=host) for host in below["host"].unique().sort()]


def _settings_sentence(absurd: dict[str, int]) -> str:
    if not absurd:
        return ""
    leaf, threshold = sorted(absurd.items())[0]
    return f" {leaf} begins to mark at {threshold / 1e6:,.0f} MB in a queue, more than it can hold."


def _mean(rows: pl.DataFrame, column: str) -> float | None:
    value = rows[column].mean()
    return float(value) if isinstance(value, int | float) else None
