"""What the place of a file in the tree tells: which device it is about, and when it was taken.

Sites keep snapshots as `2025-03-04T10-15-02/leaf01/show_pfc_counters.txt`,
`leaf01/20250304_101502_pfc.txt`, `counters/leaf01.log` or `gpu0001/ethtool_eth0-1741083302.txt`.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import PurePath

from fabricobs.formats.values import parse_time

_STAMP = re.compile(
    r"(?<!\d)(?P<date>20\d\d-?\d\d-?\d\d)[-_T ](?P<clock>\d\d[-:]?\d\d(?:[-:]?\d\d)?)Z?(?!\d)"
)
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?:\d{3}|\d{6}|\d{9})?(?!\d)")
_SUFFIX = re.compile(r"\.(?:\d{1,3}|gz|zst|xz|bz2|txt|log|out|json|csv|prom|raw)$")

# Directory names that say what lies there, not whose it is.
_GENERIC = frozenset(
    "snapshots snapshot counters switch switches leaf leaves spine spines host hosts node nodes "
    "logs log raw data dump dumps sonic eos nxos ib roce fabric network net collected output "
    "nccl train inspector steps job jobs".split()
)
# Words of commands that file names repeat.
_COMMAND_WORDS = frozenset(
    "show interfaces interface intf counters counter pfc queue queues lldp table status "
    "ethtool sysfs hw port ports s detailed errors rates stats neighbors watermark "
    "dmesg kernel journal messages lsmod ibstat ibstatus ibdev2netdev rdma link statistic mlxlink "
    "mlnx qos dcb topo nvlink nvidia-smi db name map gnmi".split()
)


@dataclass(frozen=True, slots=True)
class Place:
    """Device and time that the path tells; `ts` in microseconds UTC, None where it is silent."""

    device: str | None = None
    ts: int | None = None
    ts_source: str = "none"


def read_place(below_root: PurePath, root_name: str, zone: tzinfo = UTC) -> Place:
    """Read the path of a file, given below the directory that was ingested."""
    ts = None
    source = "none"
    for part in (below_root.name, *reversed(below_root.parent.parts)):
        ts = _time_in(part, zone)
        if ts is not None:
            source = "filename"
            break
    return Place(_device(below_root, root_name), ts, source)


def _time_in(part: str, zone: tzinfo) -> int | None:
    match = _STAMP.search(part)
    if match is not None:
        digits = (match["date"] + match["clock"]).translate({ord("-"): None, ord(":"): None})
        return _moment(digits, zone)
    epoch = _EPOCH.search(part)
    return parse_time(epoch[0]) if epoch is not None else None


@lru_cache(maxsize=4096)
def _moment(digits: str, zone: tzinfo) -> int | None:
    """Return a stamp in microseconds; a snapshot of many devices has it in every name."""
    layout = "%Y%m%d%H%M%S" if len(digits) == 14 else "%Y%m%d%H%M"
    try:
        moment = datetime.strptime(digits, layout).replace(tzinfo=zone)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000


def _device(below_root: PurePath, root_name: str) -> str | None:
    for directory in reversed(below_root.parent.parts):
        name = _without_time(directory)
        if not name:
            continue
        if name.lower() in _GENERIC:
            break
        return name
    return _device_in_name(below_root.name) or _device_in_name(root_name)


def _device_in_name(file_name: str) -> str | None:
    stem = file_name
    while _SUFFIX.search(stem):
        stem = _SUFFIX.sub("", stem)
    words = [w for w in _without_time(stem).split("_") if w.lower() not in _COMMAND_WORDS]
    name = "_".join(word for word in words if word)
    return name if name and name.lower() not in _GENERIC else None


@lru_cache(maxsize=4096)
def _without_time(text: str) -> str:
    return _EPOCH.sub("", _STAMP.sub("", text)).strip("-_. ")
