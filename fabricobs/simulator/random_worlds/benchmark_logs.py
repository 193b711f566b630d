"""What nccl-tests prints in a random world: a file a run, in the words of an old or new release."""

from fabricobs.simulator.random_worlds.benchmarks import Run
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import GPU_BUSES

_SIZES = tuple(2**power for power in range(26, 34))  # bytes
_CALL_US = 28.0  # of a call before its first byte
_IN_PLACE = 1.002
_GAP = " " * 5
_PID = 7000  # of the first rank
_HEAD = "\n".join(
    [
        "#",
        f"#{_GAP * 12}  out-of-place{_GAP * 5}in-place",
        "#       size         count      type   redop    root"
        + "     time   algbw   busbw #wrong" * 2
        + "{stamp}",
        "#        (B)    (elements)                          "
        + "     (us)  (GB/s)  (GB/s)       " * 2,
    ]
)


def write_benchmarks(site: Site) -> None:
    """Write a file for each run, dated by its name, its folder or its rows."""
    spec = site.spec
    if spec.benchmarks == "none":
        return
    random = spec.stream("benchmark logs")
    dated = str(random.choice(["name", "folder", "rows"]))
    is_new = dated == "rows" or bool(random.random_sample() < 0.5)
    for run in site.benchmark_runs:
        local = site.true_clock.local(run.moment)
        name = f"{run.name}_{local:%Y%m%d_%H%M%S}" if dated == "name" else run.name
        folder = f"{local:%Y-%m-%d}/" if dated == "folder" else ""
        text = _text(site, run, is_new=is_new, stamped=dated == "rows")
        site.write_run("nccl-tests", f"{folder}{name}.out", text)


def _text(site: Site, run: Run, *, is_new: bool, stamped: bool) -> str:
    spec, topology = site.spec, site.world.topology
    random = spec.stream("benchmark", run.name)
    ranks = [(host, gpu) for host in run.hosts for gpu in range(spec.gpus_per_host)]
    names = [topology.devices[host].name for host in run.hosts]
    major, minor, patch = (int(part) for part in spec.nccl_release.split("."))
    code = 10_000 * major + 100 * minor + patch
    lines = []
    if run.rail is not None:
        nic = topology.ends[topology.nics_of(run.hosts[0])[run.rail]][0].name
        lines.append(
            f"{names[0]}:{_PID}:{_PID} [0] NCCL INFO NCCL_IB_HCA set by environment to {nic}"
        )
    if is_new:
        lines.append(f"# nccl-tests version 2.17.6 nccl-headers={code} nccl-library={code}")
        lines.append("# Collective test starting: all_reduce_perf")
    lines.append(
        f"# nThread 1 nGpus 1 minBytes {_SIZES[0]} maxBytes {_SIZES[-1]} step: 2(factor) "
        "warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    lines += ["#", "# Using devices"]
    for rank, (host, gpu) in enumerate(ranks):
        bus = f"0000:{GPU_BUSES[gpu]:02x}:00" if is_new else f"0x{GPU_BUSES[gpu]:02x}"
        name = topology.devices[host].name
        lines.append(
            f"#  Rank {rank:2d} Group  0 Pid {_PID + rank:6d} on {name:>10s} device {gpu:2d} "
            f"[{bus}] NVIDIA {spec.gpu_model}"
        )
    lines.append(_HEAD.format(stamp="            timestamp" if stamped else ""))
    factor = 2 * (len(ranks) - 1) / len(ranks)
    moment, reached = run.moment, []
    for size in _SIZES:
        cells = []
        for place in (1.0, _IN_PLACE):
            rate = run.busbw * place * float(random.lognormal(0, 0.001)) / factor
            took = size / rate / 1e3 + _CALL_US
            reached.append(size / took / 1e3 * factor)
            wrong = run.wrong if size == _SIZES[-1] or run.wrong > 2000 else 0
            cells.append(f"{took:7.1f} {size / took / 1e3:7.2f} {reached[-1]:7.2f} {wrong:6d}")
            moment += 25 * took / 1e6
        at = site.true_clock.local(moment)
        stamp = f"  {at:%Y-%m-%d %H:%M:%S}" if stamped else ""
        head = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum':>6s}  {-1:6d}"
        lines.append(f"{head}  {cells[0]}  {cells[1]}{stamp}")
    verdict = "OK" if not run.wrong else "FAILED"
    pad = "   " if is_new else ""
    lines += [
        f"# Out of bounds values : {2 * run.wrong} {verdict}",
        f"# Avg bus bandwidth {pad} : {sum(reached) / len(reached):.3f} ",
        "#",
    ]
    if is_new:
        lines.append("# Collective test concluded: all_reduce_perf")
    return "\n".join(lines) + "\n"
