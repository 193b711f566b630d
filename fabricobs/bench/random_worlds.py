"""`fabricobs bench diagnosis --worlds`: drawn worlds from files to findings, scored.

Tuning seeds are 1 to 9999, scoring seeds begin at 10000: a fault found wanting on scoring seeds is
studied on tuning seeds.
"""

import json
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from fabricobs.bench.diagnosis import in_workers
from fabricobs.bench.scoreboard import calibration_table, table
from fabricobs.bench.scoring import Claim, Outcome, Score, score_case
from fabricobs.diagnosis.run import diagnose
from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.simulator.random_worlds.case import write_world
from fabricobs.simulator.random_worlds.given import given_of
from fabricobs.simulator.random_worlds.spec import SCORING_SEEDS, Spec, draw_spec
from fabricobs.store.parts import Store

# Losses by the effects that faults aim at: 2, 3, 5, 10, 20 % and larger.
_EFFECTS = (0.0, 0.015, 0.025, 0.04, 0.075, 0.15, 1.01)
_COUNTS = 0.05  # loss from which a fault must be found
_HARMFUL = ("medium", "high", "critical")
_WORST = 10
_LOSS_POINTS = 0.05


@dataclass(frozen=True, slots=True)
class WorldResult:
    """One world: its score, its lines and those unread, seconds, or why it failed."""

    seed: int
    score: Score | None
    lines: int = 0
    unread: int = 0
    unread_files: tuple[str, ...] = ()
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    failure: str = ""


def bench(
    worlds: int, first_seed: int | None, given: Sequence[str] = (), out: Path | None = None
) -> str:
    """Run and score worlds of consecutive seeds, scoring seeds unless one is named; the tables.

    Properties `given` as NAME=VALUE are not drawn.
    """
    first = SCORING_SEEDS.start if first_seed is None else first_seed
    fixed = given_of(given)
    specs = [draw_spec(seed, **fixed) for seed in range(first, first + worlds)]
    results = []
    with out.open("w", encoding="utf-8") if out else nullcontext() as kept:
        for number, result in enumerate(in_workers(run_world, specs), start=1):
            results.append(result)
            if kept is not None:  # at once: a bench of hours that is stopped has told what it knew
                print(json.dumps(asdict(result), default=str), file=kept, flush=True)
            print(f"\r{number} of {worlds} worlds", end="", file=sys.stderr)
    print(file=sys.stderr)
    results.sort(key=lambda result: result.seed)
    return tables(results)


def run_world(spec: Spec) -> WorldResult:
    """Write, ingest, diagnose and score one world in a directory that is removed again."""
    folder = Path(tempfile.mkdtemp(prefix="fabricobs-world-"))
    try:
        return _run_in(folder, spec)
    except Exception:  # one world must not end the bench; it counts as failed
        return WorldResult(spec.seed, None, failure=traceback.format_exc(limit=-3))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_in(folder: Path, spec: Spec) -> WorldResult:
    began = time.perf_counter()
    truth = write_world(folder, spec)
    written = time.perf_counter()
    store = folder / "store"
    ingest([folder / "logs"], Store(store), Options(zone=truth["zone"]), workers=1)
    read = time.perf_counter()
    score = score_case(
        truth,
        diagnose(store),
        interval_seconds=truth["spec"]["switch_interval"],
        step_seconds=truth["jobs"][0]["step_seconds"],
    )
    judged = time.perf_counter()
    files = pl.read_parquet(f"{store}/*/files.parquet", columns=["path", "lines", "unparsed"])
    unread = files.filter(pl.col("unparsed") > 0, ~pl.col("path").str.contains("/notes/"))
    return WorldResult(
        seed=spec.seed,
        score=score,
        lines=int(files["lines"].sum()),
        unread=int(unread["unparsed"].sum()),
        unread_files=tuple(path.rpartition("/logs/")[2] for path in unread["path"].to_list()[:5]),
        seconds=(written - began, read - written, judged - read),
    )


def tables(results: Sequence[WorldResult]) -> str:
    """All tables, as text."""
    scores = [result.score for result in results if result.score is not None]
    outcomes = [outcome for score in scores for outcome in score.outcomes]
    clear = [outcome for outcome in outcomes if outcome.identifiable]
    claims = [claim for score in scores for claim in score.claims]
    parts = [
        _in_all(scores, outcomes, claims),
        _by("By fault", clear, lambda outcome: outcome.fault),
        _by("By loss", clear, lambda outcome: _bin(outcome.true_loss)),
        _by("Not identifiable", [o for o in outcomes if not o.identifiable], lambda o: o.fault),
        _false(scores),
        calibration_table([claim for claim in claims if claim.right or not claim.again]),
        _worst(results),
        _reading(results),
    ]
    return "\n\n".join(parts)


