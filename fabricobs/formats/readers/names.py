"""Names of operations and element types, as PyTorch and NCCL write them."""

import re
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
