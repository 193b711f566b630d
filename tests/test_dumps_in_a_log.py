"""Dumps of several lines that a log service stamps: each reading has the time of its lines."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from fabricobs.formats.recognition.catalogue import Catalogue, load_catalogue
from fabricobs.formats.samples import read_sample

BEGIN = datetime(2025, 3, 4, 10, 15, 2)  # the samples that tell a time tell this one, or a date
APART = timedelta(seconds=30)
OF_SEVERAL_LINES = {"keyvalue", "table", "paragraphs", "walk", "sections", "matrix"}
# Behind a stamp the hosts that pdsh writes are not taken off: its lines are told unread.
UNREAD = {("sysfs_dump", 1)}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def samples() -> Iterator[Any]:
    for name, form in sorted(load_catalogue().formats.items()):
        if OF_SEVERAL_LINES.isdisjoint(form.definition.reader):
            continue
        for number, sample in enumerate(form.definition.sample):
            if not sample.base64 and (name, number) not in UNREAD:
                yield pytest.param(name, number, id=f"{name}-{number}")


def stamped(text: str, times: int) -> str:
    """Write a text again and again, as containerd keeps what a loop in a container prints."""
    lines = []
    for turn in range(times):
        for number, line in enumerate(text.rstrip("\n").split("\n")):
            moment = BEGIN + turn * APART + number * timedelta(microseconds=11)
            lines.append(f"{moment.isoformat(timespec='microseconds')}000Z stdout F {line}\n")
    return "".join(lines)


@pytest.mark.parametrize(("name", "number"), list(samples()))
def test_each_reading_has_its_time(catalogue: Catalogue, name: str, number: int) -> None:
    form = catalogue.formats[name]
    sample = form.definition.sample[number]
    bare, _ = read_sample(form, sample, catalogue)
    found, _ = read_sample(
        form, sample.model_copy(update={"text": stamped(sample.text, 3)}), catalogue
    )
    for table, rows in bare.items():
        assert len(found.get(table, [])) == 3 * len(rows), table
        # A date that the dump itself shows stands above what is around it.
        shows = {row.get("ts_source") for row in rows} & {"inline", "header", "derived"}
        if "ts" in found[table][0] and not shows:
            turns = [(row["ts"].replace(tzinfo=None) - BEGIN) // APART for row in found[table]]
            assert sorted(turns) == sorted([0, 1, 2] * len(rows)), table
