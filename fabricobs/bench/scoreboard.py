"""The scoreboard as text: by scenario, in all, calibration, and what each family tells alone."""

import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from fabricobs.bench import calibrating
from fabricobs.bench.diagnosis import (
    ABLATIONS,
    EVERYTHING,
    SCORING_SEEDS,
    TUNING_SEEDS,
    Result,
    plan,
    run_cases,
    scored_scenarios,
)
from fabricobs.bench.scoring import Claim, Outcome, Score
from fabricobs.diagnosis.findings import SEVERITIES

EFFECT_THAT_COUNTS = 1.10  # Greyhound and the what-if analysis call a job slow from here
_HEADINGS = (
    "scenario",
    "faults",
    "effect",
    "found",
    "first",
    "in 3",
    "false",
    "late s",
    "late steps",
    "loss off",
)
_BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0001)


def bench(
    seeds: int,
    gpus: int,
    scenarios: Sequence[str],
    *,
    ablations: bool,
    tuning: bool,
    out: Path | None = None,
    calibration: Path | None = None,
) -> str:
    """Run and score `scenarios` (all by default) with the first `seeds` seeds; the scoreboard.

    With `calibration`, tuning seeds are taken and what confidence was worth is written there.
    """
    fitting = calibration is not None
    chosen = (TUNING_SEEDS if tuning or fitting else SCORING_SEEDS)[:seeds]
    cases = plan(
        scenarios or scored_scenarios(), chosen, gpus, ablations=ablations, calibrated=not fitting
    )
    results = []
    for number, result in enumerate(run_cases(cases), start=1):
        results.append(result)
        print(f"\r{number} of {len(cases)} cases", end="", file=sys.stderr)
    print(file=sys.stderr)
    results.sort(key=lambda result: (result.case.scenario, result.case.seed))
    if out is not None:
        lines = [json.dumps(asdict(result), default=str) for result in results]
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if calibration is not None:
        views = [score for result in results for score in result.scores.values()]
        calibrating.write(calibrating.fit(c for s in views for c in s.claims), calibration)
    return scoreboard(results)


def scoreboard(results: Sequence[Result]) -> str:
    """All tables, as text."""
    scores = [result.scores[EVERYTHING] for result in results]
    parts = [
        _by_scenario(scores),
        _in_all(scores),
        _false_findings(scores),
        calibration_table([c for s in scores for c in s.claims]),
    ]
    ablated = [result for result in results if len(result.scores) > 1]
    if ablated:
        parts.append(_ablations(ablated))
    parts.append(_time(results))
    return "\n\n".join(parts)


def _by_scenario(scores: Sequence[Score]) -> str:
    names = sorted({score.scenario for score in scores})
    rows = [
        [name, *_figures([score for score in scores if score.scenario == name])] for name in names
    ]
    return table("Per scenario", [_HEADINGS, *rows])


def _in_all(scores: Sequence[Score]) -> str:
    strong = [o for o in _outcomes(scores) if o.effect >= EFFECT_THAT_COUNTS]
    claims = [claim for score in scores for claim in score.claims]
    found = [o for o in strong if o.found]
    rows = [
        ["in all", "value"],
        ["faults", str(len(_outcomes(scores)))],
        [f"faults of {EFFECT_THAT_COUNTS:.2f} and above", str(len(strong))],
        ["precision", _share([claim.right for claim in claims])],
        ["recall", _share([o.found for o in _outcomes(scores)])],
        [f"recall of {EFFECT_THAT_COUNTS:.2f} and above", _share([o.found for o in strong])],
        ["right entity first, of those found", _share([o.right_first for o in found])],
        ["right entity among three", _share([o.right_among_three for o in found])],
        ["counter intervals to detect, median", _median(found, lambda o: o.delay_intervals)],
        ["error of the loss, median", _median(found, _loss_error, "{:.1%}")],
    ]
    return table("In all", rows)


def _false_findings(scores: Sequence[Score]) -> str:
    healthy = [score for score in scores if not score.outcomes]
    days = sum(score.days for score in healthy)
    rows = [["on healthy clusters", "findings", "per cluster-day"]]
    for severity in SEVERITIES[1:]:
        count = sum(claim.severity == severity for score in healthy for claim in score.claims)
        rows.append([severity, str(count), f"{count / days:.2f}" if days else "-"])
    return table(f"False findings in {len(healthy)} healthy cases, {days:.2f} cluster-days", rows)


def calibration_table(claims: Sequence[Claim]) -> str:
    """How often findings were right, by the confidence they say."""
    rows = [["confidence", "findings", "said", "right"]]
    for low, high in zip(_BINS, _BINS[1:], strict=False):
        inside = [claim for claim in claims if low <= claim.confidence < high]
        if inside:
            said = statistics.mean(claim.confidence for claim in inside)
            right = _share([claim.right for claim in inside])
            rows.append([f"{low:.1f} to {high:.1f}", str(len(inside)), f"{said:.2f}", right])
    return table("Is the confidence true?", rows)


def _ablations(results: Sequence[Result]) -> str:
    rows = [["evidence", "found", "precision", "faults called ok"]]
    for view in (EVERYTHING, *ABLATIONS):
        scores = [result.scores[view] for result in results]
        claims = [claim for score in scores for claim in score.claims]
        called_ok = sum(score.called_ok for score in scores if score.outcomes)
        found = _share([o.found for o in _outcomes(scores)])
        rows.append([view, found, _share([claim.right for claim in claims]), str(called_ok)])
    return table(f"With one kind of evidence alone, {len(results)} cases", rows)


def _time(results: Sequence[Result]) -> str:
    rows = [["seconds a case", "median", "longest"]]
    for name in ("simulated", "ingested", "diagnosed"):
        seconds = [getattr(result, name) for result in results]
        rows.append([name, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"])
    lines, unread = (sum(getattr(r, name) for r in results) for name in ("lines", "unread"))
    read = f"{lines:,} lines in {len(results)} cases, {unread:,} of them unread"
    return f"{table('Time', rows)}\n\n{read}"


def _figures(scores: Sequence[Score]) -> list[str]:
    outcomes = _outcomes(scores)
    found = [outcome for outcome in outcomes if outcome.found]
    false = sum(not claim.right for score in scores for claim in score.claims)
    effect = statistics.median([o.effect for o in outcomes]) if outcomes else None
    return [
        str(len(outcomes)),
        f"{effect:.2f}" if effect else "-",
        _share([o.found for o in outcomes]),
        _share([o.right_first for o in found]),
        _share([o.right_among_three for o in found]),
        str(false),
        _median(found, lambda o: o.delay_seconds, "{:.0f}"),
        _median(found, lambda o: o.delay_steps, "{:.0f}"),
        _median(found, _loss_error, "{:.0%}"),
    ]


def _outcomes(scores: Iterable[Score]) -> list[Outcome]:
    return [outcome for score in scores for outcome in score.outcomes]


def _loss_error(outcome: Outcome) -> float | None:
    if outcome.said_loss is None or not outcome.true_loss:
        return None
    return abs(outcome.said_loss - outcome.true_loss) / outcome.true_loss


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "-"


def _median(
    outcomes: Sequence[Outcome],
    figure: Callable[[Outcome], float | None],
    style: str = "{:.1f}",
) -> str:
    values = [value for outcome in outcomes if (value := figure(outcome)) is not None]
    return style.format(statistics.median(values)) if values else "-"


def table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """A table with a title; the first row holds the headings."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([title, lines[0], "-" * len(lines[0]), *lines[1:]])
