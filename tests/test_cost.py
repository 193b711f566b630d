"""What a fault of the whole run costs: against collectives without it, else against line rate."""

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from fabricobs.diagnosis.attribution import fold_symptoms
from fabricobs.diagnosis.cost import Cost, cost_of, over_all
from fabricobs.diagnosis.findings import Entity, Finding, Segment, Severity
from fabricobs.diagnosis.model import load_models

START = datetime(2026, 3, 2, 9)
STEPS = 60
TRANSFER, STEP = 600.0, 2000.0


def priced(rows: pl.DataFrame, hosts: set[str], transfer: float = TRANSFER) -> Cost | None:
    """What the fault of some hosts cost a job of which these are the collectives."""
    moments = [START + timedelta(seconds=2 * step) for step in range(STEPS)]
    steps = pl.DataFrame(
        {
            "job": ["run"] * STEPS, "step": range(STEPS), "ts": moments,
            "step_time_ms": [STEP] * STEPS, "transfer_ms": [transfer] * STEPS,
            "by_collectives": [False] * STEPS,
            "compute_ms": [None] * STEPS,
        }
    )  # fmt: skip
    frames = {"job_steps": steps, "bus_bandwidth": rows}
    evidence: Any = SimpleNamespace(frame=frames.__getitem__)
    trend: Any = SimpleNamespace(faster=None, job="run", segments=())
    return cost_of(evidence, [trend], [], whole_run=True, hosts=hosts)


def with_step_times(moments: list[datetime], times: npt.NDArray[np.float64]) -> Any:
    """Evidence of a job of which logs tell how long its steps took, and no more."""
    number = len(times)
    steps = pl.DataFrame(
        {
            "job": ["run"] * number, "step": range(number), "ts": moments, "step_time_ms": times,
            "transfer_ms": [None] * number, "by_collectives": [False] * number,
            "compute_ms": [None] * number,
        }
    )  # fmt: skip
    return SimpleNamespace(frame={"job_steps": steps}.__getitem__)


def collectives(
    groups: list[list[str] | None], rates: list[float], usual: float, seed: int
) -> pl.DataFrame:
    """Ten calls of each group of hosts, at its rate with some noise."""
    chance = np.random.default_rng(seed)
    rows = [
        {"job": "run", "hosts": hosts, "gbytes_per_second": rate * noise,
         "share_of_usual": rate * noise / usual, "ts": START + timedelta(minutes=1)}
        for hosts, rate in zip(groups, rates, strict=True)
        for noise in chance.lognormal(0, 0.03, 10)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"hosts": pl.List(pl.String)})


@pytest.mark.parametrize("seed", range(12))
def test_groups_without_the_host_tell_what_it_costs(seed: int) -> None:
    """Stages of a pipeline, of which one holds the host: all may be slow for another reason."""
    chance = np.random.default_rng(seed)
    stages, size = chance.integers(2, 6), chance.integers(2, 10)
    groups: list[list[str] | None] = [
        [f"n{stage * size + place}" for place in range(size)] for stage in range(stages)
    ]
    culprit = f"n{chance.integers(stages * size)}"
    sound = float(chance.uniform(5, 40))
    left = float(chance.choice([1.0, 0.7, 0.4]))
    rates = [sound * (left if culprit in (group or ()) else 1.0) for group in groups]
    cost = priced(collectives(groups, rates, 40.0, seed), {culprit})
    assert cost is not None and cost.against == "collectives without it"
    assert cost.felt is (left < 0.9)
    assert cost.loss_share == pytest.approx((1 - left) * TRANSFER / STEP, abs=0.02)


