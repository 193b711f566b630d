"""What formats know and users need is kept, not dropped: one case a class, by the command line."""

from pathlib import Path
from typing import Any

import pytest
from test_lines_by_cli import Ingested
from typer.testing import CliRunner

from fabricobs.cli import app

NCCL = "gpu-01:91:97 [2] NCCL "


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param(
            "leaf07/20260302_090000_transceivers.txt",
            "Ethernet0: SFP EEPROM detected\n"
            "        Vendor Name: ACME\n        Vendor SN: A7\n"
            "        ChannelMonitorValues:\n                RX2Power: -7.5000dBm\n"
            "        ModuleMonitorValues:\n                Temperature: 61.5000C\n",
            [
                ("leaf07", "Ethernet0", 2, None, None, None, -7.5),
                ("leaf07", "Ethernet0", None, "ACME", "A7", 61.5, None),
            ],
            id="SONiC",
        ),
        pytest.param(
            "ibdiagnet2.cables",
            "-----------------\nPort=4 Lid=0x000c GUID=0xb83fd20300110100 Port Name=x/U1/P1/2/2\n"
            "-----------------\nVendor: ACME\nSN: A8\nTemperature: 58C\n"
            "RX1 Power: 0.5 mW, -3.010 dBm\nRX2 Power: -999.999 mW, 0.000 dBm\n",
            [
                ("0xb83fd20300110100", "4", 1, None, None, None, -3.01),
                ("0xb83fd20300110100", "4", None, "ACME", "A8", 58.0, None),
            ],
            id="ibdiagnet",
        ),
        pytest.param(
            "gpu-a07/ethtool_m_ens3f0np0_20260302T090000Z.txt",
            "\tIdentifier      : 0x11 (QSFP28)\n\tVendor name     : ACME\n\tVendor SN     : A9\n"
            "\tModule temperature       : 34.90 degrees C / 94.82 degrees F\n"
            "\tRcvr signal avg optical power(Channel 1)  : 0.1000 mW / -10.00 dBm\n",
            [
                ("gpu-a07", "ens3f0np0", 1, None, None, None, -10.0),
                ("gpu-a07", "ens3f0np0", None, "ACME", "A9", 34.9, None),
            ],
            id="ethtool",
        ),
        pytest.param(
            "leaf11/show_interfaces_transceiver.txt",
            "Port      (Celsius)  (Volts)   (mA)      (dBm)     (dBm)     Last Update\n"
            "Et1/1      34.17      3.30      6.12      -2.50     -2.98    0:00:01 ago\n",
            [("leaf11", "Ethernet1/1", None, None, None, 34.17, -2.98)],
            id="EOS",
        ),
        pytest.param(
            "leaf12/show_interface_transceiver_details.txt",
            "Ethernet1/1\n    transceiver is present\n    name is ACME\n    serial number is B1\n"
            "    Lane Number:1 Network Lane\n"
            "      Temperature   30.21 C        75.00 C     -5.00 C     70.00 C        0.00 C\n"
            "      Rx Power     -18.20 dBm --    3.00 dBm  -14.00 dBm    2.00 dBm    -11.00 dBm\n",
            [
                ("leaf12", "Ethernet1/1", 1, None, None, 30.21, -18.2),
                ("leaf12", "Ethernet1/1", None, "ACME", "B1", None, None),
            ],
            id="NX-OS",
        ),
    ],
)
def test_optics_of_a_port_and_its_lanes(
    tmp_path: Path, name: str, text: str, expected: list[tuple[Any, ...]]
) -> None:
    found = Ingested(tmp_path, {name: text})
    columns = "device, port, lane, vendor, serial, temperature_c, rx_power_dbm"
    assert found.rows("optics", columns) == expected
    assert found.account[0][2] == 0


def test_bins_of_a_fec_histogram(tmp_path: Path) -> None:
    text = (
        "admin@leaf07:~$ show interfaces counters fec-histogram -i Ethernet8\n"
        "Symbol Errors Per Codeword      Codewords\n"
        "----------------------------  -----------\nBIN0   90,112,007\nBIN1   71\n"
    )
    found = Ingested(tmp_path, {"leaf07/20260302_090000_fec.txt": text})
    rows = found.rows("port_samples", "device, port, other['BIN0'], other['BIN1']")
    assert rows == [("leaf07", "Ethernet8", 90112007, 71)]


