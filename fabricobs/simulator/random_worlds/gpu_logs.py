"""What NVIDIA's tools print about the GPUs of a random world, round by round."""

from fabricobs.simulator.effects import Floats
from fabricobs.simulator.random_worlds.gpus import Gpus
from fabricobs.simulator.random_worlds.ports import Fields
from fabricobs.simulator.random_worlds.printing import Output, outputs
from fabricobs.simulator.random_worlds.site import Site
from fabricobs.simulator.random_worlds.topology import Device

_LINES_OF_A_PORT = 25  # some lines that a counter output has of a port: sizes count in them


def write_gpus(site: Site) -> None:
    """Write what is collected about the GPUs of all hosts, those of the job and spare ones."""
    spec, topology = site.spec, site.world.topology
    gpus = Gpus(site.world)
    for output in outputs("gpu_outputs.toml"):
        if output.form != spec.gpu_form or (output.needs and not getattr(spec, output.needs)):
            continue
        apart = site.one_file_a_round(document=output.extension == "prom") and not output.self_timed
        lines = topology.hosts * spec.gpus_per_host * (1 + output.row.count("\n"))
        for host in topology.switches(0):
            moments = site.rounds(
                host, lines // _LINES_OF_A_PORT, files=topology.hosts if apart else 0
            )
            site.clocks_told(host, moments)
            _write(site, output, host, moments, _timed(site, gpus, host, moments))


def _timed(site: Site, gpus: Gpus, host: Device, moments: Floats) -> list[list[Fields]]:
    """The readings of a host's GPUs, with the time its clock shows."""
    found = []
    for moment, row in zip(moments.tolist(), gpus.read(host, moments), strict=True):
        local = site.clock(host).local(moment)
        time = {"local": local, "milliseconds": local.microsecond // 1000}
        found.append([time | gpu for gpu in row])
    return found


def _write(
    site: Site, output: Output, host: Device, moments: Floats, rows: list[list[Fields]]
) -> None:
    texts = [
        output.text(row, head=place == 0 or not output.head_once) for place, row in enumerate(rows)
    ]
    site.write_rounds(
        host, output.name, moments, texts,
        extension=output.extension or "txt",
        document=output.extension == "prom",
        self_timed=output.self_timed,
    )  # fmt: skip
