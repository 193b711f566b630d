"""Words in file names that describe content, and patterns of names of devices.

`COMMAND_WORDS` are words of commands, tools and formats; `FOLDER_WORDS` say what lies in a folder;
`SERIES_WORDS` number what was done again (`run2`); `GROUP_WORDS` name more than one device
(`rack3`). A word of these is never a host by itself, but may be one among others that are.
"""

import re

COMMAND_WORDS = frozenset(
    """
    show interfaces interface intf int if ifconfig ifstat counters counter cnt pfc pfcwd queue
    queues lldp neighbors neighbor neighbours table status state detail detailed details errors
    error err rates rate stats statistics statistic stat watermark watermarks watchdog ecn wred fec
    transceiver optics config cfg conf running priority priorities flow control buffer pg group
    rif trim voq hash settings brief all clear ethtool sysfs procfs hw sw port ports s
    dmesg kernel kern journal journalctl messages syslog lsmod xid mce modules ibstat ibstatus
    ibdev2netdev ibv devinfo rdma link links statistic mlxlink mlx mlnx qos dcb dcbtool topo nvlink
    nvidia smi db name map gnmi gnmic perfquery ibdiagnet ibdiagnet2 iblinkinfo ibnetdiscover
    ibnodes ibswitches ibhosts ibqueryerrors ibswinfo infiniband ib roce ibcounters nic nics
    nicstat nicstats net network netdev snmp snmpwalk walk ifmib prom prometheus node exporter
    exporter metrics metric telemetry telegraf influx openconfig nxapi eapi redis asic
    dcgm dcgmi dmon pmon
    bug report tech techsupport support showtech sosreport sos supportconfig scc generate
    sonic eos nxos cumulus nv nvue junos onyx arista cisco nvidia mellanox rancid oxidized
    cmd cmds command commands cli txt log logs out output outputs raw csv json jsonl yaml xml html
    dump dumps snapshot snapshots data file files stdout stderr capture captures session sessions
    console typescript putty screen script hostname date uname uptime version info sample samples
    cat grep tail find loop watch cron collect collected collector fetch fetched pull poll
    polled monitor monitoring mon export exports shared common total summary report reports
    nccl rccl mpi mpirun train trainer training inspector ras steps step rank ranks loss job slurm
    torchrun deepspeed megatron events event trace traces ncclras py spy pyspy stack stacks pystack
    faulthandler and of for the to by on with x y p e d v
    """.split()
)
FOLDER_WORDS = frozenset(
    """
    switches leaves spines hosts nodes gpus devices host node device leaf spine switch fabric
    logs log raw data dump dumps sys class proc var etc tmp opt home usr run dev share mnt srv
    full flat parallel adhoc bymgmt mgmt hourly daily weekly nodes clients servers client server
    controller controllers archive archives bundle bundles copy copies sys_class infiniband
    sos_commands networking counters hw_counters ports telegraf vector elastic loki latest current
    lightning_logs output checkpoint checkpoints wandb mlruns tb runs site sites pods containers
    inventory inventories cabling
    """.split()
)
_SERIES = re.compile(
    r"(?:before|after|pre|post|start|end|begin|baseline|idle|load|loaded|during|first|last|run|test|"
    r"iter|iteration|round|attempt|try|sample|snap|snapshot|set|batch|seq|step|phase|copy|backup|"
    r"bak|old|new|tmp|temp|case|ticket|incident|part|chunk|take|version|ver|v|t|day|night|week|"
    r"month|year|hour|hr|min|minute|sec|exp|experiment|trial|epoch|job|jobs|task|pid|pass|session|local|"
    r"capture|dump|file|data|output|out|log|results?|cmd|command|window|period|"
    r"(?:local_?)?rank|checkpoint|ckpt|global_step|counters?|hour_of|measure(?:ment)?)[-_. #]?\d*",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"(?:rack|row|room|dc|datacenter|site|zone|az|region|cluster|pod|cage|hall|building|floor|"
    r"cell|su|unit|plane|rail|partition|queue|tenant|project|env|prod|dev|staging|campus|team)"
    r"[-_. ]?[a-z]?\d*[a-z]?",
    re.IGNORECASE,
)
# Models of GPUs: folders and files are grouped by them.
_MODEL = re.compile(r"[ahvb][1-3]00|gb[23]00|mi\d{3}[ax]?", re.IGNORECASE)
_KINDS = (
    "gpu node host leaf spine superspine ibleaf ibspine tor sw switch dgx hgx compute worker "
    "server srv cn nid core agg edge blade login master storage nvsw n9k n3k cpu"
).split()
_TIERS = frozenset("leaf spine superspine ibleaf ibspine tor core agg edge".split())
# What follows a kind is no longer word: `torch-2` is no top-of-rack switch.
_KIND = re.compile(
    rf"(?:[a-z0-9]+[-.])*(?:{'|'.join(_KINDS)})+(?=[-.\d]|[a-z]\d)"
    r"[-.]?(?:[a-z0-9]+[-.])*[a-z]{0,2}\d+[a-z]?",
    re.IGNORECASE,
)
_FQDN = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9][\w-]*(?:\.[A-Za-z0-9][\w-]*)+\.[A-Za-z]{2,}")
_LOCAL = re.compile(r"[A-Za-z0-9][\w-]*\.(?:local|lan|internal|localdomain|intra|corp|home)", re.I)
ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_OF_ADDRESS = re.compile(r"ip(?:-\d{1,3}){4}")  # as clouds call their machines
_HOST_KEYS = frozenset("host hostname node nodename device switch instance machine server".split())
_HEX = re.compile(r"(?:0x)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}", re.I)

