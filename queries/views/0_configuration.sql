-- The checks of `configuration_audit`: the recommended value where one holds for all sites, why it matters, and what
-- outputs of whom it is read from. `missing` says what is not covered. A site can replace this file.
CREATE OR REPLACE TABLE configuration_checks AS
SELECT * FROM (VALUES
  ('PFC priorities of switch ports', NULL, 'A class that one hop does not protect loses packets there',
    'CONFIG_DB (config_db.json, show runningconfiguration all), show pfc priority', 'show running-config, show priority-flow-control', 'show running-config, show interface priority-flow-control', 'nv config show (YAML, commands, JSON), nv show qos roce (text, JSON), qos_features.conf', 'show configuration', 'info | as json', NULL, NULL, 'priorities that DCBX agrees on, and on NX-OS the mode auto in a configuration; `show running-config | json` of EOS'),
  ('PFC priorities of hosts', NULL, 'A host that pauses another class than its leaf protects is not heard',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'mlnx_qos -i, dcb pfc show', 'bnxt and ionic tools'),
  ('PFC watchdog', NULL, 'Without one a pausing NIC stops the fabric behind it',
    'CONFIG_DB, show pfcwd config', 'show running-config, show priority-flow-control', 'show running-config, show queuing pfc-queue (text, JSON)', 'nv config show, qos_features.conf', 'show configuration', 'info | as json', NULL, NULL, 'nv show interface PORT qos pfc-watchdog; switchd.conf; times of Junos'),
  ('ECN thresholds', NULL, 'A switch that marks late, or not at all, leaves congestion to PFC',
    'CONFIG_DB, show ecn', 'show running-config, show qos interfaces ecn', 'show running-config', 'nv config show, nv show qos roce, nv show qos congestion-control, qos_features.conf', 'show configuration', 'info | as json', NULL, NULL, 'which queue a profile of SONiC is for by `show ecn` alone; thresholds that `qos roce` sets unless `nv show qos roce` prints them; thresholds in segments, percent or time are not compared with bytes; `show policy-map` alone, which does not tell what is applied; whether they fit the buffer is judged by ecn_misconfigured'),
  ('trust of switch ports', NULL, 'A port that trusts another field puts RoCE into the default class, which drops',
    'CONFIG_DB', 'show running-config, show qos interfaces', NULL, 'nv config show, nv show qos roce, qos_features.conf', 'show configuration', NULL, NULL, NULL, 'NX-OS has none, its class maps are under DSCP maps; SR Linux'),
  ('trust of hosts', 'dscp', 'Routed fabrics carry the class in DSCP; PCP is lost at the first router',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'mlnx_qos -i', NULL),
  ('DSCP maps', NULL, 'A DSCP mapped to another class is not protected',
    'CONFIG_DB', 'show running-config, show qos maps', 'show running-config', 'nv config show, nv show qos roce, qos_features.conf', 'show configuration', NULL, NULL, 'mlnx_qos -i; traffic_class and default_roce_tos of sysfs and configfs, copied with their paths', 'SR Linux; SONiC: show qos map; maps from classes to queues; PCP'),
  ('MTU', NULL, 'The smallest MTU of a path counts; larger packets are dropped',
    'CONFIG_DB, show interfaces status', 'show interfaces, show running-config', 'show interface, show running-config', 'nv show interface, nv config show', 'show configuration', 'info | as json', 'ibdiagnet2.db_csv', 'ip link, sysfs net/PORT/mtu, node_exporter', 'what a queue pair uses (ibv_devinfo); ports that are down'),
  ('buffer profiles', NULL, 'Headroom that is too small loses packets in spite of PFC',
    'CONFIG_DB, show buffer configuration', 'show running-config (mmu queue profile)', 'show running-config (queue-limit, pause buffer-size)', 'nv config show, qos_features.conf', 'show configuration', 'info | as json', NULL, NULL, 'what a profile of EOS contains; which ports of SONiC use which; qos_infra.conf; sizes in use'),
  ('QoS policies of switch ports', NULL, 'A port without the policy of its neighbours treats RoCE as any traffic',
    'CONFIG_DB', 'show running-config', 'show running-config', 'nv config show, nv show qos roce', 'show configuration', NULL, NULL, NULL, 'SR Linux; schedulers of SONiC'),
  ('hash fields', NULL, 'Few fields polarise: RoCE flows differ in the UDP source port alone',
    'CONFIG_DB, show switch-hash global', 'show running-config, show load-balance profile', 'show running-config, show ip load-sharing, show port-channel load-balance', 'nv config show, traffic.conf', 'show configuration', NULL, NULL, NULL, 'load-balance policies of EOS; SR Linux; fields of Junos but those of `enhanced-hash-key inet`; whether leaves and spines share a seed'),
  ('adaptive routing', NULL, 'Static routes collide; switches and NICs must agree on it',
    NULL, 'show running-config (load-balance cluster)', 'show running-config (hardware profile dlb)', 'nv config show', 'show configuration', NULL, NULL, 'NCCL_DEBUG=INFO (NCCL_IB_ADAPTIVE_ROUTING)', 'SONiC; SR Linux; dynamic load balancing of EOS; the subnet manager'),
  ('ACS', 'off', 'It redirects traffic between GPU and NIC through the root complex; virtual machines may need it',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lspci -vvv as root (ACSCtl of bridges)', NULL),
  ('relaxed ordering', NULL, 'Without it PCIe limits a fast NIC on some CPUs',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lspci -vvv as root, NCCL_DEBUG=INFO (NCCL_IB_PCI_RELAXED_ORDERING)', 'mlxconfig'),
  ('PCIe width', 'full', 'A slot that trained down halves the NIC',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lspci -vvv as root, of NICs; kernel log, of devices that trained down', NULL),
  ('PCIe read size', NULL, 'Reads of 512 bytes keep a fast NIC waiting',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lspci -vvv as root', NULL),
  ('IOMMU', NULL, 'Translation of each address slows GPUDirect',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, '/proc/cmdline', 'what the firmware sets; the kernel log'),
  ('GPUDirect module', NULL, 'With neither nvidia_peermem nor DMA-BUF traffic goes through host memory',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'lsmod, NCCL_DEBUG=INFO', 'the modules of AMD and Intel'),
  ('NCCL variables', NULL, 'Ranks that are set differently choose other algorithms, or hang',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'NCCL_DEBUG=INFO', 'variables that contradict each other are a finding, `nccl_variables`'),
  ('NCCL version', NULL, 'Mixed versions hang, or choose differently',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'NCCL_DEBUG=INFO', NULL),
  ('firmware', NULL, 'Mixed firmware behaves in two ways under congestion',
    'show interfaces transceiver', NULL, 'show interface transceiver', NULL, NULL, NULL, 'ibswinfo, ibdiagnet2.cables', 'sysfs fw_ver, ibstat, ethtool -i, ethtool -m, mlxlink', 'modules of EOS and Cumulus; versions of the operating system of switches'),
  ('drivers', NULL, 'Mixed drivers have two sets of defaults',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ethtool -i, NCCL_DEBUG=INFO, nvidia-smi, nvidia-smi -q, kernel log', NULL),
  ('kernel', NULL, 'Mixed kernels have other drivers, and other defaults',
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'uname -r, kernel log, NCCL_DEBUG=INFO', 'of NCCL_DEBUG=INFO what RCCL prints'),
  ('FEC', NULL, 'Both ends must use one code; a weaker one loses packets',
    'show interfaces status, show interfaces fec status', NULL, 'show interface', NULL, NULL, NULL, 'ibdiagnet2.db_csv, ibdiagnet2.net_dump_ext', 'ethtool --show-fec', 'EOS and Cumulus')
) AS t(name, recommended, why, sonic, eos, nxos, cumulus, junos, sr_linux, infiniband, hosts, missing);

-- What a finding says of a setting that is known to hurt, or of a device whose setting is not that of its peers. `level`
-- is `low` where the setting hurts by itself, `info` where only a difference is known.
CREATE OR REPLACE TABLE configuration_advice AS
SELECT * FROM (VALUES
  ('ACS', 'low', '`setpci` or a boot script turns ACS off on the bridges between GPUs and NICs; compare GPUDirect bandwidth (`ib_write_bw --use_cuda`) before and after. Virtual machines that share devices need ACS.', 'NCCL user guide, Troubleshooting, PCI Access Control Services'),
  ('PCIe width', 'low', 'Reseat the NIC, and compare `lspci -vv` (LnkSta against LnkCap) with the same slot of a neighbour.', 'PCI Express Base Specification, Link Width: x8 carries half of x16'),
  ('GPUDirect module', 'low', '`modprobe nvidia_peermem`, or use a driver and a kernel with DMA-BUF.', 'GPUDirect RDMA guide of CUDA'),
  ('PFC watchdog', 'low', 'Turn the watchdog on, on one switch first, with times of its documentation.', 'Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016: a NIC that pauses without end stopped a data centre'),
  ('ECN thresholds', 'info', NULL, NULL), ('trust of switch ports', 'info', NULL, NULL), ('trust of hosts', 'info', NULL, NULL),
  ('DSCP maps', 'info', NULL, NULL), ('buffer profiles', 'info', NULL, NULL), ('QoS policies of switch ports', 'info', NULL, NULL),
  ('hash fields', 'info', NULL, NULL), ('adaptive routing', 'info', NULL, NULL), ('relaxed ordering', 'info', NULL, NULL),
  ('PCIe read size', 'info', NULL, NULL), ('IOMMU', 'info', NULL, NULL), ('firmware', 'info', NULL, NULL), ('drivers', 'info', NULL, NULL),
  ('kernel', 'info', NULL, NULL)
) AS t(name, level, first_step, source);
