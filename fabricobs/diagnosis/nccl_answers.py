"""Answers about what NCCL chose: the network of every rank, and GPUDirect."""

import polars as pl

from fabricobs.diagnosis.evidence import Evidence
from fabricobs.diagnosis.findings import Question


def nccl_choice(question: str, evidence: Evidence) -> Question:
    """Say whether all ranks use the same network, and RDMA between hosts."""
    processes = evidence.frame("nccl_choice")
    # Hosts whose logs do not say which network is used are hosts of the job too.
    several = pl.coalesce("nodes", pl.col("host").n_unique().over("job")) > 1
    chosen = processes.with_columns(several=several).drop_nulls("network")
    if chosen.is_empty():
        return Question(
            question, "unknown", "No NCCL log says which network is used.", "NCCL_DEBUG=INFO logs."
        )
    fell_back = chosen.filter((pl.col("network") == "Socket") & pl.col("several"))
    if not fell_back.is_empty():
        return Question(question, "problem", f"Sockets instead of RDMA{_where(fell_back)}.")
    versions = sorted({version for row in chosen["versions"].drop_nulls() for version in row})
    networks = chosen["network"].unique().sort().to_list()
    for values, what in ((networks, "networks"), (versions, "NCCL versions")):
        if len(values) > 1:
            return Question(
                question, "problem", f"Ranks use different {what}: {', '.join(values)}."
            )
    uses = f"{networks[0]}, NCCL {versions[0]}" if versions else networks[0]
    told, size = int(chosen["ranks"].sum()), size_of(evidence)
    if size is None or told < size:
        some = _ranks(told) if size is None else f"{told:,} of {size:,} ranks"
        rest = "how many ranks the job has" if size is None else "what the others use"
        text = f"{some} use{'s' if told == 1 else ''} {uses}; {rest} is not known."
        return Question(question, "unknown", text, "NCCL_DEBUG=INFO logs of all ranks.")
    if _hosts_of(processes) == 1:
        text = f"All {told:,} ranks are on one host; between hosts NCCL would use {uses}."
        return Question(question, "ok", text)
    return Question(question, "ok", f"All {told:,} ranks use {uses}.")


def gpudirect(question: str, evidence: Evidence) -> Question:
    """Say whether every rank sends from GPU memory without a copy in the host's."""
    processes = evidence.frame("nccl_choice")
    known = processes.drop_nulls("gdr")
    if known.is_empty():
        return Question(
            question,
            "unknown",
            "No NCCL log shows a network connection that can use it.",
            "NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,NET.",
        )
    off = known.filter(~pl.col("gdr"))
    if not off.is_empty():
        text = f"Off for {_ranks(int(off['ranks'].sum()))}{_where(off)}."
        return Question(question, "problem", text)
    told, size = int(processes["ranks"].sum()), size_of(evidence)
    on = _ranks(int(known["ranks"].sum()))
    without = processes.filter(pl.col("gdr").is_null() & (pl.col("network") == "Socket"))
    if not without.is_empty():
        number = int(without["ranks"].sum())
        use = "uses" if number == 1 else "use"
        text = f"On for {on}; {_ranks(number)}{_where(without)} {use} sockets, without it."
        return Question(question, "problem", text)
    if size is None or told < size:
        of = "of a job of unknown size" if size is None else f"of {size:,}"
        text = f"On for {on} {of}; the others are not known."
        return Question(question, "unknown", text, "NCCL_DEBUG=INFO logs of all ranks.")
    return Question(question, "ok", f"On for {on}.")


def size_of(evidence: Evidence) -> int | None:
    """Return the number of ranks of the jobs seen, None if a communicator does not tell it."""
    sizes = evidence.frame("job_sizes")["ranks_expected"]
    return None if sizes.is_empty() or sizes.null_count() else int(sizes.sum())


def _hosts_of(processes: pl.DataFrame) -> int:
    """Return on how many hosts the processes are, as NCCL or their own number tells."""
    nodes = processes["nodes"].max()
    return max(nodes if isinstance(nodes, int) else 0, processes["host"].n_unique())


def _where(processes: pl.DataFrame) -> str:
    """Return on which hosts processes are, for a sentence; empty where none is known."""
    hosts = processes["host"].drop_nulls().unique().sort().to_list()
    return f" on {', '.join(hosts)}" if hosts else ""


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count:,} ranks"
