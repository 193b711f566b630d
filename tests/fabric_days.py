"""One fabric on two days, as Arista EOS and its hosts tell it, or InfiniBand and its hosts.

What is no change differs by day, too: temperatures, ages, LIDs.
"""

import random
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

IBSTAT = """CA 'mlx5_{nic}'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: {firmware}
\tNode GUID: 0x1070fd03{host:04x}{nic:04x}
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 0
\t\tPort GUID: 0x1070fd03{host:04x}{nic:04x}
\t\tLink layer: Ethernet
"""
RUNNING = """{leaf}#show running-config
hostname {leaf}
!
qos profile ROCE
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   !
   uc-tx-queue 3
      random-detect ecn minimum-threshold {least} kbytes maximum-threshold 1500 kbytes max-mark-probability 90 weight 0
!
interface Ethernet1/1
   mtu 9214
   service-profile ROCE
!
end
"""  # noqa: E501
NEIGHBOR = """Interface {port} detected 1 LLDP neighbors:

  Neighbor 2a00.5e00.0001/"{far}", age {age} seconds
  Discovered {age} days, 2:03:04 ago; Last changed 1 day, 2:01:04 ago
  - Port ID type: Interface name(5)
    Port ID     : "{far}"
  - System Name: "{device}.pod1"

"""
SMI = """{at:%a %b %d %H:%M:%S %Y}
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI {driver}              Driver Version: {driver}      CUDA Version: 12.8     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:01:00.0 Off |                    0 |
| N/A   {celsius}C    P0            {watts}W /  700W |    1011MiB / 143771MiB |    100%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""  # noqa: E501
SWINFO = """=================================================
Quantum Mellanox Technologies
=================================================
part number        | MQM9790-NS2F
PSID               | MT_0000000063
firmware version   | {firmware}
-------------------------------------------------
PSU0 status        | OK
     power (W)     | {watts}
