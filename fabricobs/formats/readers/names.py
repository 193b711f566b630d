"""Names of operations and element types, as PyTorch and NCCL write them."""

import re
from collections.abc import Sequence
from typing import Any

_OPERATIONS = {
    "allreduce": "AllReduce",
    "allgather": "AllGather",
    "allgatherbase": "AllGather",
    "allgatherintotensorcoalesced": "AllGather",
    "reducescatter": "ReduceScatter",
    "reducescatterbase": "ReduceScatter",
    "reducescattertensorcoalesced": "ReduceScatter",
    "alltoall": "AlltoAll",
    "alltoallv": "AlltoAll",
    "alltoallbase": "AlltoAll",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "send": "Send",
    "recv": "Recv",
    "sendrecv": "SendRecv",
    "barrier": "Barrier",
}
_BYTES = {
    1: "bool byte char int8 uint8 ncclint8 nccluint8",
    2: "short half float16 f16 bfloat16 bf16 ncclfloat16 ncclbfloat16",
    4: "int int32 uint32 float float32 f32 ncclint32 nccluint32 ncclfloat32",
    8: "long int64 uint64 double float64 f64 complexfloat ncclint64 nccluint64 ncclfloat64",
    16: "complexdouble",
}
_WIDTHS = {name: width for width, names in _BYTES.items() for name in names.split()}


def operation(name: str) -> str:
    """Return NCCL's name of an operation: `_all_gather_base` is AllGather; others stay."""
    return _OPERATIONS.get(re.sub(r"[^a-z]", "", name.lower()), name)


def element_bytes(datatype: Any) -> int | None:
    """Return the size of an element in bytes; None for a type without one of its own."""
    name = str(datatype).lower().removeprefix("c10::")
    return 1 if name.startswith("float8") or "float8" in name else _WIDTHS.get(name)


def group_id(name: str | None, ranks: Sequence[int] | None) -> str | None:
    """Name a process group so that no other has the name: `6[2,3]`; null without a name."""
    if name is None or ranks is None:
        return name
    return f"{name}[{','.join(map(str, ranks))}]"


def rank_list(ranks: Any) -> list[int] | None:
    """Read `[0, 1]`, given as text or list; None for a text that is elided."""
    if isinstance(ranks, str):
        return None if "..." in ranks else [int(rank) for rank in re.findall(r"\d+", ranks)]
    return [rank for rank in ranks if isinstance(rank, int)] if isinstance(ranks, list) else None
