-- What is known of NCCL's variables. Each row has its source: `manual` is the page "Environment Variables" of NCCL's
-- user guide, `code` its source, by file. A site that knows better puts a file of this name into a folder of its own.

-- Variables that contradict each other, or what the hosts have: why it matters, and what to do first. `level` is `low`
-- where something that somebody asked for does not happen, or costs; `info` where a setting only has no effect.
-- `nccl_variable_conflicts` has the condition of each.
CREATE OR REPLACE TABLE nccl_variable_checks AS
SELECT * FROM (VALUES
  ('RDMA off and devices named', 'low', 'NCCL uses TCP sockets, which reach a fraction of a NIC''s rate.',
    'Unset NCCL_IB_DISABLE, or, if sockets are meant, NCCL_IB_HCA.', 'manual, NCCL_IB_DISABLE'),
  ('sockets and RDMA settings', 'info', 'Settings of RDMA have no effect with sockets.',
    'Unset NCCL_NET, or, if sockets are meant, what is set of RDMA.', 'manual, NCCL_NET'),
  ('no device by that name', 'low', 'NCCL takes the devices that the list names: with none it uses sockets.',
    'Compare NCCL_IB_HCA with `ibv_devices` of the host; in a container with /dev/infiniband.', 'manual, NCCL_IB_HCA'),
  ('some devices are not there', 'info', 'A device of the list that is missing, or whose port is down, is left out without a word.',
    'Compare NCCL_IB_HCA with `ibv_devices` and `ibstat` of the host: a port that is down, or a list made for other hosts.', 'manual, NCCL_IB_HCA; code, transport/net_ib: ports that are not active are left out'),
  ('no interface by that name', 'low', 'NCCL finds no interface to start by, or takes another list from its configuration.',
    'Compare NCCL_SOCKET_IFNAME with `ip link` of the host.', 'manual, NCCL_SOCKET_IFNAME'),
  ('split over one queue pair', 'info', 'A message is split over the queue pairs of a connection: with one there is nothing to split.',
    'Set NCCL_IB_QPS_PER_CONNECTION to 2 or more, or unset NCCL_IB_SPLIT_DATA_ON_QPS.', 'manual, NCCL_IB_SPLIT_DATA_ON_QPS'),
  ('adaptive routing and its threshold', 'low', 'Messages below the threshold do not use adaptive routing, and none is longer than a buffer.',
    'Unset NCCL_IB_AR_THRESHOLD, or set it below NCCL_BUFFSIZE.', 'manual, NCCL_IB_AR_THRESHOLD'),
  ('NVLS off and asked for', 'low', 'The algorithm that NCCL_ALGO names cannot be used; from 2.24 on calls fail that have no other one.',
    'Unset NCCL_NVLS_ENABLE, or take NVLS out of NCCL_ALGO.', 'manual, NCCL_NVLS_ENABLE and NCCL_ALGO'),
  ('NVLS named and not there', 'info', 'NCCL takes another algorithm of the list; a list of NVLS alone makes calls fail from 2.24 on.',
    'Find out why there is no NVLS: third generation of NVSwitch, fabric manager, and `NCCL_DEBUG_SUBSYS=NVLS`; or take it out of NCCL_ALGO.', 'manual, NCCL_ALGO and NCCL_NVLS_ENABLE'),
  ('CollNet named and not enabled', 'info', 'NCCL_ALGO does not load the plugin for reductions in the network: NCCL_COLLNET_ENABLE=1 does.',
    'Set NCCL_COLLNET_ENABLE=1 where the fabric has SHARP, or take CollNet out of NCCL_ALGO.', 'manual, NCCL_COLLNET_ENABLE'),
  ('CollNet without a plugin', 'low', 'CollNet is a plugin: without one the network reduces nothing.',
    'Unset NCCL_NET_PLUGIN, or NCCL_COLLNET_ENABLE.', 'manual, NCCL_COLLNET_ENABLE and NCCL_NET_PLUGIN'),
  ('no algorithm for some calls', 'info', 'From 2.24 on a call for which the list has no algorithm fails: Tree, NVLSTree and CollNetChain reduce on all ranks and do nothing else.',
    'Write NCCL_ALGO as `allreduce:tree`, or add `ring` to the list.', 'manual, NCCL_ALGO; code, graph/tuning'),
  ('NVLink off', 'low', 'GPUs of one host exchange data through its memory instead of NVLink.',
    'Unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL.', 'manual, NCCL_P2P_DISABLE and NCCL_P2P_LEVEL'),
  ('only the network is left', 'low', 'Without P2P and shared memory even GPUs of one host exchange data over the network.',
    'Unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE, unless the network alone is to be measured.', 'manual, NCCL_SHM_DISABLE'),
  ('fewer channels allowed than wanted', 'low', 'The least number of channels is above the largest: which holds depends on the version.',
    'Unset both, or set one of them.', 'manual, NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS, NCCL_MIN_CTAS and NCCL_MAX_CTAS'),
  ('fewer channels than NICs', 'low', 'A channel enters and leaves a host over one NIC: with fewer channels than NICs some NICs carry nothing.',
    'Unset NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS.', 'manual, NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS; code, graph/search: each channel has a NIC of its own'),
  ('NVLS off', 'info', 'Reductions within a host do not use its NVSwitch: rings move more bytes over NVLink and take more of the GPUs.',
    'Unset NCCL_NVLS_ENABLE, or note why it is off: NVLS takes memory of each communicator.', 'manual, NCCL_NVLS_ENABLE; code, graph/tuning'),
  ('PXN off and asked for', 'info', 'Without PXN no send goes through the NIC of another GPU.',
    'Unset NCCL_PXN_DISABLE or NCCL_P2P_PXN_LEVEL.', 'manual, NCCL_PXN_DISABLE and NCCL_P2P_PXN_LEVEL'),
  ('too many sockets', 'low', 'NCCL takes no more than 64 sockets a connection.',
    'Set NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD so that their product is 64 at most.', 'manual, NCCL_NSOCKS_PERTHREAD'),
  ('GPUDirect without a way', 'low', 'With DMA-BUF off and nvidia_peermem not loaded a NIC cannot read the memory of a GPU.',
    '`modprobe nvidia_peermem`, or unset NCCL_DMABUF_ENABLE.', 'manual, NCCL_DMABUF_ENABLE; GPUDirect RDMA guide of CUDA'),
  ('unprotected class', 'low', 'RoCE goes in a class that is not protected from drops: a full queue loses packets, which are sent again.',
    'Set NCCL_IB_TC to four times a DSCP of the protected class, or the map of DSCP on hosts and switches.', 'manual, NCCL_IB_TC; RFC 2474: the class is the upper six of its eight bits'),
  ('address of RoCE v1', 'low', 'RoCE v1 has no IP header: routers do not forward it, and switches read no DSCP and set no ECN in it.',
    'Unset NCCL_IB_GID_INDEX: from 2.21 on NCCL takes an address of RoCE v2; or set an index that `show_gids` shows as v2.', 'manual, NCCL_IB_GID_INDEX and NCCL_IB_ROCE_VERSION_NUM; InfiniBand specification 1.4, annexes A16 and A17'),
  ('service level without a reader', 'info', 'Ethernet carries a service level in the priority of a VLAN, which hosts that trust DSCP do not look at.',
    'Set NCCL_IB_TC instead of NCCL_IB_SL, or trust PCP.', 'manual, NCCL_IB_SL; InfiniBand specification 1.4, annex A17'),
  ('pointers checked', 'info', 'Each call checks its pointers, which makes small collectives slower.',
    'Unset NCCL_CHECK_POINTERS and NCCL_CHECK_MODE.', 'manual, NCCL_CHECK_POINTERS and NCCL_CHECK_MODE'),
  ('launch mode of debugging', 'info', 'Cooperative launches are deprecated since 2.9, and serve processes of several GPUs.',
    'Unset NCCL_LAUNCH_MODE.', 'manual, NCCL_LAUNCH_MODE'),
  ('LL alone', 'low', 'LL sends a flag with each word of data: half of the bandwidth is left at most, a quarter over several hosts.',
    'Unset NCCL_PROTO.', 'manual, NCCL_PROTO; code, graph/tuning: 1/2 to 1/4 of the bandwidth of a ring'),
  ('value not accepted', 'low', 'NCCL takes its default, the nearest value, or fails.',
    'Set a value that the manual accepts, or unset it.', 'manual, under the variable''s name')
) AS t(name, level, why, first_step, source);