def _in_all(scores: Sequence[Score], outcomes: Sequence[Outcome], claims: Sequence[Claim]) -> str:
    clear = [outcome for outcome in outcomes if outcome.identifiable]
    strong = [outcome for outcome in clear if outcome.true_loss >= _COUNTS]
    found = [outcome for outcome in clear if outcome.found]
    days = sum(score.days for score in scores)
    false = [claim for claim in claims if not claim.right and not claim.again]
    harmful = [claim for claim in false if claim.severity in _HARMFUL]
    losing = [
        s for s in scores if any(o.true_loss >= _COUNTS and o.identifiable for o in s.outcomes)
    ]
    priced = [o for o in found if o.loss_shown]
    losses = [abs(o.said_loss - o.true_loss) for o in priced if o.said_loss is not None]
    rows = [
        ["in all", "value"],
        ["worlds, cluster-days", f"{len(scores)}, {days:.2f}"],
        [
            "faults, identifiable, of 5 % loss and more",
            f"{len(outcomes)}, {len(clear)}, {len(strong)}",
        ],
        ["precision, findings of a known fault left out", share([not c for c in _wrong(claims)])],
        ["recall of identifiable faults", share([o.found for o in clear])],
        ["recall of those of 5 % loss and more", share([o.found for o in strong])],
        ["right entity first, of those found", share([o.right_first for o in found])],
        ["right entity among three", share([o.right_among_three for o in found])],
        ["loss within 5 points, where told", share([error <= _LOSS_POINTS for error in losses])],
        [
            "loss told, of 5 % and more, where the evidence shows it",
            share([o.said_loss is not None for o in priced if o.true_loss >= _COUNTS]),
        ],
        ["wrong answers of ok, of worlds that lose 5 %", share([s.called_ok for s in losing])],
        ["wrong answers of ok to the question of a fault", share([o.called_ok for o in clear])],
        ["of a fault of 5 % loss and more", share([o.called_ok for o in strong])],
        ["false findings a cluster-day", f"{len(false) / days:.2f}" if days else "-"],
        ["of these medium and above", f"{len(harmful) / days:.2f}" if days else "-"],
    ]
    return table("Random worlds", rows)


def _by(title: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> str:
    names = sorted({key(outcome) for outcome in outcomes})
    rows = [["", "faults", "found", "first", "onset s", "late s", "loss off"]]
    for name in names:
        some = [outcome for outcome in outcomes if key(outcome) == name]
        found = [outcome for outcome in some if outcome.found]
        losses = [abs(o.said_loss - o.true_loss) for o in found if o.said_loss is not None]
        rows.append(
            [
                name,
                str(len(some)),
                share([o.found for o in some]),
                share([o.right_first for o in found]),
                _middle([o.onset_seconds for o in found if o.onset_seconds is not None]),
                _middle([o.delay_seconds for o in found if o.delay_seconds is not None]),
                _middle([100 * loss for loss in losses], "{:.1f} %"),
            ]
        )
    return table(title, rows)


def _false(scores: Sequence[Score]) -> str:
    false = [c for score in scores for c in score.claims if not c.right and not c.again]
    kinds = Counter((claim.kind, claim.severity) for claim in false)
    rows = [["false findings", "severity", "number"]]
    rows += [[kind, severity, str(n)] for (kind, severity), n in kinds.most_common()]
    return table("False findings by kind", rows)


def _worst(results: Sequence[WorldResult]) -> str:
    rows = [["world", "missed", "false"]]
    ranked = sorted(results, key=lambda result: (-_badness(result), result.seed))
    for result in ranked[:_WORST]:
        if result.score is None:
            rows.append([f"random-{result.seed}", "failed", result.failure.strip().split("\n")[-1]])
            continue
        ok = " answer ok" if result.score.called_ok else ""
        rows.append(
            [
                result.score.scenario,
                ", ".join(
                    f"{o.fault} {o.true_loss:.0%}{' called ok' * o.called_ok}"
                    for o in _missed(result.score)
                )
                + ok
                or "-",
                ", ".join(
                    f"{n} {kind}"
                    for kind, n in Counter(c.kind for c in _harmful(result.score)).items()
                )
                or "-",
            ]
        )
    return table(f"The {_WORST} worst worlds", rows)


def _reading(results: Sequence[WorldResult]) -> str:
    lines, unread = (sum(getattr(r, name) for r in results) for name in ("lines", "unread"))
    rows = [["seconds a world", "mean", "longest"]]
    for place, name in enumerate(("written", "ingested", "diagnosed")):
        seconds = [result.seconds[place] for result in results if result.score is not None] or [0.0]
        rows.append([name, f"{sum(seconds) / len(seconds):.1f}", f"{max(seconds):.1f}"])
    names = [f"  random-{r.seed}: {', '.join(r.unread_files)}" for r in results if r.unread]
    said = f"{lines:,} lines, {unread:,} unread"
    return "\n".join([table("Time", rows), "", said, *names])


def _missed(score: Score) -> list[Outcome]:
    return [o for o in score.outcomes if o.identifiable and not o.found and o.true_loss >= _COUNTS]


def _harmful(score: Score) -> list[Claim]:
    return [c for c in score.claims if not c.right and not c.again and c.severity in _HARMFUL]


def _badness(result: WorldResult) -> float:
    if result.score is None:
        return 1_000.0
    missed = sum(1 + o.true_loss for o in _missed(result.score))
    return 2 * missed + len(_harmful(result.score)) + 3 * result.score.called_ok * bool(missed)


def _wrong(claims: Sequence[Claim]) -> list[bool]:
    """Whether each finding is wrong; those that say a known fault again count neither way."""
    return [not claim.right for claim in claims if claim.right or not claim.again]


def _bin(loss: float) -> str:
    for low, high in zip(_EFFECTS, _EFFECTS[1:], strict=False):
        if low <= loss < high:
            return f"{low:5.1%} to {high:5.1%}"
    return "none"


def share(values: Sequence[bool]) -> str:
    """A share with its number of cases."""
    return f"{sum(values) / len(values):.2f} of {len(values)}" if values else "-"


def _middle(values: Sequence[float], style: str = "{:.0f}") -> str:
    return style.format(sorted(values)[len(values) // 2]) if values else "-"