-------------------------------------------------
temperature (C)    | {celsius}
fan#1 (rpm)        | {rpm}
"""

EOS_KINDS = ("cable", "port", "speed", "firmware", "driver", "setting", "route", "device")
IB_KINDS = ("cable", "port", "speed", "firmware", "driver", "setting", "device")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_eos(folder: Path, moment: int, seed: int, moved: Collection[str] = ()) -> None:
    """Write leaves of EOS, a spine of SONiC and hosts; a thing of each kind in `moved` changed."""
    draw, noise = random.Random(seed), random.Random(f"{seed} {moment}")
    hosts = [f"hgx{n:03}" for n in range(draw.choice([4, 6]))]
    leaves, spines = ["tor1", "tor2"], ["core1", "core2"]
    cables: dict[tuple[str, int], tuple[str, str]] = {}
    for at, leaf in enumerate(leaves):
        for port, host in enumerate(hosts):
            cables[leaf, port + 1] = (host, f"ens{at}f0np0")
        for port in range(4):
            cables[leaf, 49 + port] = (spines[port // 2], f"Ethernet{2 * at + port % 2 + 1}/1")
    # The third port of the first leaf, a port of the second, and the second port of the first.
    down = ("tor2", draw.choice([1, 2, 3])) if "port" in moved else None
    if "cable" in moved:
        cables["tor1", 30] = cables.pop(("tor1", 3))
    if "device" in moved:
        cables |= {(leaf, 20): ("hgx099", f"ens{at}f0np0") for at, leaf in enumerate(leaves)}
        hosts = [*hosts, "hgx099"]
    stamp = f"{datetime.fromtimestamp(moment, UTC):%Y%m%d_%H%M%S}"
    for leaf in leaves:
        neighbors, status = "", ""
        for port in [*range(1, 9), 20, 30, 49, 50, 51, 52]:
            name, here = f"Ethernet{port}/1", (leaf, port)
            if here in cables and here != down:
                device, far = cables[here]
                age = noise.randrange(30)
                neighbors += NEIGHBOR.format(port=name, device=device, far=far, age=age)
                speed = "200G" if "speed" in moved and here == ("tor1", 2) else "400G"
                tail = f"connected    routed   full   {speed:<6} 400GBASE-SR8"
            else:
                neighbors += f"Interface {name} detected 0 LLDP neighbors:\n\n"
                tail = "notconnect   1        auto   auto   Not Present"
            status += f"Et{port}/1".ljust(29) + tail + "\n"
        head = "Port       Name              Status       Vlan     Duplex Speed  Type"
        least = 640 if "setting" in moved and leaf == "tor2" else 320
        texts = {
            "show_lldp_neighbors_detail": f"{leaf}#show lldp neighbors detail\n{neighbors}",
            "show_interfaces_status": f"{leaf}#show interfaces status\n{head}\n{status}",
            "running-config": RUNNING.format(leaf=leaf, least=least),
        }
        for name, text in texts.items():
            _put(folder / leaf / f"{stamp}_{name}.txt", text)
    age = noise.randrange(10)
    second = "  *                    via 10.0.0.5, Ethernet4, weight 1, 01:02:03\n"
    _put(
        folder / "core1" / f"show_ip_route-{moment}.txt",
        f"B>* 10.1.0.0/24 [20/0] via 10.0.0.1, Ethernet0, weight 1, {age + 10}:02:03\n"
        + ("" if "route" in moved else second),
    )
    for number, host in enumerate(hosts):
        driver = "570.158.01" if "driver" in moved and number == 1 else "570.133.20"
        at = datetime.fromtimestamp(moment + 60, UTC)
        celsius, watts = noise.randrange(40, 70), noise.randrange(300, 690)
        text = SMI.format(at=at, driver=driver, celsius=celsius, watts=watts)
        _put(folder / host / f"nvidia-smi-{moment}.txt", text)
        own = {0: "28.43.2026", 1: "28.43.2026"}
        if "firmware" in moved and number == 2:
            own[1] = "28.44.1036"
        text = "".join(IBSTAT.format(host=number, nic=n, firmware=f) for n, f in own.items())
        _put(folder / host / f"ibstat-{moment}.txt", text)


def write_infiniband(folder: Path, moment: int, seed: int, moved: Collection[str] = ()) -> None:
    """Write what the subnet, its switches and hosts tell; a thing of each kind changed."""
    draw, noise = random.Random(seed), random.Random(f"{seed} {moment}")
    hosts = [f"dgx-{n:02}" for n in range(draw.choice([4, 6]))]
    leaves = {f"ibl{n}": f"b83fd2030011{n:04x}" for n in range(2)}
    spines = {f"ibsp{n}": f"b83fd2030022{n:04x}" for n in range(2)}
    nics = {(h, n): f"1070fd03{at:04x}{n:04x}" for at, h in enumerate(hosts) for n in range(2)}
    if "device" in moved:
        nics |= {("dgx-77", n): f"1070fd030077{n:04x}" for n in range(2)}
    names = {guid: f"MF0;{name}:MQM9700/U1" for name, guid in (leaves | spines).items()}
    names |= {guid: f"{host} mlx5_{nic}" for (host, nic), guid in nics.items()}
    # The subnet manager gives LIDs anew.
    lids = dict(zip(names, noise.sample(range(1, 500), len(names)), strict=True))
    cables = []
    for rail, leaf in enumerate(leaves.values()):
        own = [guid for (_, nic), guid in nics.items() if nic == rail]
        cables += [[leaf, 12 if "0077" in guid else at + 1, guid, 1] for at, guid in enumerate(own)]
        for at, spine in enumerate(spines.values()):
            cables += [[leaf, 31 + 2 * at + n, spine, 1 + 2 * rail + n] for n in range(2)]
    if "cable" in moved:
        cables[2][1] = 20
    narrow = cables[3] if "speed" in moved else None
    down = cables.pop() if "port" in moved else None
    ports = defaultdict(list)
    for cable in cables:
        here, port, far, far_port = cable
        lanes = 2 if cable is narrow else 4
        ports[here].append((port, far, far_port, lanes))
        ports[far].append((far_port, here, port, lanes))
    at = datetime.fromtimestamp(moment, UTC)
    topology = f"#\n# Topology file: generated on {at:%a %b} {at.day:2} {at:%H:%M:%S %Y}\n#\n"
    links = ""
    for guid, name in names.items():
        is_switch, lid = name.startswith("MF0"), lids[guid]
        if is_switch:
            topology += f'\nswitchguid=0x{guid}({guid})\nSwitch\t65 "S-{guid}"\t\t# "{name}" '
            topology += f"enhanced port 0 lid {lid} lmc 0\n"
            links += f"Switch: 0x{guid} {name}:\n"
        else:
            topology += f'\ncaguid=0x{guid}\nCa\t1 "H-{guid}"\t\t# "{name}"\n'
            links += f"CA: {name}:\n"
        for port, far, far_port, lanes in sorted(ports[guid]):
            peer, far_lid = names[far], lids[far]
            if is_switch:
                kind, behind = ("S", "") if peer.startswith("MF0") else ("H", f"({far})")
                topology += f'[{port}]\t"{kind}-{far}"[{far_port}]{behind} \t\t# "{peer}" '
                topology += f"lid {far_lid} {lanes}xNDR\n"
            else:
                topology += f'[{port}]({guid}) \t"S-{far}"[{far_port}]\t\t# lid {lid} lmc 0 '
                topology += f'"{peer}" lid {far_lid} {lanes}xNDR\n'
            own = "" if is_switch else f"0x{guid} "
            links += (
                f"      {own}{lid:6} {port:4}[  ] ==( {lanes}X      106.25 Gbps Active/  LinkUp)"
            )
            links += f'==>  {far_lid:6} {far_port:4}[  ] "{peer}" ( )\n'
        if is_switch:
            used = {port for port, *_ in ports[guid]}
            links += "".join(
                f"      {lid:6} {port:4}[  ] ==(                Down/ Polling)==>"
                '             [  ] "" ( )\n'
                for port in range(1, 41)
                if port not in used
            )
    assert down is None or down not in cables
    _put(folder / "fabric" / f"ibnetdiscover-{moment}.txt", topology)
    _put(folder / "fabric" / f"iblinkinfo-{moment}.txt", links)
    for name in leaves | spines:
        firmware = "31.2014.2036" if "firmware" in moved and name == "ibsp1" else "31.2012.1024"
        text = SWINFO.format(
            firmware=firmware, watts=noise.randrange(200, 400), celsius=noise.randrange(40, 60),
            rpm=noise.randrange(5000, 7000),
        )  # fmt: skip
        _put(folder / name / f"ibswinfo-{moment}.txt", text)
    for number, host in enumerate(sorted({host for host, _ in nics})):
        driver = "25.01-0.6.0" if "driver" in moved and number == 3 else "24.10-1.1.4"
        _put(
            folder / host / f"ethtool_i_ib0-{moment}.txt",
            f"driver: mlx5_core[ib_ipoib]\nversion: {driver}\n"
            "firmware-version: 28.43.2026 (MT_0000000838)\n",
        )
        iommu = "on" if "setting" in moved and number == 1 else "off"
        text = f"BOOT_IMAGE=/boot/vmlinuz-5.15 root=UUID={number:04} ro quiet intel_iommu={iommu}\n"
        _put(folder / host / f"proc_cmdline-{moment}.txt", text)