def test_what_the_pause_watchdog_is_set_to(tmp_path: Path) -> None:
    text = (
        "Changed polling interval to 400ms\n"
        "     PORT    ACTION    DETECTION TIME    RESTORATION TIME\n"
        "---------  --------  ----------------  ------------------\n"
        "Ethernet0   forward               200                 400\n"
    )
    found = Ingested(tmp_path, {"leaf07/show_pfcwd_config.txt": text})
    assert found.rows("settings", "device, port, name, value") == [
        ("leaf07", "Ethernet0", "ACTION", "forward"),
        ("leaf07", "Ethernet0", "DETECTION TIME", "200"),
        ("leaf07", "Ethernet0", "RESTORATION TIME", "400"),
        ("leaf07", None, "pfcwd polling interval", "400ms"),
    ]


def test_fields_a_switch_hashes_over(tmp_path: Path) -> None:
    text = '{"ecmp": {"hash_field": ["DST_IP", "SRC_IP"], "algorithm": "CRC"}}'
    found = Ingested(tmp_path, {"leaf07/show_switch-hash_global.json": text})
    assert found.rows("settings", "device, profile, name, value") == [
        ("leaf07", "ecmp", "algorithm", "CRC"),
        ("leaf07", "ecmp", "hash_field", "DST_IP"),
        ("leaf07", "ecmp", "hash_field", "SRC_IP"),
    ]


def test_a_mismatch_of_ras_names_operation_ranks_and_distance(tmp_path: Path) -> None:
    text = (
        "#0-0 (27a079b828ff1a75) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  6 ranks have launched up to operation 6650\n"
        "  2 ranks have launched up to operation 6648\n"
        "  Rank 5 -- GPU 5 managed by process 477 on node 10.8.0.3\n"
        "  Rank 7 -- GPU 7 managed by process 479 on node 10.8.0.3\n"
    )
    found = Ingested(tmp_path, {"ras.txt": text})
    rows = found.question("ras_mismatches", "op,rank,host,pid,last_enqueued,peers_enqueued,ahead")
    assert rows == [
        "AllReduce,5,10.8.0.3,477,6648,6650,-2",
        "AllReduce,7,10.8.0.3,479,6648,6650,-2",
    ]


def test_fabric_and_clique_of_nvlink_between_hosts(tmp_path: Path) -> None:
    line = "MNNVL busId 0x8b000 fabric UUID 4d2.11d7 cliqueId 0x7 state 3 healthMask 0x0"
    found = Ingested(tmp_path, {"nccl.log": f"{NCCL}INFO {line}\n"})
    assert found.rows("nccl_ranks", "host, bus_id, fabric, clique") == [
        ("gpu-01", "8b000", "4d2.11d7", "7")
    ]


