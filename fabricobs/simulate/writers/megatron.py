"""The trainer's output as Megatron prints it on the last rank."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabricobs.simulate import workload
from fabricobs.simulate.output import clock, write_lines
from fabricobs.simulate.run import Floats, Run, stream

_TIMER_STEPS = 50
_PEAK_LEARNING_RATE = 3e-4
_WARM_UP_STEPS = 100


def write_megatron(path: Path, run: Run, *, seed: int) -> None:
    """Write an iteration line every step and the timers of every fiftieth."""
    write_lines(path, _lines(run, stream(seed, 22)))


def _lines(run: Run, random: np.random.RandomState) -> Iterator[str]:
    noise = random.standard_normal((workload.STEPS, 2))
    for step in range(1, workload.STEPS + 1):
        slowest = float(run.step_seconds[step - 1].max())
        printed = clock(float(run.end[step - 1].max()) + 0.002)
        loss = 2.1 + 8.9 * np.exp(-step / 60) + 0.02 * noise[step - 1, 0]
        gradient_norm = (0.8 + 6 * np.exp(-step / 25)) * np.exp(0.1 * noise[step - 1, 1])
        learning_rate = _PEAK_LEARNING_RATE * min(1.0, step / _WARM_UP_STEPS)
        fields = [
            f"iteration {step:8d}/{workload.STEPS:8d}",
            f"consumed samples: {step * workload.SEQUENCES_PER_STEP:12d}",
            f"elapsed time per iteration (ms): {slowest * 1000:.1f}",
            f"throughput per GPU (TFLOP/s/GPU): {workload.throughput_teraflops(slowest):.1f}",
            f"learning rate: {learning_rate:.6E}",
            f"global batch size: {workload.SEQUENCES_PER_STEP:5d}",
            f"lm loss: {loss:.6E}",
            "loss scale: 1.0",
            f"grad norm: {gradient_norm:.3f}",
            "number of skipped iterations:   0",
            "number of nan iterations:   0 |",
        ]
        yield f" [{printed:%Y-%m-%d %H:%M:%S.%f}] " + " | ".join(fields)
        if step % _TIMER_STEPS == 0:
            yield from _timers(run, step - 1)


def _timers(run: Run, row: int) -> Iterator[str]:
    collectives = run.collective_seconds[row]
    optimizer = run.arrival[row, 1] - run.transfer_end[row, 0]
    timers: dict[str, Floats] = {
        "forward-backward": run.compute[row] - optimizer,
        "batch-generator": run.data[row],
        "all-grads-sync": collectives[0],
        "optimizer": optimizer,
        "params-all-gather": collectives[1],
    }
    yield "(min, max) time across ranks (ms):"
    for name, seconds in timers.items():
        lowest, highest = seconds.min() * 1000, seconds.max() * 1000
        yield f"    {(name + ' ').ljust(48, '.')}: ({lowest:.2f}, {highest:.2f})"
