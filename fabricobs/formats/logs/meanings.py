"""What the fields of a log service's record mean: the host, pod, node, rank and time of a line.

Fields are known by the ends of their names, whatever product wrote them: `kubernetes.pod_name`,
`resource.labels.pod_name` and `PodName` are the pod.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fabricobs.formats.values import parse_time

# By meaning, the better names first; matched with the end of a field's path in small letters, every
# other sign as `_`.
_ENDS = {
    "ts": (
        "source_realtime_timestamp", "realtime_timestamp", "timestamp", "time", "ts", "eventtime",
        "timegenerated", "datetime", "asctime", "date", "tsns", "timestamp_ns",
    ),
    "pod": ("pod_name", "podname", "pod"),
    "node": (
        "node_name", "nodename", "kubernetes_host", "kube_node", "resource_name", "computer",
        "node",
    ),
    "host": ("hostname", "host_name", "source_host", "host"),
    "torch_rank": ("global_rank", "rank", "process_index"),
    "stream": ("logstreamname", "logstream", "log_stream_name", "log_stream"),
}  # fmt: skip
# Names that end like one of these and mean something else.
_OTHERS = re.compile(
    r"(?:^|_)(?:(?:local|node|group|role)_rank"
    r"|(?:ingest|ingestion|receive|received|observed|created?|start|end|elapsed|first|last)_?\w*"
    r"|observedtimestamp|receivetimestamp|ingestiontime|starttime|endtime)$"
)
_NOT_A_LETTER = re.compile(r"[^a-z0-9]+")
_BARE_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_NAME = re.compile(r"[A-Za-z0-9][\w.:-]*")
_ALGO = re.compile(r"(?:^|/)(algo-\d+)(?:-\d+)?$")
_LABEL = re.compile(r"""([\w.-]+)\s*[=:]\s*"([^"]*)\"""")


def meaning_of(path: str) -> tuple[str, int] | None:
    """Return what a field's path means and how good a name for it that is (0 is best)."""
    name = _NOT_A_LETTER.sub("_", path.lower()).strip("_")
    if _OTHERS.search(name):
        return None
    for meaning, ends in _ENDS.items():
        for place, end in enumerate(ends):
            if name == end or name.endswith(f"_{end}"):
                return meaning, place
    return None


def fields_by_meaning(fields: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the known values in the fields of a record by their meaning, nearest fields first.

    A name is a name and a time is a time, or the field is passed over. `@timestamp` is in UTC, also
    where it names no zone: so CloudWatch and Elasticsearch define it.
    """
    told: dict[str, tuple[int, str]] = {}
    for path, value in fields:
        meaning = meaning_of(path)
        text = _sound(meaning[0], value) if meaning is not None else None
        if meaning is None or text is None:
            continue
        if path.rpartition(".")[2] == "@timestamp" and _BARE_TIME.fullmatch(text):
            text += "Z"
        known = told.get(meaning[0])
        if known is None or meaning[1] < known[0]:
            told[meaning[0]] = meaning[1], text
    return {meaning: text for meaning, (_, text) in told.items()}


def labels_by_meaning(labels: str) -> Mapping[str, str]:
    """Return the same of labels such as `pod="worker-1", node_name="gpu01"`."""
    return fields_by_meaning(_LABEL.findall(labels))


def host_of_stream(stream: str) -> str | None:
    """Return the host that a stream of SageMaker is named after: JOB/algo-1-1700000000."""
    found = _ALGO.search(stream)
    return found[1] if found is not None else None


def _sound(meaning: str, value: Any) -> str | None:
    """Return a value as a text if it can be what its name says."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = f"{value:.6f}" if isinstance(value, float) else str(value).strip()
    if meaning == "ts":
        try:
            parse_time(text)
        except (ValueError, OverflowError):
            return None
        return text
    if meaning == "torch_rank":
        return text if text.isdecimal() and len(text) < 8 else None
    if meaning == "stream":
        return text
    return text if _NAME.fullmatch(text) else None