def test_capability_and_errors_of_sharp(tmp_path: Path) -> None:
    text = (
        f"{NCCL}INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB ; OOB eth0:10.0.0.1<0>\n"
        "[gpu-01:0:91 - comm.c:374] ERROR Failed to lock SAT tree(ID:0x40 ret:0x4)\n"
        "gpu-01:91:97 [2] sharp_plugin.c:302 NCCL WARN NET/IB : SHARP coll init error: x(-11)\n"
    )
    found = Ingested(tmp_path, {"nccl.log": text})
    assert found.rows("nccl_nics", "nic, sharp") == [("mlx5_0", True), ("mlx5_1", None)]
    assert found.rows("nccl_events", "kind, level, host, text") == [
        ("sharp", "ERROR", "gpu-01", "Failed to lock SAT tree(ID:0x40 ret:0x4)"),
        ("sharp", "WARN", "gpu-01", "coll init error: x(-11)"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "bench.txt",
            "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22808\n"
            "# Collective test starting: all_reduce_perf\n"
            "#  Rank  0 Group  0 Pid   7101 on      dgx3 device  4 [0000:5d:00] NVIDIA H200\n",
            [("2.28.8", None, None)],
        ),
        (
            "ras.txt",
            "NCCL version 2.28.7 compiled with CUDA 12.9\n"
            "CUDA runtime version 12090, driver version 13000\n"
            "Communicators... (0.31s)\n",
            [("2.28.7", "12.9", "13.0")],
        ),
        (
            "rank3.pt.trace.json",
            '{"schemaVersion": 1, "cuda_runtime_version": 12060, "cuda_driver_version": 12080,\n'
            '"distributedInfo": {"backend": "nccl", "rank": 3, "nccl_version": "2.27.5"},\n'
            '"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}',
            [("2.27.5", "12.6", "12.8")],
        ),
        (
            "nccl_trace_rank_3",
            '{"version": "2.4", "nccl_version": "2.27.3", "pg_config": {}, "pg_status": {},'
            ' "entries": []}',
            [("2.27.3", None, None)],
        ),
    ],
    ids=["nccl-tests", "RAS", "Kineto", "flight recorder"],
)
def test_versions_wherever_they_are_printed(
    tmp_path: Path, name: str, text: str, expected: list[tuple[Any, ...]]
) -> None:
    found = Ingested(tmp_path, {name: text})
    columns = "max(version), max(cuda_runtime), max(cuda_driver)"
    assert found.rows("nccl_ranks", columns) == expected


NXOS_DETAIL = (
    "Chassis id: 2a00.5e00.0001\nPort id: Ethernet1/12\nLocal Port id: Eth1/49\n"
    "Port Description: not advertised\nSystem Name: spine03\nSystem Description: x\n"
)
NXOS_TABLE = (
    "Device ID            Local Intf      Hold-time  Capability  Port ID\n"
    "spine03.a-domain-too-long-for-its-column.example\n"
    "                     Eth1/49         120        BR          Ethernet1/12\n"
)
EOS_DETAIL = (
    "Interface Ethernet1/49 detected 1 LLDP neighbors:\n\n"
    '  Neighbor 2a00.5e00.0001/"Ethernet1/12", age 24 seconds\n'
    '    Port ID     : "Ethernet1/12"\n  - System Name: "spine03"\n'
)
LLDPCTL = (
    "LLDP neighbors:\nInterface:    Ethernet1/49, via: LLDP, RID: 3, Time: 0 day, 04:11:09\n"
    "  Chassis:\n    SysName:      spine03\n  Port:\n    PortID:       ifname Ethernet1/12\n"
)


@pytest.mark.parametrize("text", [NXOS_DETAIL, NXOS_TABLE, EOS_DETAIL, LLDPCTL])
def test_a_neighbour_over_several_lines(tmp_path: Path, text: str) -> None:
    found = Ingested(tmp_path, {"leaf12/lldp.txt": text})
    ((device, port, remote_device, remote_port),) = found.rows(
        "links", "device, port, remote_device, remote_port"
    )
    assert (device, port, remote_port) == ("leaf12", "Ethernet1/49", "Ethernet1/12")
    assert remote_device.startswith("spine03")


def test_port_channels_sub_interfaces_and_management_ports_of_nxos(tmp_path: Path) -> None:
    state = "admin state is up,\n  MTU 1500 bytes, BW 1000000 Kbit , DLY 10 usec\n"
    text = (
        f"port-channel10 is up\n{state}  RX\n    18 input packets  1000 bytes\n\n"
        f"mgmt0 is up\n{state}  Rx\n    7 input packets 6 unicast packets 1 multicast packets\n"
        "    0 broadcast packets 700 bytes\n\n"
        f"Ethernet1/3.100 is up\n{state}  L3 in Switched:\n    ucast: 11 pkts, 1100 bytes\n"
    )
    found = Ingested(tmp_path, {"leaf12/20260302_090000_show_interface.txt": text})
    assert found.rows("port_samples", "port, rx_bytes, other['l3_in_ucast_bytes']") == [
        ("Ethernet1/3.100", None, 1100),
        ("Port-Channel10", 1000, None),
        ("mgmt0", 700, None),
    ]
    assert {port for (port,) in found.rows("port_status", "port")} == {
        "Ethernet1/3.100", "Port-Channel10", "mgmt0",
    }  # fmt: skip
    assert found.account[0][2] == 0


