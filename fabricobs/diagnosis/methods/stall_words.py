"""A job that stands still, in words: who is missing, what it does, what shows it, who agrees."""

from collections.abc import Mapping, Sequence

import polars as pl

from fabricobs.diagnosis.findings import Entity
from fabricobs.diagnosis.methods.stall import LOADS, SAVES, Source, Stall
from fabricobs.diagnosis.name_lists import at_most, enumerated

_SHOWN = 3
# What a source is called in a sentence.
_SOURCES: Mapping[Source, str] = {
    "recorder": "the flight recorders",
    "order": "the operations that were called",
    "dead": "NCCL's RAS",
    "ras": "NCCL's RAS",
    "gpu": "the flight recorders",
    "stack": "the Python stacks",
}
_MEBIBYTE = 1 << 20


def words_of(stall: Stall, culprits: Sequence[Entity], ranks: int, size: int) -> dict[str, object]:
    """Return what the wording of the model names; `size` is the number of ranks, 0 if unknown."""
    named = culprits[0].type != "job"
    who = enumerated([culprit.label for culprit in culprits[:_SHOWN]]) if named else "The job"
    doing = _doing(stall) if named else None
    return {
        "who": who,
        "host": culprits[0].host or "the hosts",
        "process": culprits[0].label if named else "each rank",
        "pid": _pid(stall) if named and not stall.taken_down else "PID",
        "stands": _stands(stall, named=named),
        "since": "" if stall.last_step is None else f" after step {stall.last_step}",
        "doing": "" if doing is None else f", {doing}",
        "log": _log_of(stall) if named else "",
        "when": "" if stall.start is None else f" (from {stall.start:%H:%M:%S} UTC on)",
        "waiting": _number_waiting(stall, ranks),
        "ranks": _ranks_of(ranks, size),
        "call": _calls(stall.waiting),
        "gave_up": _gave_up(stall),
        "proof": _proof(stall, who, named=named),
        "details": "".join(
            (_call_told(stall), _whereabouts(stall, named=named), _agreement(stall))
        ),
        "no_progress": None if stall.by_progress or stall.stuck else "",
        "loads": "" if doing == LOADS else None,
        "saves": "" if doing == SAVES else None,
        "other_call": "" if stall.source == "order" else None,
        "ended": _ended(stall),
    }


def _doing(stall: Stall) -> str | None:
    """Return what the missing ranks do where all that tell do the same, and do not wait."""
    if stall.source == "order":
        return "in another collective"
    told = stall.missing.filter(~pl.col("waits").fill_null(True))["doing"].drop_nulls().unique()
    return str(told[0]) if len(told) == 1 else None


def _number_waiting(stall: Stall, ranks: int) -> int:
    """Return how many wait: the others where RAS lists only those that are behind."""
    return len(stall.waiting) or max(ranks - len(stall.missing), 1)


def _pid(stall: Stall) -> str:
    """Return the process of the first missing rank, PID where no log tells it."""
    pid = stall.missing["pid"][0] if len(stall.missing) else None
    return "PID" if pid is None else str(pid)


def _ranks_of(seen: int, size: int) -> str:
    """Return the number of ranks: of the job if a log tells it, else of those that tell."""
    if size:
        return _counted(max(size, seen))
    return f"{_counted(seen)} that tell{'s' if seen == 1 else ''}"


def _calls(waiting: pl.DataFrame) -> str:
    """Return the collectives the ranks wait in, with their ranks where there are several.

    The watchdog's own words, else the recorded call, else what RAS counts.
    """
    named = waiting.select(
        op=pl.coalesce("op", pl.when("call_open").then("call_op"), "ras_op"),
        seq=pl.coalesce("seq", pl.when("call_open").then("call_seq"), "ras_furthest"),
    ).drop_nulls()
    calls = named.group_by("op", "seq").len().sort(["len", "seq"], descending=[True, False])
    if calls.is_empty():
        return "a collective"
    told = [f"{op} {seq}" for op, seq, _ in calls.iter_rows()]
    if len(told) > 1 or len(named) < len(waiting):
        told = [f"{call} ({_counted(n)})" for call, n in zip(told, calls["len"], strict=True)]
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return f"{', '.join(told[:_SHOWN])}{more}"