# RDMA devices and net devices of hosts, and ports as switches name them.
RDMA_DEVICE = (
    r"(?:mlx[45][_-](?:bond[_-])?\d+|bnxt_re\d+|bnxt_re-?bond\d+|irdma\d+|rdma\d+"
    r"|rdmap\d+s\d+(?:[a-z]+\d+)*|roce\d+|rocep\d+s\d+(?:[a-z]+\d+)*|hns_\d+|efa_\d+|cxgb4_\d+"
    r"|qedr\d+|erdma_\d+|hfi1_\d+|ionic_\d+|mana_\d+|usnic_\d+|cxi\d+)"
)
NET_DEVICE = (
    r"(?:en(?:o\d+|x[0-9a-f]{12}|s\d+|P?\d*p\d+s\d+)(?:[a-z]+\d+)*(?:[.]\d{1,4})?"
    r"|eth\d+|bond\d+|team\d+|em\d+|p\d+p\d+|hsn\d+|swp\d+(?:s\d+)?|mgmt\d+"
    r"|ib(?:\d+|s\d+|p\d+s\d+)(?:[a-z]+\d+)*)"
)
SWITCH_PORT = (
    r"(?:Eth(?:ernet)?\d+(?:[-_/]\d+){0,2}|Et\d+(?:[-_/]\d+){0,2}|PortChannel\d+|Po\d+|"
    r"[A-Za-z]*GigE(?:thernet)?\d+(?:[-_/]\d+){0,3})"
)
# The number of a VLAN is no part of a longer number: ens3.20260302.
_NET_DEVICE_ALONE = NET_DEVICE.replace(r"\d{1,4})?", r"\d{1,4}(?![\d.]))?")
INTERFACE = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_NET_DEVICE_ALONE}|{RDMA_DEVICE}|{SWITCH_PORT})(?![A-Za-z0-9])"
)
_IS_RDMA = re.compile(RDMA_DEVICE)
# A rank in the job, or in the `part` of it that stands before: a host, the hosts, a parallel group.
RANK = re.compile(
    r"(?<![A-Za-z])(?:(?P<part>local|node|machine|group|role|tensor|pipeline|[tpdcesm]p)[-_. ]?)?"
    r"rank[-_.=]?(?P<rank>\d+)(?![A-Za-z\d])",
    re.IGNORECASE,
)


def is_word(text: str) -> bool:
    """Say whether a name is one that says what a file or folder holds, or numbers it."""
    low = text.lower()
    return (
        low in COMMAND_WORDS
        or low in FOLDER_WORDS
        or len(text) == 1
        or _SERIES.fullmatch(text) is not None
    )


def is_kind(text: str) -> bool:
    """Say whether a word is a kind of device, which the names of devices begin with."""
    return text.lower() in _KINDS


def is_tier(text: str) -> bool:
    """Say whether a word is a tier of a fabric, which tells two switches of one place apart."""
    return text.lower() in _TIERS


def is_host_key(key: str) -> bool:
    """Say whether `key` of `key=value` names a host."""
    return key.lower() in _HOST_KEYS


def likeness(name: str) -> int:
    """Say how much a name looks like that of a host or switch.

    4 names its kind (`gpu-01`, `leaf07`), is an address or has a domain; 3 has letters and digits;
    2 is a word; 1 is a number, a model or the name of a group of devices; 0 says what lies there.
    """
    if (
        ADDRESS.fullmatch(name)
        or _OF_ADDRESS.fullmatch(name)
        or _FQDN.fullmatch(name)
        or _LOCAL.fullmatch(name)
    ):
        return 4
    if is_word(name) or not name or name[0] in "-_.":
        return 0
    if name.isdecimal() or any(of.fullmatch(name) for of in (_GROUP, _MODEL, _HEX)):
        return 1
    if _KIND.fullmatch(name):
        return 4
    letters = any(c.isalpha() for c in name)
    if letters and any(c.isdecimal() for c in name):
        return 3
    return 2 if letters and len(name) > 2 else 0


def is_rdma_device(name: str) -> bool:
    """Say whether a name of a NIC is that of its RDMA device."""
    return _IS_RDMA.fullmatch(name) is not None


def is_surely_a_device(name: str) -> bool:
    """Say whether a name can be nothing but that of a host or switch."""
    return likeness(name) >= 4