def test_steps_without_a_time_are_told(tmp_path: Path) -> None:
    untimed = "".join(f"step: {step} loss: 2.5\n" for step in range(200))
    timed = "step: 1 loss: 2.5 step_time: 0.5s\n2026-03-02 09:00:00 step: 2 loss: 2.5\n"
    found = Ingested(tmp_path, {"a/train.log": untimed, "b/train.log": timed})
    assert "a/train.log: 200 steps, no time in them" in found.output
    assert "b/train.log: " not in found.output
    assert found.rows("files", "untimed_steps") == [(0,), (200,)]


@pytest.mark.parametrize(
    "text",
    [
        "step: 7 micro_step: 1 loss: 2.5 time: 0.5s\nstep: 7 micro_step: 2 loss: 2.5 time: 0.5s\n",
        "[micro-batch 1/2] step 7, loss 2.5, step time 0.5s\n"
        "[micro-batch 2/2] step 7, loss 2.5, step time 0.5s\n",
        "Epoch 1 | iter 14 step 6 | loss train: 2.5, val: n/a | iter time: 500.00 ms remaining\n"
        "Epoch 1 | iter 15 step 7 | loss train: 2.5, val: n/a | iter time: 500.00 ms (step) rest\n",
    ],
    ids=["micro_step", "micro-batch", "litgpt"],
)
def test_the_time_of_a_micro_batch_is_not_that_of_its_step(tmp_path: Path, text: str) -> None:
    found = Ingested(tmp_path, {"train.log": text})
    assert found.rows("phases", "duration_ms") == [(500.0,), (500.0,)]
    assert set(found.rows("steps", "step, step_time_ms")) == {(7, None)}


def test_a_long_export_in_no_order_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fabricobs.formats.logs.wrapping.LONGEST_EXPORT", 200)
    records = [
        f'{{"time": "2026-03-02T09:00:0{second}Z", "message": "{NCCL}INFO Using network IB"}}\n'
        for second in (5, 3, 4)
    ]
    found = Ingested(tmp_path, {"export.jsonl": "".join(records)})
    assert "its records are in no order of time" in found.output
    ((problem,),) = found.rows("files", "problem")
    assert problem.startswith("its records are in no order of time")


def test_the_limit_of_a_collective_and_of_the_watchdog(tmp_path: Path) -> None:
    text = (
        "[rank3]:[E1103 07:14:42.115298746 ProcessGroupNCCL.cpp:612] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE, Timeout(ms)=900000)"
        " ran for 900047 milliseconds before timing out.\n"
        "[rank1]:[E307 01:12:04.004500600 ProcessGroupNCCL.cpp:1400] [PG ID 0 PG GUID "
        "0(default_pg) Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without "
        "making progress in monitoring enqueued collectives.\n"
        "[rank1]:[I307 00:12:04.004500600 ProcessGroupNCCL.cpp:900] [PG ID 0 PG GUID 0(default_pg) "
        "Rank 1] ProcessGroupNCCL initialization options: size: 8, global rank: 1, TIMEOUT(ms): "
        "600000, USE_HIGH_PRIORITY_STREAM: 0\n"
    )
    found = Ingested(tmp_path, {"train.log": text})
    assert found.rows("nccl_events", "kind, rank, duration_ms, timeout_ms") == [
        ("watchdog_stuck", 1, 480000.0, None),
        ("watchdog_timeout", 3, 900047.0, 900000.0),
    ]
    assert ("TIMEOUT(ms)", "600000") in found.rows("nccl_env", "name, value")