def _counted(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks:,} ranks"


def _log_of(stall: Stall) -> str:
    """Return the file in which the first missing rank logs; empty where none tells."""
    log = stall.missing["log"][0] if len(stall.missing) else None
    return "" if log is None else f" in {log}"


def _stands(stall: Stall, *, named: bool) -> str:
    if not named:
        return "stands still"
    if stall.stuck:
        return "is stuck" if len(stall.missing) == 1 else "are stuck"
    if stall.by_progress:
        return "is missing" if len(stall.missing) == 1 else "are missing"
    return "stopped reporting"


def _gave_up(stall: Stall) -> str:
    if not stall.waiting["timed_out"].any():
        return "No watchdog reports a time-out."
    who, call = _counted(len(stall.waiting)), _calls(stall.waiting)
    return f"{who} timed out (watchdog) after {stall.waited:.0f} s in {call}."


def _ended(stall: Stall) -> str:
    if not stall.taken_down:
        return ""
    ended = _counted(stall.taken_down)
    return f" The watchdog ended the processes of {ended}: the job is over."


def _proof(stall: Stall, who: str, *, named: bool) -> str:
    """Return what shows that these ranks are missing, and whether they arrived."""
    one = len(stall.missing) == 1
    be = "was" if one else "were"
    if not named:
        return "Which rank is missing these logs do not tell: look at network and GPUs."
    if stall.source == "unfinished":
        told = ", ".join(
            f"rank {rank} {count:,.0f}"
            for rank, count in stall.missing.select("rank", "unfinished").iter_rows()
        )
        return (
            "By the flight recorders collectives that peers have ended are launched and not ended: "
            f"{told}. A GPU that does not finish them blocks its groups."
        )
    own = "its own watchdog" if one else "their own watchdogs"
    gpu = "its GPU has" if one else "their GPUs have"
    if stall.source == "order":
        return f"{who} called another operation than the peers: {_odd_call(stall)}."
    if stall.source == "ras":
        counts = f"{who} {be} behind ({_counts(stall)}) and ahead in no other communicator"
        return f"NCCL's RAS counts that {counts}: the call never came."
    sentences: Mapping[Source, str] = {
        "recorder": f"By sequence numbers {who} {be} behind the group, and waited for no "
        "collective.",
        "dead": f"NCCL's RAS does not reach the process of {who}, or calls it dead.",
        "gpu": f"{who} launched the collective and {gpu} not begun it, as the GPUs of the peers "
        "have: what was launched before does not end there.",
        "stack": f"By the Python stacks {who} alone {be} not waiting for the others or for a GPU.",
    }
    silence = f"{who} alone reported nothing: {own} did not time out."
    return sentences.get(stall.source, silence)


def _odd_call(stall: Stall) -> str:
    """Return what the odd rank calls, and what its peers do."""
    first = stall.missing.row(0, named=True)
    if first["odd_op"] is None:
        return (
            f"{_counts(stall)}, and is ahead in another operation of the communicator, by NCCL's "
            "RAS"
        )
    own, usual = first["odd_op"], first["usual_op"]
    if own == usual:
        own, usual = f"{own} of {_size(first['call_bytes'])}", f"of {_size(first['usual_bytes'])}"
    return f"{own} instead of {usual} as number {first['call_seq']} of its group"


def _counts(stall: Stall) -> str:
    """Return what RAS counts of the first missing rank."""
    first = stall.missing.row(0, named=True)
    operation = "operations" if first["ras_op"] is None else first["ras_op"]
    return (
        f"{first['ras_launched']:,} of {first['ras_furthest']:,} {operation} of the communicator "
        f"{first['ras_comm']}"
    )


def _size(count: int | None) -> str:
    if count is None:
        return "unknown size"
    if count < _MEBIBYTE:
        return f"{count:,} bytes"
    mebibytes = count / _MEBIBYTE
    return f"{mebibytes:.4g} MiB" if mebibytes < 1024 else f"{mebibytes / 1024:,.1f} GiB"


