"""Cables of a made fabric, as SONiC leaves or InfiniBand's discovery print them."""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from fabricobs.simulator.randomness import Random

MOMENT = 1741075200
DAY = 86400


@dataclass(frozen=True, order=True)
class Cable:
    """A leaf's port and what it is cabled to."""

    leaf: str
    port: str
    device: str
    far_port: str


def rail_fabric(random: Random) -> list[Cable]:
    """Lay a leaf-spine of rails: host i's NIC r on port i of leaf r, the rest to spines."""
    hosts, rails, spines, parallel = (
        int(random.choice(c)) for c in ([4, 6, 9], [2, 4], [2, 3], [1, 2])
    )
    host, leaf, spine = (
        random.choice(names)
        for names in (["gpu-a", "dgx", "node"], ["tor", "leaf"], ["spine", "agg"])
    )
    cables = []
    for rail in range(rails):
        cables += [
            Cable(f"{leaf}{rail:02}", f"Ethernet{4 * h}", f"{host}{h:03}", f"ens{rail}np0")
            for h in range(hosts)
        ]
        for number in range(spines * parallel):
            port = f"Ethernet{4 * (hosts + number)}"
            far = f"Ethernet{4 * (rail * parallel + number % parallel)}"
            cables.append(Cable(f"{leaf}{rail:02}", port, f"{spine}{number // parallel}", far))
    return cables


def swapped(cables: list[Cable], a: Cable, b: Cable) -> list[Cable]:
    """Exchange the far ends of two cables."""
    ends = {
        a: replace(a, device=b.device, far_port=b.far_port),
        b: replace(b, device=a.device, far_port=a.far_port),
    }
    return [ends.get(cable, cable) for cable in cables]


def write_lldp(folder: Path, cables: list[Cable], moment: int = MOMENT) -> None:
    """Write `show lldp table` of each leaf."""
    own = defaultdict(list)
    for cable in cables:
        own[cable.leaf].append(cable)
    for leaf, ports in own.items():
        lines = [
            "Capability codes: (R) Router, (B) Bridge, (O) Other",
            "LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr",
            "-----------  --------------  --------------  ------------  -----------------",
            *(
                f"{c.port:<12} {c.device:<15} {c.far_port:<15} R             {c.far_port}"
                for c in ports
            ),
            "-" * 50,
            f"Total entries displayed:  {len(ports)}",
        ]
        path = folder / leaf / f"show_lldp_table-{moment}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