@pytest.mark.parametrize("groups", [[["n0", "n1"]], [None, None]])
def test_the_line_rate_tells_where_no_group_is_without_it(groups: list[list[str] | None]) -> None:
    """All groups hold the host, or no log tells which do."""
    cost = priced(collectives(groups, [20.0] * len(groups), 40.0, 1), {"n1"})
    assert cost is not None and cost.against == "what the line rate of the NICs lets expect"
    assert cost.loss_share == pytest.approx(0.5 * TRANSFER / STEP, abs=0.02)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_slow_from_the_start_costs_no_later_slowdown(seed: int) -> None:
    """ "12.3 GB/s from the first step on, costs 64.2%" of 39 GB/s that half of the run reached."""
    chance = np.random.default_rng(seed)
    turn, left, slower = (
        int(chance.integers(25, 45)),
        chance.uniform(0.1, 0.8),
        chance.uniform(2, 4),
    )
    late = np.arange(STEPS) >= turn
    transfer = TRANSFER * np.where(late, slower, 1)
    times = STEP - TRANSFER + transfer
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    steps = with_step_times(moments, times).frame("job_steps")
    steps = steps.with_columns(pl.Series("transfer_ms", transfer))
    rates = pl.DataFrame(
        {
            "job": "run", "ts": moments, "hosts": [None] * STEPS,
            "gbytes_per_second": left * 40 * TRANSFER / transfer,
            "share_of_usual": left * TRANSFER / transfer,
        },
        schema_overrides={"hosts": pl.List(pl.String)},
    )  # fmt: skip
    evidence: Any = SimpleNamespace(frame={"job_steps": steps, "bus_bandwidth": rates}.__getitem__)
    paces = (
        Segment(0, turn - 1, None, STEP),
        Segment(turn, STEPS - 1, None, STEP + (slower - 1) * TRANSFER),
    )
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    cost = cost_of(evidence, [trend], [], whole_run=True)
    assert cost is not None and cost.felt
    assert cost.reached == pytest.approx(left)
    lost = (1 - left) * TRANSFER * (STEPS - 1) / times[1:].sum()
    assert cost.loss_share == pytest.approx(lost, rel=0.1)


@pytest.mark.parametrize("seed", range(20))
def test_sound_rates_show_no_loss_only_where_transfers_take_little_of_a_step(seed: int) -> None:
    """Sound sites differ by a fifth: of a job that mostly transfers that hides a loss of 10 %."""
    chance = np.random.default_rng(seed)
    share = float(chance.choice([0.05, 0.2, 0.3, 0.5, 0.9]))
    rate = float(chance.uniform(0.93, 1.1))
    rows = collectives([["n0", "n1"]], [40.0 * rate], 40.0, seed)
    cost = priced(rows, {"n1"}, transfer=share * STEP)
    assert cost is not None and not cost.felt and cost.would_show is (share < 0.25)