def test_power_supplies_and_fans_of_a_switch(tmp_path: Path) -> None:
    supplies = (
        "PSU    Model  Serial  HW Rev  Voltage (V)  Current (A)  Power (W)  Status  LED\n"
        "-----  -----  ------  ------  -----------  -----------  ---------  ------  ---\n"
        "PSU 1  AC-1   A1      A3            11.97         4.56      54.56  NOT OK  red\n"
    )
    fans = (
        "  Drawer    LED    FAN     Speed    Direction    Presence    Status          Timestamp\n"
        "--------  -----  ------  -------  -----------  ----------  --------  -----------------\n"
        " drawer1    red  fan2         0%       intake     Present    Not OK  20250304 10:15:00\n"
    )
    files = {"leaf07/show_platform_psustatus.txt": supplies, "leaf07/show_platform_fan.txt": fans}
    found = Ingested(tmp_path, files)
    rows = found.rows("hosts", "host, part, fact, value")
    assert ("leaf07", "PSU 1", "Status", "NOT OK") in rows
    assert ("leaf07", "PSU 1", "Power (W)", "54.56") in rows
    assert ("leaf07", "fan2", "Speed", "0%") in rows
    assert ("leaf07", "fan2", "Status", "Not OK") in rows


@pytest.mark.parametrize(
    ("below", "account"),
    [
        ("                     Eth1/49         120        BR          Ethernet1/12\n", (3, 1, 0)),
        ("gpu-a07              Eth1/1          120        BR          ens3f0np0\n", (2, 1, 1)),
        ("", (1, 1, 1)),
    ],
)
def test_a_long_name_without_the_rest_of_its_row_is_unread(
    tmp_path: Path, below: str, account: tuple[int, int, int]
) -> None:
    text = (
        "Device ID            Local Intf      Hold-time  Capability  Port ID\n"
        "leaf13               Eth1/48         120        BR          Ethernet1/12\n"
        f"spine03.a-domain-too-long-for-its-column.example\n{below}"
    )
    found = Ingested(tmp_path, {"leaf12/lldp.txt": text})
    assert found.account == [account]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        pytest.param(
            "leaf07/20260302_090000_counters.txt",
            "      IFACE    STATE    RX_OK    RX_UTIL    TX_OK\n"
            "-----------  -------  -------  ---------  -------\n"
            "  Ethernet0        U      410      0.01%      388\n"
            "  Ethernet4        U      411      0.01%      389\n",
            {"field STATE": 2, "field RX_UTIL": 2},
            id="table",
        ),
        pytest.param(
            "leaf11/show_interfaces.txt",
            "Ethernet3/1 is up, line protocol is up (connected)\n"
            "  Hardware is Ethernet, address is 0011.2233.4455 (bia 0011.2233.4455)\n"
            "  Description: to spine 4\n"
            "     12 input errors, 3 CRC, 0 alignment, 2 symbol, 0 input discards\n",
            {"line Hardware is Ethernet": 1, "line Description": 1},
            id="paragraphs",
        ),
        pytest.param(
            "gpu-01/perfquery.txt",
            "# Port counters: Lid 5 port 1 (CapMask: 0x5300)\n"
            "PortSelect:......................1\nSymbolErrorCounter:..............7\n",
            {"field PortSelect": 1},
            id="key values",
        ),
        pytest.param(
            "leaf12/walk.txt",
            "IF-MIB::ifName.3 = STRING: Ethernet8\nIF-MIB::ifLinkUpDownTrapEnable.3 = INTEGER: 1\n"
            "IF-MIB::ifHCInOctets.3 = Counter64: 77\n",
            {"field ifLinkUpDownTrapEnable": 1},
            id="walk",
        ),
        pytest.param(
            "gpu-02/telegraf.line",
            "infiniband,device=mlx5_3,host=gpu-02,port=1 "
            'lifespan=10i,symbol_error=3i,note="a" 1772000000000000000\n',
            {"field infiniband.lifespan": 1, "field infiniband.note": 1},
            id="influx",
        ),
        pytest.param(
            "steps.csv",
            "step,step_time_ms,grad_scale,note\n1,250.5,8,a\n2,251.0,8,b\n3,250.1,8,c\n",
            {"field grad_scale": 3, "field note": 3},
            id="csv",
        ),
        pytest.param(
            "steps.jsonl",
            '{"step": 1, "step_time_ms": 250.5, "extra": {"zloss": 2}}\n'
            '{"step": 2, "step_time_ms": 251.5, "memo": "a"}\n',
            {"field extra": 1, "field memo": 1},
            id="json lines",
        ),
        pytest.param(
            "leaf14/show_interfaces.json",
            '{"interfaces": {"Ethernet1/1": {"name": "Ethernet1/1", "mtu": 9214, "colour": "red",'
            ' "interfaceCounters": {"inOctets": 7, "outOctets": 8, "inJumbos": 4}},'
            ' "Ethernet2/1": {"mtu": 9214, "interfaceCounters": {"inOctets": 1, "inJumbos": 4}}},'
            ' "extra": {"a": {"b": 1}}}',
            {
                "field interfaces.colour": 1,
                "field interfaces.interfaceCounters.inJumbos": 2,
                "field extra": 1,
            },
            id="json",
        ),
        pytest.param(
            "exports/ports.csv",
            "time,host,interface,rx_packets,rx_bytes,site_code\n"
            "2026-03-02T09:00:00Z,leaf15,Ethernet1,5,6,77\n",
            {"field site_code": 1},
            id="counter records",
        ),
    ],
)
def test_what_no_column_keeps_is_told_by_name(
    tmp_path: Path, name: str, text: str, told: dict[str, int]
) -> None:
    found = Ingested(tmp_path, {name: text})
    assert found.account[0][2] == 0
    for kind, count in told.items():
        assert f"{kind} {count}" in found.rows("files", "not_kept")[0][0].split(", ")
        assert f"{kind} {count}" in found.output.replace("\n", " ")


