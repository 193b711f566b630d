"""Series of Prometheus metrics, as its API, promtool, VictoriaMetrics and Grafana export them.

- JSON: answers of `query` and `query_range`, `promtool -o json`, lines of VictoriaMetrics'
  `/api/v1/export`.
- Text of promtool: `name{label="x"} =>` above lines of `value @[time]`, or before one.
- CSV: a column a series, named by its labels, a column a metric, or a row a sample with the
  metric's name in a column.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabricobs.formats.documents.jsontext import BEGINS, documents
from fabricobs.formats.documents.prometheus import labels_in
from fabricobs.formats.records.csv_records import split_header, split_line

_NAME = r"[A-Za-z_:][\w:]*"
# Each part begins with what the one before cannot hold: time grows with the length alone.
_SERIES = rf'(?:(?P<name>{_NAME})[ \t]*)?\{{(?P<labels>[^{{}}="]*="[^{{}}]*)\}}'
_JSON = re.compile(
    r'"resultType"|"metric"\s*:\s*\{[^{}]*"__name__"[^{}]*\}\s*,\s*"values?"\s*:\s*\['
)
_PROMTOOL = re.compile(
    rf"^[ \t]*{_SERIES} =>(?: (?P<value>\S+) @\[(?P<ts>[\d.]+)\])?[ \t\r]*$", re.M
)
_POINT = re.compile(r"\s*(?P<value>\S+) @\[(?P<ts>[\d.]+)\]\s*$")
_COLUMN = re.compile(rf"\s*{_SERIES}\s*$")
_TIMES = frozenset({"time", "timestamp", "ts", "date", "datetime", "@timestamp", "_time"})
_NAMES = frozenset({"__name__", "metric", "metric_name"})
_VALUE = re.compile(r"values?(?: #\w+)?", re.IGNORECASE)
# Grafana may write the unit it shows; one that scales a number is no number.
_CELL = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?(?:°C|C|W|MHz|%)?")


@dataclass(frozen=True, slots=True)
class Series:
    """Labels, the metric's name as `__name__` if told, and points of time and value, as text."""

    labels: Mapping[str, str]
    points: list[tuple[str, str]]
    problem: str = ""


def shows_series(text: str) -> bool:
    """Say whether a text, of which the beginning may be all, is one of these exports."""
    if _JSON.search(text) or _PROMTOOL.search(text):
        return True
    names, _ = split_header(_first_line(text))
    if not any(name.lower() in _TIMES for name in names):
        return False
    return "__name__" in names or any(_COLUMN.match(_unquoted(name)) for name in _header(text)[0])


def is_table_of(text: str, knows: Callable[[str], bool]) -> bool:
    """Say whether a text is CSV with a time and a column or a row a metric that `knows` names."""
    lines = text.split("\n", 2)
    names, delimiter = split_header(_first_line(text))
    if not any(name.lower() in _TIMES for name in names):
        return False
    if any(knows(name) for name in names):
        return True
    row = dict(zip(names, split_line(lines[1], delimiter), strict=False)) if len(lines) > 1 else {}
    return any(knows(row.get(name, "")) for name in names if name.lower() in _NAMES)


def all_series(text: str, knows: Callable[[str], bool]) -> Iterator[Series]:
    """Yield the series of an export; `knows` says which names are those of metrics."""
    if BEGINS.match(text.lstrip("\ufeff\n\r ")):
        for document in documents(text):
            if document.problem:
                yield Series({}, [], document.problem)
            yield from _of_json(document.value)
    elif _PROMTOOL.search(text):
        yield from _of_promtool(text)
    else:
        yield from _of_table(text, knows)


def _of_json(document: Any) -> Iterator[Series]:
    results = document
    if isinstance(document, dict):
        data = document.get("data")
        results = data.get("result") if isinstance(data, dict) else [document]
    for result in results if isinstance(results, list) else ():
        if not isinstance(result, dict) or not isinstance(result.get("metric"), dict):
            continue
        labels = {str(key): str(value) for key, value in result["metric"].items()}
        times, values = result.get("timestamps"), result.get("values")
        pairs: list[Any]
        if isinstance(times, list) and isinstance(values, list):
            pairs = [[ms / 1000, v] for ms, v in zip(times, values, strict=False) if _is_time(ms)]
        else:
            pairs = values if isinstance(values, list) else [result.get("value")]
        points = [
            (f"{point[0]:.6f}", str(point[1]))
            for point in pairs
            if isinstance(point, list) and len(point) == 2 and _is_time(point[0])
        ]
        yield Series(labels, points)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_promtool(text: str) -> Iterator[Series]:
    labels: dict[str, str] = {}
    points: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = _PROMTOOL.match(line)
        if found is not None:
            if points:
                yield Series(labels, points)
            labels, points = _labels_of(found), []
            if found["value"] is not None:
                points.append((found["ts"], found["value"]))
        elif (point := _POINT.match(line)) is not None and labels:
            points.append((point["ts"], point["value"]))
        elif line.strip():
            yield Series({}, [], f"no point of a series: {line.strip()[:40]}")
    if points:
        yield Series(labels, points)


def _labels_of(found: re.Match[str]) -> dict[str, str]:
    named = {} if found["name"] is None else {"__name__": found["name"]}
    return named | labels_in(found["labels"])


def _of_table(text: str, knows: Callable[[str], bool]) -> Iterator[Series]:
    names, delimiter = _header(text)
    time = next((i for i, name in enumerate(names) if name.lower() in _TIMES), None)
    if time is None:
        return
    series = {i: _labels_of(f) for i, name in enumerate(names) if (f := _COLUMN.match(name))}
    metrics = {i: {"__name__": name} for i, name in enumerate(names) if knows(name)}
    value = next((i for i, name in enumerate(names) if _VALUE.fullmatch(name)), None)
    said = set(series) | set(metrics) | {time} | (set() if value is None else {value})
    shared = [i for i in range(len(names)) if i not in said]
    by_labels: dict[tuple[tuple[str, str], ...], list[tuple[str, str]]] = {}
    unread = 0
    for line in text.split("\n")[1 + _lines_above(text) :]:
        cells = [cell.strip() for cell in split_line(line.rstrip("\r"), delimiter)]
        if len(cells) != len(names):
            unread += bool(line.strip())
            continue
        told = {"__name__" if names[i].lower() in _NAMES else names[i]: cells[i] for i in shared}
        columns = {**series, **{i: told | named for i, named in metrics.items()}}
        if value is not None and not columns:
            columns = {value: told}
        for i, labels in columns.items():
            number = _CELL.fullmatch(cells[i])
            if number is not None:
                known = by_labels.setdefault(tuple(labels.items()), [])
                known.append((cells[time], number[1]))
    for pairs, points in by_labels.items():
        yield Series(dict(pairs), points)
    if unread:
        yield Series({}, [], f"{unread:,} lines have not {len(names)} columns")


def _header(text: str) -> tuple[list[str], str]:
    """Split the header; names of series hold commas and doubled quotes."""
    line = _first_line(text)
    _, delimiter = split_header(line)
    if "{" in line:  # commas inside labels are not those between columns
        delimiter = next((d for d in "\t;" if d in line), ",")
    return [name.strip() for name in split_line(line, delimiter)], delimiter


def _unquoted(name: str) -> str:
    return name.strip().strip('"').replace('""', '"')


def _first_line(text: str) -> str:
    return text.lstrip("\ufeff\n\r").partition("\n")[0].rstrip("\r")


def _lines_above(text: str) -> int:
    return text[: len(text) - len(text.lstrip("\ufeff\n\r"))].count("\n")