@pytest.mark.parametrize("seed", range(20))
def test_a_cost_is_none_only_where_a_loss_worth_a_look_would_have_shown(seed: int) -> None:
    """Steps that vary by a third hide 8 %: "the job did not measurably feel it" was said."""
    chance = np.random.default_rng(seed)
    number, noise = int(chance.integers(60, 200)), float(chance.choice([0.01, 0.03, 0.5]))
    added = float(chance.choice([1.0, 1.01, 1.08]))
    times = STEP * chance.lognormal(0, noise, number)
    acting = slice(number // 3, 2 * number // 3)
    times[acting] *= added
    moments = [START + timedelta(seconds=2 * step) for step in range(number)]
    evidence = with_step_times(moments, times)
    pace: Any = SimpleNamespace(faster=None, job="run", segments=())
    cost = cost_of(evidence, [pace], [(moments[acting][0], moments[acting][-1])])
    assert cost is not None
    if noise == 0.5:
        assert cost.felt or not cost.would_show
    else:
        assert cost.felt if added > 1.05 else (cost.felt or cost.would_show)


@pytest.mark.parametrize("unfelt", [True, False])
def test_what_nobody_felt_explains_no_slow_job(unfelt: bool) -> None:
    def found(kind: str, entity: Entity, loss: float | None) -> Finding:
        return Finding(kind, (entity,), "medium", 0.9, kind, kind, loss_share=loss)

    cause = replace(found("nic_affinity", Entity("host", host="n1"), None), unfelt=unfelt)
    slow = found("slow_collectives", Entity("job", job="run"), 0.4)
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    kept = [f.kind for f in fold_symptoms([cause, slow], load_models(), evidence)]
    assert kept == ["nic_affinity", *(["slow_collectives"] if unfelt else [])]


@pytest.mark.parametrize(
    ("severity", "slow_severity", "loss", "reached", "is_told"),
    [
        ("info", "low", None, None, True),
        ("info", "low", 0.4, 0.3, True),  # the rest of what is expected may have other causes
        ("info", "low", 0.4, None, False),
        ("low", "low", None, None, False),
        ("medium", "low", None, None, True),  # what it costs is not known either
        ("low", "medium", 0.1, 0.3, True),
        ("medium", "medium", 0.4, 0.3, False),
    ],
)
def test_a_hint_does_not_hide_a_slow_job(
    severity: Severity,
    slow_severity: Severity,
    loss: float | None,
    reached: float | None,
    is_told: bool,
) -> None:
    """Uneven parallel links with room, `info`, were told of a job at 17 % of its NICs' rate.

    A switch that sent 30 pause frames a second, `low`, was `medium` for collectives at 34 %.
    """
    cause = Finding("hash_collisions", (Entity("switch", switch="s1"),), severity, 0.9, "", "")
    slow = Finding(
        "slow_collectives", (Entity("job", job="run"),), slow_severity, 0.9, "", "",
        loss_share=loss, reached=reached,
    )  # fmt: skip
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    kept = fold_symptoms([cause, slow], load_models(), evidence)
    assert [f.kind for f in kept] == ["hash_collisions", *["slow_collectives"] * is_told]
    takes_severity = severity == "info" and not is_told
    assert kept[0].severity == ("low" if takes_severity else severity)


@pytest.mark.parametrize("later", [0, 600])
@pytest.mark.parametrize("named", [True, False])
def test_a_nic_that_storms_is_why_its_switch_pauses_from_earlier_on(
    named: bool, later: int
) -> None:
    nic = Entity("nic", host="n1", nic="eth0")
    storm = Finding("pfc_storm", (nic,), "medium", 0.9, "", "", start=START + timedelta(0, later))
    entities = (Entity("switch", switch="leaf1"), *([nic] if named else []))
    pausing = Finding(
        "pausing_switch", entities, "medium", 0.9, "", "", related=(nic,), start=START
    )
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    kept = [f.kind for f in fold_symptoms([storm, pausing], load_models(), evidence)]
    assert kept == ["pfc_storm", *([] if named else ["pausing_switch"])]


@pytest.mark.parametrize("computes", [True, False])
@pytest.mark.parametrize(
    "kind", sorted(model.kind for model in load_models().values() if "straggler" in model.explains)
)
def test_no_network_explains_a_longer_computation(kind: str, computes: bool) -> None:
    """A host on sockets that also computed 45 % longer was told as one cause, at half its loss."""
    host = Entity("host", host="n1")
    cause = Finding(kind, (host,), "medium", 0.9, kind, kind, loss_share=0.2)
    late = replace(cause, kind="straggler", computes=computes)
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    kept = [f.kind for f in fold_symptoms([cause, late], load_models(), evidence)]
    of_the_rank = kind in {"gpu_error", "gpu_throttle"}
    assert kept == [kind, *(["straggler"] if computes and not of_the_rank else [])]


@pytest.mark.parametrize("seed", range(8))
def test_a_cause_for_a_while_is_priced_by_steps_where_what_is_timed_takes_none(seed: int) -> None:
    """A pipeline's transfers are not among the collectives that are timed: 7 % were "not felt"."""
    chance = np.random.default_rng(seed)
    lost = float(chance.choice([0.0, 0.05, 0.1]))
    first, last = sorted(int(step) for step in chance.choice(range(20, 180), 2, replace=False))
    last = max(last, first + 30)
    acting = [first <= step <= last for step in range(200)]
    times = [STEP / (1 - lost * acts) * chance.lognormal(0, 0.01) for acts in acting]
    moments = [START + timedelta(seconds=2 * step) for step in range(200)]
    steps = pl.DataFrame(
        {
            "job": ["run"] * 200, "step": range(200), "ts": moments, "step_time_ms": times,
            "transfer_ms": chance.lognormal(1.0, 0.1, 200), "by_collectives": [True] * 200,
            "compute_ms": [None] * 200,
        }
    )  # fmt: skip
    evidence: Any = SimpleNamespace(frame={"job_steps": steps}.__getitem__)
    trend: Any = SimpleNamespace(faster=None, job="run", segments=())
    cost = cost_of(evidence, [trend], [(moments[first], moments[last])])
    assert cost is not None
    assert cost.felt is (lost > 0)
    if lost:
        assert cost.loss_share == pytest.approx(lost, abs=0.01)


def test_a_symptom_that_comes_and_goes_is_of_its_cause_while_that_acts() -> None:
    """A rank computed longer in other bursts, too: the GPU's clock was low in one of them."""
    at = [START + timedelta(seconds=2 * step) for step in range(201)]
    gpu = Entity("gpu", host="n1", gpu=3, rank=7)
    cause = Finding(
        "gpu_throttle", (gpu,), "medium", 0.9, "It is hot", "", families=("counters",),
        start=at[128], end=at[166],
    )  # fmt: skip
    slow = Finding(
        "straggler", (Entity("rank", rank=7, host="n1"),), "low", 0.8, "It is slow", "",
        families=("timing",), start=at[72], end=at[200], start_step=72, end_step=200,
        loss_share=0.02, bursts=((72, 81), (130, 165), (196, 200)),
    )  # fmt: skip
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    (told,) = fold_symptoms([cause, slow], load_models(), evidence)
    assert (told.start_step, told.end_step, told.bursts) == (130, 165, ((130, 165),))
    # What those steps lost, over these steps.
    assert told.loss_share == pytest.approx(0.02 * (129 / 36) * (36 / 51))


@pytest.mark.parametrize("seed", range(20))
def test_a_cause_is_priced_by_steps_of_its_own_pace(seed: int) -> None:
    """Sequences grew at step 250: of an uplink that failed at 312 that was 7.3%, and it cost 0."""
    chance = np.random.default_rng(seed)
    grown = int(chance.integers(40, 200))
    begin = grown + int(chance.integers(190, 400))  # more than 300 s later
    number = begin + int(chance.integers(60, 300))
    added = float(chance.choice([1.0, 1.08]))
    times = STEP * chance.lognormal(0, 0.005, number)
    times[grown:] *= float(chance.choice([0.8, 1.2]))
    times[begin:] *= added
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    changes = [0, grown, *([begin] if added > 1 else []), number]
    paces = tuple(
        Segment(first, after - 1, None, STEP) for first, after in itertools.pairwise(changes)
    )
    evidence = with_step_times(moments, times)
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    cost = cost_of(evidence, [trend], [(moments[begin - 1], moments[-1])])
    assert cost is not None and cost.felt is (added > 1)
    if added > 1:
        assert cost.loss_share == pytest.approx(1 - 1 / added, abs=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_what_changes_while_a_cause_acts_on_is_no_cost_of_it(seed: int) -> None:
    """Sequences grew by a quarter at step 385 of a storm since 323, which "cost 20.8%" of 11.7."""
    chance = np.random.default_rng(seed)
    begin, later = int(chance.integers(40, 200)), int(chance.integers(60, 300))
    number = begin + later + int(chance.integers(40, 300))
    added, grown = float(chance.uniform(1.08, 1.4)), float(chance.uniform(1.15, 1.6))
    times = STEP * chance.lognormal(0, 0.005, number)
    times[begin:] += STEP * (added - 1)
    times[begin + later :] *= grown
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    changes = [0, begin, begin + later, number]
    paces = tuple(
        Segment(first, after - 1, None, STEP) for first, after in itertools.pairwise(changes)
    )
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    late = begin + int(chance.integers(0, 15))  # read at intervals
    cost = cost_of(with_step_times(moments, times), [trend], [(moments[late - 1], moments[-1])])
    assert cost is not None and cost.felt
    lost = STEP * (added - 1) * (number - late) / times[late:].sum()
    assert cost.loss_share == pytest.approx(lost, abs=0.01)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("grows", [True, False])
def test_a_pace_that_a_cause_grew_with_is_its_own(seed: int, grows: bool) -> None:
    """A cable that failed slowly "cost 2.9%" of 7.7: steps became slower again as it got worse.

    Beside that stood "steps took 10% longer, and no cause explains it".
    """
    chance = np.random.default_rng(seed)
    begin, later = int(chance.integers(40, 200)), int(chance.integers(100, 300))
    number = begin + later + int(chance.integers(100, 300))
    added = float(chance.uniform(1.03, 1.2))
    again = float(chance.uniform(1.8, 4))  # times as much is added then
    stronger = max(again * float(chance.uniform(0.65, 1.5)), 1.8) if grows else 1.0
    times = STEP * chance.lognormal(0, 0.005, number)
    times[begin:] += STEP * (added - 1)
    times[begin + later :] += STEP * (added - 1) * (again - 1)
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    changes = [0, begin, begin + later, number]
    paces = tuple(
        Segment(first, after - 1, None, STEP) for first, after in itertools.pairwise(changes)
    )
    every = timedelta(seconds=float(chance.uniform(5, 25)))
    reads = [moments[begin - 1] + n * every for n in range(10**4)]
    reads = [read for read in reads if read < moments[-1]]
    usual = 5 * chance.lognormal(0, 0.3, len(reads) - 1)
    dose = pl.DataFrame({"ts_before": reads[:-1], "ts": reads[1:], "dose": usual}).with_columns(
        pl.when(pl.col("ts") > moments[begin + later])
        .then(pl.col("dose") * stronger)
        .otherwise("dose")
    )
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    evidence = with_step_times(moments, times)
    cost = cost_of(evidence, [trend], [(moments[begin - 1], moments[-1])], dose=dose)
    assert cost is not None and cost.felt
    assert cost.grown_at == ((begin + later,) if grows else ())
    counted = times[begin:] - STEP if grows else np.full(number - begin, STEP * (added - 1))
    assert cost.loss_share == pytest.approx(counted.sum() / times[begin:].sum(), abs=0.01)


@pytest.mark.parametrize("seed", range(20))
def test_a_cause_that_is_read_seldom_costs_the_pace_that_begins_and_ends_within_its_readings(
    seed: int,
) -> None:
    """Steps took 49% longer for 63 steps, and the cable that broke with them "cost 0.1%"."""
    chance = np.random.default_rng(seed)
    begin, lasts = int(chance.integers(60, 200)), int(chance.integers(40, 200))
    end, number = begin + lasts, begin + lasts + int(chance.integers(60, 200))
    added = float(chance.uniform(1.08, 1.6))
    times = STEP * chance.lognormal(0, 0.005, number)
    times[begin:end] *= added
    moments = [START + timedelta(seconds=float(each)) for each in np.cumsum(times) / 1000]
    changes = [0, begin, end, number]
    paces = tuple(
        Segment(first, after - 1, None, STEP) for first, after in itertools.pairwise(changes)
    )
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    early, late = (int(each) for each in chance.integers(0, 40, 2))
    first, last = begin - early, end - 1 + late
    span = moments[first - 1], moments[last]
    every = max(span[1] - moments[end - 1], moments[begin] - span[0])
    evidence = with_step_times(moments, times)
    cost = cost_of(evidence, [trend], [span], read_every=every)
    assert cost is not None and cost.felt
    lost = STEP * (added - 1) * lasts / times[first : last + 1].sum()
    assert cost.loss_share == pytest.approx(lost, abs=0.01)


@pytest.mark.parametrize("seed", range(8))
def test_a_cost_of_some_times_of_a_cause_is_told_over_all_of_them(seed: int) -> None:
    """One long step of a link that flapped for 17 made it critical: it "cost 39.5%" of 4.5."""
    chance = np.random.default_rng(seed)
    times = STEP * chance.lognormal(0, 0.005, 200)
    hit = int(chance.integers(60, 140))
    times[hit] *= float(chance.uniform(1.5, 2.5))
    moments = [START + timedelta(seconds=float(each)) for each in np.cumsum(times) / 1000]
    trend: Any = SimpleNamespace(faster=None, job="run", segments=())
    evidence = with_step_times(moments, times)
    soon = timedelta(seconds=STEP / 4000)
    flaps = [(moments[step] - 2 * soon, moments[step] - soon) for step in (50, hit, 150)]
    cost = cost_of(evidence, [trend], flaps[1:2])
    assert cost is not None and cost.loss_share > 0.3
    told = over_all(cost, evidence, flaps)
    assert (told.start_step, told.end_step, told.bursts) == (50, 150, ((hit, hit),))
    assert told.loss_share == pytest.approx((times[hit] - STEP) / times[50:151].sum(), abs=0.003)
    assert over_all(told, evidence, flaps) == told


STOPPING = ("hang", "nccl_failure", "process_failure")


@pytest.mark.parametrize("kind", STOPPING)
@pytest.mark.parametrize("unfelt", [True, False])
def test_what_stops_a_job_makes_its_cause_as_severe_and_is_no_second_finding(
    kind: str, unfelt: bool
) -> None:
    """A link went down, NCCL failed, 360 ranks ended: the link was "medium, not felt"."""
    models = load_models()
    assert {model.kind for model in models.values() if model.stops} == {*STOPPING}
    causes = [m.kind for m in models.values() if kind in m.explains and m.kind not in STOPPING]
    host = Entity("host", host="n1")
    said = "Down by NCCL. The job did not measurably feel it, against steps without it."
    stop = Finding(kind, (host,), "high", 0.9, "It failed", "")
    evidence: Any = SimpleNamespace(frame=lambda name: pl.DataFrame())
    for name in causes:
        cause = Finding(name, (host,), "medium", 0.9, "It is sick", said, unfelt=False)
        (told,) = fold_symptoms([cause, stop], models, evidence)
        assert told.kind == name and told.severity == "high" and not told.unfelt
        assert "feel it" not in told.explanation
    # What failed first is a symptom by itself; what it brought down goes with it.
    link = Finding("link_flap", (host,), "medium", 0.9, "Down", said, unfelt=unfelt)
    first = replace(stop, kind="nccl_failure")
    last = replace(stop, kind="process_failure", entities=(Entity("job"),))
    for found in ([link, first, last], [link, last, first]):
        (told,) = fold_symptoms(found, models, evidence)
        assert (told.kind, told.severity, told.unfelt) == ("link_flap", "high", False)


@pytest.mark.parametrize("ramps", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_transfers_that_grow_with_the_work_are_no_cost(seed: int, ramps: bool) -> None:
    """A cable failed as the batch grew, before longer sequences: it "cost 21.4%" of 9.7."""
    chance = np.random.default_rng(seed)
    begin, later = int(chance.integers(40, 80)), int(chance.integers(30, 80))
    number = begin + later + int(chance.integers(40, 200))
    steps = np.arange(number)
    added, grown = float(chance.uniform(1.3, 1.8)), float(chance.uniform(1.2, 1.6))
    work = np.where(steps < begin + later, 1.0, grown)
    if ramps:
        work = work * np.minimum(0.4 + 0.6 * steps / (begin + 10), 1)
    transfer = TRANSFER * work * chance.lognormal(0, 0.01, number)
    harm = transfer * (added - 1) * (steps >= begin)
    computed = (STEP - TRANSFER) * work
    times = computed + transfer + harm
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    columns = {"transfer_ms": transfer + harm, "compute_ms": computed}
    rows = (
        with_step_times(moments, times)
        .frame("job_steps")
        .with_columns(pl.Series(name, values) for name, values in columns.items())
    )
    changes = [0, begin, begin + later, number]
    paces = tuple(
        Segment(first, after - 1, None, STEP) for first, after in itertools.pairwise(changes)
    )
    trend: Any = SimpleNamespace(faster=None, job="run", segments=paces)
    evidence: Any = SimpleNamespace(frame={"job_steps": rows}.__getitem__)
    cost = cost_of(evidence, [trend], [(moments[begin - 1], moments[-1])])
    assert cost is not None and cost.felt
    assert cost.loss_share == pytest.approx(harm.sum() / times[begin:].sum(), abs=0.04)


@pytest.mark.parametrize("stalls", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_checkpoints_while_a_cause_acts_are_no_cost_of_it_and_its_own_stall_is(
    seed: int, stalls: bool
) -> None:
    """Three checkpoints among 200 slower steps made 13 % of a loss of 7 %."""
    chance = np.random.default_rng(seed)
    every, number = int(chance.integers(20, 60)), int(chance.integers(240, 400))
    times = STEP * chance.lognormal(0, 0.005, number)
    acting = slice(number // 2, number // 2 + (3 if stalls else number // 3))
    if stalls:
        times[acting] += np.array([0, 60_000, 0])
    else:
        times[acting] *= 1.08
    offset = int(chance.integers(every))
    acts = range(number)[acting]
    paused = [s for s in range(offset, number, every) if not (stalls and s in acts)]
    times[paused] += 20_000
    moments = [START + timedelta(seconds=float(end)) for end in np.cumsum(times) / 1000]
    evidence = with_step_times(moments, times)
    trend: Any = SimpleNamespace(faster=None, job="run", segments=())
    spans = [(moments[acting.start - 1], moments[acting.stop - 1])]
    cost = cost_of(evidence, [trend], spans)
    assert cost is not None
    if stalls:
        assert cost.loss_share > 0.5
    else:
        # Of all time, checkpoints as well.
        slower = times[acting] < 10_000
        lost = (
            0.08
            / 1.08
            * float(times[acting][slower].sum() / np.minimum(times[acting], 20_000).sum())
        )
        assert cost.felt and cost.loss_share == pytest.approx(lost, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_a_stop_of_the_job_while_a_cause_acts_is_no_more_than_a_long_step(seed: int) -> None:
    """A job stopped 43 minutes before it went on with packet loss: 37.5 % was told of 23.4 %."""
    rng = np.random.default_rng(seed)
    slower, begin = rng.uniform(1.15, 1.5), int(rng.integers(80, 220))
    times = 4000 * rng.normal(1, 0.01, 400) * np.where(np.arange(400) < begin, 1, slower)
    times[begin] *= rng.uniform(15, 200)
    moments = [START + timedelta(milliseconds=float(ms)) for ms in np.cumsum(times)]
    evidence = with_step_times(moments, times)
    paces = [(0, begin - 1, 4000.0), (begin, 399, 4000 * slower)]
    segments = tuple(Segment(first, last, moments[first], ms, "run") for first, last, ms in paces)
    trend: Any = SimpleNamespace(faster=None, job="run", segments=segments)
    cost = cost_of(evidence, [trend], [(moments[begin - 1], datetime.max)])
    assert cost is not None
    assert cost.loss_share == pytest.approx(1 - 1 / slower, abs=0.05)