def test_sections_that_no_block_names_are_told(tmp_path: Path) -> None:
    text = (
        "START_NODES\nNodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,"
        'PortGUID\n"leaf9",41,2,1,1,0xb83fd20300110100,0xb83fd20300110100,0xb83fd20300110100\n'
        "END_NODES\nSTART_FOO\nA,B\n1,2\n3,4\nEND_FOO\n"
    )
    found = Ingested(tmp_path, {"ibdiagnet2.db_csv": text})
    assert "section FOO 3" in found.rows("files", "not_kept")[0][0].split(", ")


def test_bins_of_mlxlink(tmp_path: Path) -> None:
    text = (
        "root@gpu-a07:~# mlxlink -d mlx5_2 --rx_fec_histogram --show_histogram\n"
        "Histogram of FEC Errors\n-----------------------\n"
        "Header     : Range        Occurrences\nBin 0      : [0:0]        90112007\n"
        "Bin 15     : [15:15]      3\n"
    )
    found = Ingested(tmp_path, {"gpu-a07/mlxlink.txt": text})
    rows = found.rows("port_samples", "device, port, other['Bin 0'], other['Bin 15']")
    assert rows == [("gpu-a07", "mlx5_2/1", 90112007, 3)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "leaf11/show_lldp_neighbors_detail.txt",
            "Interface Ethernet49/1 detected 1 LLDP neighbors:\n\n"
            '  Neighbor 2a00.5e00.0001/"Ethernet12/1", age 24 seconds\n'
            '    Port ID     : "Ethernet12/1"\n  - System Name: "spine03"\n'
            "    Management Address        : 10.20.0.3\n",
            id="EOS",
        ),
        pytest.param(
            "gpu-a07/lldpctl.json",
            '{"lldp": {"interface": {"eth7": {'
            '"chassis": {"spine03": {"mgmt-ip": "10.20.0.3"}}, "port": {"descr": "swp3"}}}}}',
            id="lldpctl",
        ),
    ],
)
def test_a_management_address_of_lldp_names_its_switch(
    tmp_path: Path, name: str, text: str
) -> None:
    found = Ingested(tmp_path, {name: text})
    query = "SELECT device FROM device_names WHERE id = '10.20.0.3'"
    result = CliRunner().invoke(app, ["sql", query, "--store", str(found.store), "--format", "csv"])
    assert result.output.splitlines()[1:] == ["spine03"]
