"""PyTorch flight recorder: the last collectives of one rank, as pickle or JSON.

An entry counts as a line, then each process group's status. The duration is there only if the job
ran with TORCH_NCCL_ENABLE_TIMING=1; the time is that of the enqueueing on the host.
"""

import re
from typing import Any

from fabricobs.formats.decompression import SourceError
from fabricobs.formats.documents.jsontext import loads
from fabricobs.formats.readers.names import element_bytes, group_id, operation, rank_list
from fabricobs.formats.readers.plain_pickle import PickleError, read_pickle
from fabricobs.formats.values import Unfit, beyond_64_bits
from fabricobs.formats.whole import WholeFile, scaled_cell, text, whole, whole_cell

_PEERS = re.compile(r"(\d+)\s*(->|<-)\s*(\d+)")


def read_flight_recorder(file: WholeFile) -> None:
    """Read one dump; SourceError if it holds more than plain values or is broken."""
    data = file.read_all()
    try:
        dump = read_pickle(data) if data[:1] == b"\x80" else loads(data)
    except (PickleError, ValueError, RecursionError) as error:
        file.miss(1, str(error), "")
        raise SourceError(f"flight recorder dump: {error}") from error
    if not isinstance(dump, dict):
        file.miss(1, "no dictionary", "")
        return
    _report_wrong_types(file, dump)
    entries = _list(dump.get("entries"))
    status = _dict(dump.get("pg_status"))
    groups = _Groups(_dict(dump.get("pg_config")), entries, status)
    rank = whole(dump.get("rank"))
    if rank is None:
        rank = file.context.from_path.get("rank")
    file.add_versions(rank, dump.get("nccl_version"))
    for line, entry in enumerate(entries, 1):
        row = _entry(entry, groups, rank)
        if row is None:
            file.miss(line, "entry without operation", str(entry))
            continue
        created = whole_cell(entry.get("time_created_ns"))
        ts = created // 1000 if isinstance(created, int) else created
        file.add("collectives", row, line, ts)
        if row["state"] != "completed" or line == len(entries):
            _add_frames(file, entry, row, groups.title_of(entry), line, ts)
        file.tally.read()
        file.flush()
    for line, (key, state) in enumerate(status.items(), len(entries) + 1):
        if isinstance(state, dict):
            file.add("nccl_events", _progress(key, state, groups, rank), line)
            file.tally.read()
        else:
            file.miss(line, "status is no dictionary", str(state))


def _report_wrong_types(file: WholeFile, dump: dict[Any, Any]) -> None:
    """Account for the parts of a dump that are not what they should be."""
    wanted = (("entries", list | tuple, "list"), ("pg_status", dict, "dictionary"),
              ("pg_config", dict, "dictionary"))  # fmt: skip
    for name, types, called in wanted:
        part = dump.get(name)
        if part is not None and not isinstance(part, types):
            file.miss(1, f"{name} is no {called}", str(part))


class _Groups:
    """The process groups of a dump: ranks by name, and the name behind a status's number."""

    def __init__(self, config: dict[Any, Any], entries: list[Any], status: dict[Any, Any]) -> None:
        self.config = {str(name): _dict(group) for name, group in config.items()}
        self._names = _names_by_id(entries)
        # Groups are numbered and named in the order of their creation: with as many numbers as
        # names they pair up. Not documented, so entries that contradict it rule it out.
        paired = dict(zip(sorted(map(str, status), key=_order), self._sorted(), strict=False))
        if len(paired) == len(status) == len(self.config) and all(
            paired.get(key, name) == name for key, name in self._names.items()
        ):
            self._names = paired

    def _sorted(self) -> list[str]:
        return sorted(self.config, key=_order)

    def name_of(self, key: Any) -> str | None:
        return self._names.get(str(key))

    def ranks_of(self, name: str | None) -> list[int] | None:
        """Return the global ranks of a group, in order; None if the dump does not list them."""
        return rank_list(self.config.get(str(name), {}).get("ranks"))

    def title(self, name: str | None) -> str | None:
        """Return name and description of a group."""
        if name is None:
            return None
        return " ".join(filter(None, (name, text(self.config.get(name, {}).get("desc")))))

    def title_of(self, entry: dict[Any, Any]) -> str | None:
        """Return name and description of the group of an entry."""
        group = [str(part) for part in _list(entry.get("process_group"))]
        if len(group) > 1:
            return " ".join(filter(None, group[:2]))
        return self.title(group[0]) if group else None


