"""A counter that most ports count alike tells of no cable: drawn fabrics, as tables."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from fabricobs.diagnosis.findings import Diagnosis
from fabricobs.diagnosis.run import diagnose

START = datetime(2026, 3, 2, 9)
SAMPLES = 16
INTERVAL = timedelta(seconds=30)
BYTES = 10**12  # that a port receives in an interval
Make = Callable[[Rows], Path]
# Errors in an interval: far more than 1e-12 of its bits.
BEYOND = 400
COUNTERS = ("rx_errors", "symbol_errors", "fec_uncorrected")


def fabric(chance: np.random.Generator) -> list[tuple[str, str]]:
    """Switches and their ports."""
    ports = int(chance.integers(6, 20))
    return [
        (f"leaf{switch}", f"Ethernet{4 * port}")
        for switch in range(int(chance.integers(2, 6)))
        for port in range(ports)
    ]


def samples(
    port: tuple[str, str], counter: str, total: np.ndarray, old: int
) -> list[dict[str, object]]:
    """What a port counted: totals of a counter, and of one that never rises."""
    other = "link_error_recovery"
    return [
        {
            "file_id": port[0], "line": number + 1, "format": "counters", "device": port[0],
            "port": port[1], "ts": START + number * INTERVAL, "ts_source": "inline",
            "rx_bytes": number * BYTES, counter: old + int(total[number]), other: old,
        }
        for number in range(SAMPLES)
    ]  # fmt: skip


def rising(chance: np.random.Generator, by: float) -> np.ndarray:
    """A total that rises by about so much in each interval."""
    return np.concatenate([[0], np.cumsum(chance.poisson(by, SAMPLES - 1))])


def told(found: Diagnosis) -> set[str]:
    """The ends of cables that are accused."""
    return {e.label for f in found.findings if f.kind == "link_errors" for e in f.entities}


def answer(found: Diagnosis) -> tuple[str, str]:
    question = found.verdict.questions[2]
    assert question.question == "Is a link sick?"
    return question.answer, question.evidence


@pytest.mark.parametrize("seed", range(12))
def test_what_most_ports_count_accuses_none_but_the_odd_one(make_store: Make, seed: int) -> None:
    chance = np.random.default_rng(seed)
    counter, ports = str(chance.choice(COUNTERS)), fabric(chance)
    sick = ports[int(chance.integers(len(ports)))] if seed % 2 else None
    rows = []
    for port in ports:
        usual = BEYOND * chance.lognormal(0, 0.3) * (chance.random() < 0.9)
        total = rising(chance, 100 * BEYOND if port == sick else usual)
        rows += samples(port, counter, total, 0)
    found = diagnose(make_store({"port_samples": rows}))
    assert told(found) == ({" ".join(sick)} if sick else set())
    said, text = answer(found)
    if sick is None:
        assert said == "unknown"
        assert counter in text and f"of {len(ports)} ports" in text


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_of_bad_cables_is_named(make_store: Make, seed: int) -> None:
    chance = np.random.default_rng(100 + seed)
    counter, ports = str(chance.choice(COUNTERS)), fabric(chance)
    bad = {ports[n] for n in chance.choice(len(ports), len(ports) // 4, replace=False)}
    rows = []
    for port in ports:
        rows += samples(port, counter, rising(chance, BEYOND * (port in bad)), 0)
    assert told(diagnose(make_store({"port_samples": rows}))) == {" ".join(port) for port in bad}


def test_a_command_that_lists_only_ports_with_errors_tells_of_no_majority(make_store: Make) -> None:
    chance = np.random.default_rng(7)
    ports = fabric(chance)[:10]
    rows = []
    for port in ports:
        rows += samples(port, "rx_errors", rising(chance, BEYOND), 3)
    assert told(diagnose(make_store({"port_samples": rows}))) == {" ".join(port) for port in ports}