-- Values that the manual accepts, as a regular expression without case.
CREATE OR REPLACE TABLE nccl_accepted_values AS
SELECT * FROM (VALUES
  ('NCCL_NTHREADS', '64|128|256|512'),
  ('NCCL_CROSS_NIC', '[012]'),
  ('NCCL_IB_RETRY_CNT', '[0-7]'),
  ('NCCL_IB_TIMEOUT', '\d|[12]\d|3[01]'),
  ('NCCL_IB_QPS_PER_CONNECTION', '[1-9]\d?|1[01]\d|12[0-8]'),
  ('NCCL_IB_SPLIT_DATA_ON_QPS', '[01]'),
  ('NCCL_IB_PCI_RELAXED_ORDERING', '[012]'),
  ('NCCL_IB_SL', '\d|1[0-5]'),
  ('NCCL_IB_TC', '\d{1,2}|1\d\d|2[0-4]\d|25[0-5]'),
  ('NCCL_SOCKET_FAMILY', 'AF_INET6?'),
  ('NCCL_SOCKET_NTHREADS', '[1-9]|1[0-6]'),
  ('NCCL_P2P_PXN_LEVEL', '[012]'),
  ('NCCL_P2P_LEVEL', 'LOC|NVL|NVB|C2C|PIX|PXB|PXN|P2C|PHB|SYS|\d+'),
  ('NCCL_NET_GDR_LEVEL', 'LOC|NVL|NVB|C2C|PIX|PXB|PXN|P2C|PHB|SYS|\d+'),
  ('NCCL_CGA_CLUSTER_SIZE', '[0-8]'),
  ('NCCL_NVLS_ENABLE', '[012]'),
  ('NCCL_PROTO', '\^?(\w+:\^?)?(LL|LL128|SIMPLE)([,;]\^?(\w+:\^?)?(LL|LL128|SIMPLE))*;?')
) AS t(name, accepted);