def _names_by_id(entries: list[Any]) -> dict[str, str]:
    names: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, dict) and _list(entry.get("process_group")):
            names[str(entry.get("pg_id"))] = str(entry["process_group"][0])
    return names


def _entry(entry: Any, groups: _Groups, rank: int | None) -> dict[str, Any] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("profiling_name"), str):
        return None
    name, peers = _operation(entry["profiling_name"])
    group = [str(part) for part in _list(entry.get("process_group"))]
    group_name = group[0] if group else None
    ranks = groups.ranks_of(group_name)
    two_sided = bool(entry.get("is_p2p"))
    seq = entry.get("p2p_seq_id" if two_sided else "collective_seq_id", entry.get("seq_id"))
    duration_us = scaled_cell(entry.get("duration_ms"), 1000.0)
    return {
        "comm_id": group_id(group_name, ranks),
        "comm_name": group[1] if len(group) > 1 else None,
        "rank": ranks.index(rank) if ranks and rank in ranks else None,
        "global_rank": rank,
        "nranks": len(ranks) if ranks else None,
        "op": name,
        "seq": whole_cell(seq),
        "peer": peers,
        "bytes": _bytes(name, entry),
        "datatype": ",".join(sorted(set(map(str, _list(entry.get("input_dtypes")))))) or None,
        "state": text(entry.get("state")),
        "duration_us": duration_us,
        "timing_source": "cuda_event" if isinstance(duration_us, float) else None,
    }


def _add_frames(
    file: WholeFile,
    entry: dict[Any, Any],
    row: dict[str, Any],
    process_group: str | None,
    line: int,
    ts: Any,
) -> None:
    """Add where in the program the call stands: its Python frames, the innermost first."""
    frames = [frame for frame in _list(entry.get("frames")) if isinstance(frame, dict)]
    places = [(f.get("name"), f.get("filename"), f.get("line")) for f in frames]
    call = {"rank": row["global_rank"], "process_group": process_group, "seq": row["seq"]}
    file.add_frames(places, call, line, ts)


def _operation(profiling_name: str) -> tuple[str, int | None]:
    """Split `nccl:send 1->2` into the operation and the peer: the second rank."""
    name, _, rest = profiling_name.partition(":")[2].partition(" ")
    found = _PEERS.search(rest)
    return operation(name or profiling_name), None if found is None else int(found[3])


def _bytes(name: str, entry: dict[Any, Any]) -> int | Unfit | None:
    """Size the message as NCCL Inspector does: the per-rank part of gather and scatter."""
    side = "output" if name in {"ReduceScatter", "Recv"} else "input"
    total = 0
    sizes, types = _list(entry.get(f"{side}_sizes")), _list(entry.get(f"{side}_dtypes"))
    for position, shape in enumerate(sizes):
        width = element_bytes(types[position] if position < len(types) else None)
        elements = 1
        for extent in _list(shape):
            elements *= whole(extent) or 0
            if abs(elements) >= 1 << 63:
                return beyond_64_bits("the product of the extents")
        if width is None:
            return None
        total += elements * width
    return whole_cell(total) if sizes else None


def _progress(key: Any, state: dict[Any, Any], groups: _Groups, rank: int | None) -> dict[str, Any]:
    name = groups.name_of(key)
    counts = {
        short: whole_cell(state.get(f"{short}_collective"))
        for short in ("last_enqueued", "last_started", "last_completed")
    }
    return {
        "rank": rank,
        "level": "INFO",
        "kind": "group_progress",
        "process_group": groups.title(name),
        # -1 stands for "never seen".
        **{short: None if count == -1 else count for short, count in counts.items()},
        "text": f"process group {key} of this rank",
    }


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdecimal() else (2**62, name)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _dict(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