def _call_told(stall: Stall) -> str:
    """Return which call most ranks wait in, as their flight recorders tell it."""
    calls = stall.waiting.filter("call_open").drop_nulls("call_op")
    if calls.is_empty():
        return ""
    columns = ["call_op", "call_seq", "call_group", "call_bytes"]
    places = ["call_function", "call_place", "call_line"]
    most = calls.group_by(columns, maintain_order=True).len().sort("len", descending=True).row(0)
    op, seq, group, count, _ = most
    same = calls.filter(pl.col("call_op") == op, pl.col("call_seq") == seq).drop_nulls(places[:2])
    size = "" if count is None else f", {_size(count)}"
    at = f", called in {_frame(*same.select(places).row(0))}" if len(same) else ""
    return f" The call is {op} {seq} of process group {group}{size}{at}."


def _frame(function: str, place: str, line: int | None) -> str:
    where = place if line is None else f"{place}:{line}"
    return f"{function} ({where})"


def _whereabouts(stall: Stall, *, named: bool) -> str:
    """Return where the programs of the missing ranks and of their peers stand, if dumped."""
    told = []
    seen = (
        stall.missing.filter(pl.col("function").is_not_null()) if named else stall.missing.clear()
    )
    if len(seen):
        told.append(_stack_told(seen.row(0, named=True)))
    peers = stall.waiting.filter(pl.col("waits").fill_null(False))
    if len(peers):
        kinds = peers["doing"].value_counts(sort=True)
        enough = [f"{_counted(n)} {doing}" for doing, n in kinds.iter_rows()]
        told.append(f" By their Python stacks the peers are waiting: {', '.join(enough)}.")
    if named and seen.is_empty() and stall.source != "dead":
        told.append(_stack_missing(stall.nameless))
    return "".join(told)


def _stack_missing(nameless: pl.DataFrame) -> str:
    """Return what is known where no stack is known to be that of the missing rank."""
    free = nameless.filter(~pl.col("waits"))
    if nameless.is_empty():
        return " What it does is unknown: no Python stack of it was dumped."
    text = f" Nothing tells the ranks of {len(nameless):,} processes whose Python stack was dumped"
    if len(free) == 1 < len(nameless):
        only = free.row(0, named=True)
        return f"{text}; all but one wait.{_stack_told(only)}"
    return f"{text}: what it does is unknown."


def _stack_told(row: Mapping[str, object]) -> str:
    """Return one sentence: what a rank does, and where in its program."""
    on = f" on {row['host']}"
    who = f"process {row['pid']}{on}" if row["rank"] is None else f"rank {row['rank']}"
    doing = "" if row["doing"] is None else f"{row['doing']}: "
    where = _frame(str(row["function"]), str(row["place"]), _whole(row["code_line"]))
    own = ""
    if row["own_function"] is not None:
        frame = _frame(str(row["own_function"]), str(row["own_place"]), _whole(row["own_line"]))
        own = f", called in {frame}"
    return f" By its Python stack {who} is {doing or 'in '}{where}{own}."


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _agreement(stall: Stall) -> str:
    """Return which other sources name the same ranks, and which name others."""
    sentences = []
    agree = list(dict.fromkeys(_SOURCES[source] for source in stall.agree))
    if agree:
        verb = "agrees" if agree == [_SOURCES["ras"]] else "agree"
        sentences.append(f"{enumerated(agree)} {verb}.")
    if len(stall.unplaced):
        sentences.append(
            f"NCCL's RAS counts {_names(stall.unplaced)} behind; nothing tells its rank."
        )
    for source, ranks in stall.others.items():
        verb = "names" if _SOURCES[source] == _SOURCES["ras"] else "name"
        sentences.append(
            f"{_SOURCES[source]} {verb} {_names(ranks)} instead: the sources do not agree."
        )
    return "".join(f" {sentence[0].upper()}{sentence[1:]}" for sentence in sentences)


def _names(ranks: pl.DataFrame) -> str:
    """Return the ranks, or processes whose rank nothing tells, in a sentence."""
    names = [
        f"process {pid} on {host}" if rank is None else f"rank {rank}"
        for rank, host, pid in ranks.select("rank", "host", "pid").iter_rows()
    ]
    return at_most(names, _SHOWN)
