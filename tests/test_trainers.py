"""Logs of trainers as their own code prints them: drawn numbers, at every width of a number."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from fabricobs.ingestion import ingest
from fabricobs.inputs import Options
from fabricobs.store.parts import Store
from fabricobs.store.session import open_session

BEGIN = datetime(2025, 3, 7, 14, 2, 11)
PER_EPOCH = 1251
# Where a column begins to overflow the width the trainer gives it, and where an epoch ends.
FIRST_STEPS = (1, 98, 998, 1240, 9998, 99_998)
Line = Callable[[int, float, float, datetime], str]


def _short(value: float) -> str:
    """Write a number as nanotron does: three digits and a unit."""
    for unit in ("", "K", "M"):
        if value < 999.5:
            return f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g}G"


def _nanotron(step: int, seconds: float, loss: float, now: datetime) -> str:
    return (
        f"[default0]:{now:%m/%d/%Y %H:%M:%S} [INFO|DP=0|PP=0|TP=0|gpu-node-3]: iteration: {step} / "
        f"500000 | consumed_tokens: {_short(step * 1e6)} | time_per_iteration_ms: "
        f"{_short(seconds * 1e3)} | tokens_per_sec: {_short(1e6 / seconds)} | "
        f"tokens_per_sec_per_gpu: {_short(1e5 / seconds)} | global_batch_size: 512 | lm_loss: "
        f"{loss:.3f} | lr: 0.0003 | model_tflops_per_gpu: 341 | grad_norm: 3.1"
    )


def _mindformers(step: int, seconds: float, loss: float, now: datetime) -> str:
    return (
        f"{now:%Y-%m-%d %H:%M:%S},123 - mindformers[mindformers/core/callback/callback.py:562] - "
        f"INFO - {{ Epoch:[{1:3d}/{1:3d}], step:[{step:5d}/{500_000:5d}], loss: {loss:5.3f}, "
        f"per_step_time: {seconds * 1e3:.0f}ms, lr: 1e-06, overflow cond: False, loss_scale: 1.0, "
        "global_norm: [3.2], train_throughput_per_npu: 161.213T"
    )


def _paddlenlp(step: int, seconds: float, loss: float, now: datetime) -> str:
    return (
        f"[{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}] [    INFO] - loss: {loss:.3f}, "
        f"learning_rate: 2e-06, global_step: {step}, interval_runtime: {seconds:.4f}, "
        f"interval_samples_per_second: {64 / seconds:.4f}, interval_tokens_per_second_per_device: "
        f"{8192 / seconds:.4f}, interval_steps_per_second: {1 / seconds:.4f}, epoch: 0.1"
    )


def _mmengine(step: int, seconds: float, loss: float, now: datetime) -> str:
    epoch, place = divmod(step - 1, PER_EPOCH)
    return (
        f"{now:%m/%d %H:%M:%S} - mmengine - INFO - Epoch(train)  [{epoch + 1}]"
        f"[{place + 1:4d}/{PER_EPOCH}]  lr: 3.3333e-04  eta: 1 day, 0:13:14  time: {seconds:.4f}  "
        f"data_time: 0.0335  memory: 970  loss: {loss:.4f}  loss_cls: 1.5"
    )


def _verl(step: int, seconds: float, loss: float, now: datetime) -> str:
    del now
    return (
        f"\x1b[36m(TaskRunner pid=4242)\x1b[0m step:{step} - global_seqlen/min:320913.000 - "
        f"actor/pg_loss:{loss:.3f} - actor/grad_norm:np.float64(0.5) - timing_s/gen:"
        f"{seconds / 2:.3f} - timing_s/step:{seconds:.3f} - perf/throughput:{9e3 / seconds:.3f}"
    )


def _olmo(step: int, seconds: float, loss: float, now: datetime) -> str:
    return (
        f"[{now:%Y-%m-%d %H:%M:%S}] INFO     [olmo.train:816, rank=0] "
        f"[step={step}/500000,epoch=0]\n    optim/total_grad_norm=1.25\n"
        f"    train/CrossEntropyLoss={loss:.3f}\n"
        f"    throughput/device/tokens_per_second={8192 / seconds:,.0f}\n"
        f"    throughput/device/batches_per_second={1 / seconds:.4f}"
    )


def _torchvision(step: int, seconds: float, loss: float, now: datetime) -> str:
    del now
    epoch, place = divmod(step, PER_EPOCH)
    return (
        f"Epoch: [{epoch}]  [{place:4d}/{PER_EPOCH}]  eta: 0:12:03  lr: 0.5  img/s: 441.2  loss: "
        f"{loss:.4f} ({loss:.4f})  acc1: 0.0000 (0.0000)  time: {seconds:.4f}  data: 0.1063  "
        "max mem: 10612"
    )


def _timm(step: int, seconds: float, loss: float, now: datetime) -> str:
    del now
    epoch, place = divmod(step, PER_EPOCH)
    return (
        f"Train: {epoch} [{place:>4d}/{PER_EPOCH} ({100 * place / PER_EPOCH:>3.0f}%)]  Loss: "
        f"{loss:#.3g} ({loss:#.3g})  Time: {seconds:.3f}s, {1024 / seconds:>7.2f}/s  "
        f"({seconds:.3f}s, {1024 / seconds:>7.2f}/s)  LR: 1.000e-06  Data: 0.011 (0.041)"
    )


def _openrlhf(step: int, seconds: float, loss: float, now: datetime) -> str:
    return (
        f"\x1b[36m(PPOTrainer pid=4242, ip=10.0.0.1)\x1b[0m INFO {now:%m-%d %H:%M:%S} "
        f"ppo_trainer.py:123] ✨ Global step {step}: {{'policy_loss': {loss}, 'actor_lr': 5e-07, "
        f"'timing/generation': {seconds / 2}, 'timing/step_total': {seconds}}}\n"
        "Train epoch [1/1]:  50%|#####     | 2/4 [00:12<00:12,  6.31s/it, policy_loss=0.1]"
    )


def _nemo_rl(step: int, seconds: float, loss: float, now: datetime) -> str:
    del now, loss
    return (
        f"\n========================= Step {step}/500000 =========================\n"
        "▶ Preparing batch...\n\n📊 Training Results:\n  • Avg Reward: 0.3486\n\n⏱️  Timing:\n"
        f"  • Total step time: {seconds:.2f}s\n"
        f"  • policy_training: {seconds / 2:.2f}s ({50.0:.1f}%)"
    )


def _ray_train(step: int, seconds: float, loss: float, now: datetime) -> str:
    del loss
    rows = {"time_this_iter_s": f"{seconds:.5f}", "time_total_s": f"{seconds * 9:.4f}"}
    box = "\n".join(f"│ {key:<38}{value:>10} │" for key, value in rows.items())
    return (
        f"Training finished iteration {step} at {now:%Y-%m-%d %H:%M:%S}. Total running time: 1min "
        f"8s\n╭{'─' * 50}╮\n│ Training result{' ' * 34}│\n├{'─' * 50}┤\n{box}\n╰{'─' * 50}╯"
    )


def _colossalai(step: int, seconds: float, loss: float, now: datetime) -> str:
    del loss
    return (
        f"Step:  20%|##        | {step}/200000 [00:22<01:31, 22.90s/it][{now:%m/%d/%y %H:%M:%S}] "
        "INFO     colossalai - colossalai - INFO:                    \n"
        f"                    INFO     colossalai - colossalai - INFO: Step time: {seconds:.3f}  "
    )


def _mindformers_2(step: int, seconds: float, loss: float, now: datetime) -> str:
    del now
    return (
        f"{{ step:[{step:5d}/{500_000:5d}], loss: {loss:10.6f}, per_step_time: "
        f"{int(seconds * 1e3):6d}ms, load_balancing_loss:   1.093977, lr: 1.000000e-05, grad_norm: "
        " 13.831877, throughput:   1.36T }"
    )


# How far a step time may be from the drawn one, in ms: by the digits the trainer prints of at most
# nine seconds, or by lines that are dated to the second.
TRAINERS: dict[str, tuple[Line, float]] = {
    "nanotron": (_nanotron, 5.1),
    "mindformers": (_mindformers, 0.51),
    "paddlenlp": (_paddlenlp, 1.1),
    "mmengine": (_mmengine, 0.051),
    "verl": (_verl, 0.51),
    "olmo": (_olmo, 1000.1),
    "torchvision": (_torchvision, 0.051),
    "timm": (_timm, 0.51),
    "openrlhf": (_openrlhf, 0.051),
    "nemo_rl": (_nemo_rl, 5.1),
    "ray_train": (_ray_train, 0.051),
    "colossalai": (_colossalai, 0.51),
    "mindformers 2": (_mindformers_2, 1.1),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_steps_are_those_the_trainer_took(tmp_path: Path, name: str) -> None:
    line, tolerance = TRAINERS[name]
    chance = np.random.default_rng(sorted(TRAINERS).index(name))
    drawn: dict[int, tuple[float, float]] = {}
    lines, now = [], BEGIN
    for first in FIRST_STEPS:
        for step in range(first, first + 12):
            seconds, loss = float(chance.uniform(2.0, 9.0)), float(chance.uniform(1.0, 12.0))
            now += timedelta(seconds=round(seconds, 3))
            drawn[step] = (seconds * 1e3, loss)
            lines.append(line(step, seconds, loss, now))
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written = now.replace(tzinfo=UTC).timestamp() + 60
    os.utime(path, (written, written))
    ingest([path], Store(tmp_path / "store"), Options())
    with open_session(tmp_path / "store", "steps step_times files") as session:
        rows = session.sql("SELECT step, ts, loss, format FROM steps").fetchall()
        times = session.sql("SELECT step, step_time_ms FROM step_times").fetchall()
        assert session.sql("SELECT sum(unparsed) FROM files").fetchall() == [(0,)]
    assert {form for *_, form in rows} == {name.split()[0]}
    assert sorted(step for step, *_ in rows) == sorted(drawn)
    for step, ts, loss, _ in rows:
        # NeMo-RL and ColossalAI print no loss beside the time, Ray what the site reports.
        if name not in {"nemo_rl", "ray_train", "colossalai"}:
            assert loss == pytest.approx(drawn[step][1], abs=0.051)
        assert ts is None or BEGIN <= ts <= now
    # The time of a step is told by the line before, where the lines' own times tell it.
    begun = {step for step in drawn if step - 1 in drawn}
    of_steps = {step: took for step, took in times if step in begun}
    assert of_steps.keys() == begun
    for step, took in of_steps.items():
        assert took == pytest.approx(drawn[step][0], rel=0, abs=tolerance)
