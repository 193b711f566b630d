"""Steps of trainers behind what launchers and terminals add: prefixes, colours, redrawn bars."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

PREFIXES = (
    "",
    "[rank0]: ",
    "[rank0]:",
    "[default0]:",
    "(RayTrainWorker pid=123, ip=10.0.0.1) ",
    "(PPOTrainer pid=123) ",
    "\x1b[36m(RayTrainWorker pid=123, ip=10.0.0.1)\x1b[0m ",
    "2026-03-02T09:00:41.250Z stdout F ",
    "0: ",
)
# The times a line may show beside that of its step: since the start, to the end, of an epoch.
OTHER_SECONDS = 71_234


@dataclass(frozen=True)
class Trainer:
    """How a trainer writes a step that took so many seconds, and what is read of it."""

    write: Callable[[int, int], str]
    column: str  # what holds the seconds, in ms
    bar: bool = False  # redrawn over itself on a terminal


def _clock(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


TRAINERS = {
    "rich bar": Trainer(
        lambda step, s: (
            f"Epoch 3/9 ━━━╸━━━ {step}/99999 {_clock(s)} • 19:47:14 7.00it/s loss: 0.25"
        ),
        "elapsed_ms",
        bar=True,
    ),
    "rich bar on an ASCII terminal": Trainer(
        lambda step, s: (
            f"Epoch 4  -------- {step}/99999 {_clock(s)} • 19:47:14 7.00it/s loss: 0.25"
        ),
        "elapsed_ms",
        bar=True,
    ),
    "tqdm-loggable": Trainer(
        lambda step, s: (
            f"Progress on:train {step}it/10.0kit rate:76.8s/it remaining:19:47:14 "
            f"elapsed:{_clock(s)} postfix:loss=0.25"
        ),
        "elapsed_ms",
    ),
    "Gaudi": Trainer(
        lambda step, s: (
            f"  3%|3         | {step}/99999 [{_clock(s)}<19:47:14, 45.81s/it]{{'loss': 0.25, "
            "'learning_rate': 2.5e-05, 'epoch': 0.09, 'memory_allocated (GB)': 3.82, "
            "'max_memory_allocated (GB)': 6.32, 'total_memory_available (GB)': 29.85}"
        ),
        "elapsed_ms",
        bar=True,
    ),
    "OpenRLHF": Trainer(
        lambda step, s: (
            f"INFO 03-02 09:00:41 ppo_trainer.py:1] ✨ Global step {step}: {{'policy_loss': 0.25, "
            f"'timing/generation': {OTHER_SECONDS}.5, 'timing/step_total': {s}.0}}"
        ),
        "step_time_ms",
    ),
    "NeMo-RL": Trainer(
        lambda step, s: (
            f"========================= Step {step}/99999 =========================\n"
            f"  • Total step time: {s}.00s\n  • generation: {OTHER_SECONDS}.00s (90.0%)"
        ),
        "step_time_ms",
    ),
    "Ray Train": Trainer(
        lambda step, s: (
            f"Training finished iteration {step} at 2026-03-02 09:00:43. Total running time: 19h "
            f"47min\n│ time_this_iter_s    {s}.0 │\n│ time_total_s   {OTHER_SECONDS}.0 │"
        ),
        "step_time_ms",
    ),
    "a loop with other times": Trainer(
        lambda step, s: (
            f"step {step} | loss 0.25 | time: {s}.0s | total time: {OTHER_SECONDS}.0s | elapsed: "
            f"{OTHER_SECONDS}.0s | forward time: 0.5s | remaining time: {OTHER_SECONDS}s"
        ),
        "step_time_ms",
    ),
    "a loop with only other times": Trainer(
        lambda step, _: (
            f"step {step} | loss 0.25 | total time: {OTHER_SECONDS}.0s | time elapsed: "
            f"{OTHER_SECONDS}.0s | epoch time: {OTHER_SECONDS}s"
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", TRAINERS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(
    prefix=st.sampled_from(PREFIXES),
    seconds=st.lists(st.integers(1, 9000), min_size=2, max_size=5),
    first=st.sampled_from((1, 7, 98, 900)),
    coloured=st.booleans(),
    redrawn=st.booleans(),
)
def test_a_step_is_read_right_behind_any_prefix(
    name: str, prefix: str, seconds: list[int], first: int, coloured: bool, redrawn: bool
) -> None:
    trainer = TRAINERS[name]
    texts = [trainer.write(first + i, s) for i, s in enumerate(seconds)]
    if coloured:
        texts = [f"\x1b[1;32m{text}\x1b[0m" for text in texts]
    lines = [prefix + line for text in texts for line in text.split("\n")]
    log = ("\r" if redrawn and trainer.bar else "\n").join(lines) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.log")
        path.write_text(log, encoding="utf-8")
        os.utime(path, (1_772_500_000, 1_772_500_000))
        ingest([path], Store(Path(folder, "store")), Options())
        with open_session(Path(folder, "store"), "steps files") as session:
            rows = session.sql("SELECT step, step_time_ms, elapsed_ms FROM steps").fetchall()
            (unread,) = session.sql("SELECT sum(unparsed) FROM files").fetchall()[0]
    expected = {
        (
            first + i,
            s * 1000.0 if trainer.column == "step_time_ms" else None,
            s * 1000.0 if trainer.column == "elapsed_ms" else None,
        )
        for i, s in enumerate(seconds)
    }
    assert set(rows) == expected, log
    assert unread == 0, log