-- What a list of NCCL_ALGO or NCCL_PROTO asks for, in small letters: `NVLSTree,Ring`, `allreduce:tree,nvls;broadcast:ring`.
-- A list that begins with ^ leaves out what it names, and asks for nothing.
CREATE OR REPLACE MACRO asked_lists(written) AS list_filter(
  [list_reverse(string_split(part, ':'))[1] FOR part IN string_split(lower(replace(written, ' ', '')), ';')],
  lambda part: part <> '' AND NOT starts_with(part, '^'));
CREATE OR REPLACE MACRO asked_in(written) AS list_distinct(flatten([string_split(part, ',') FOR part IN asked_lists(written)]));
CREATE OR REPLACE MACRO names_nvls(written) AS list_has_any(asked_in(written), ['nvls', 'nvlstree']);
CREATE OR REPLACE MACRO names_collnet(written) AS list_has_any(asked_in(written), ['collnet', 'collnetdirect', 'collnetchain']);

-- The names of a list of devices or interfaces as prefixes, or as `=name` where a list is of whole names. A port, rail
-- and plane may follow. A list that begins with ^ leaves out what it names.
CREATE OR REPLACE MACRO named_devices(written) AS CASE WHEN written IS NULL OR starts_with(written, '^') THEN [] ELSE
  [CASE WHEN starts_with(written, '=') THEN '=' ELSE '' END || split_part(ltrim(trim(word), '='), ':', 1)
    FOR word IN string_split(written, ',') IF trim(word) <> ''] END;
CREATE OR REPLACE MACRO is_named(device, name) AS
  CASE WHEN starts_with(name, '=') THEN device = name[2:] ELSE starts_with(device, name) END;
