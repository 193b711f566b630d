-- question: Which settings of switches, hosts and NCCL differ from those of their peers, or from what is recommended?
-- columns:
--   check        what is compared
--   role         among whom: hosts, or switches called alike
--   usual        value most of them have
--   agreeing     devices, NICs or ports with it
--   told         those that tell a value
--   odd          first five others, with their values
--   recommended  value that is recommended, if any
--   verdict      alike, differs, not as recommended, no usual value, one value alone, or not seen
--   why          why it matters
--   read_from    outputs it is read from; where it is not seen, what to collect
-- example: fabricobs query configuration_audit
--
-- A usual value is that of three quarters of at least three; two that differ have none. `not seen` means that no file
-- tells it, not that it is right. What does not fit along a path (PFC, watchdog, MTU) is a finding, `path_mismatch`.
-- The MTU of a port that is up is compared with ports for the same: those of RDMA devices, ports of switches, and the
-- others by their speed, or by the look of their name where no output tells it.
SELECT c.name || CASE WHEN u.fact IN ('MTU', 'FEC', 'version') OR u.fact IS NULL OR u.fact = '' THEN '' ELSE ': ' || u.fact END AS "check",
  u.role, u.usual, u.holders AS agreeing, u.told, u.odd_values AS odd, c.recommended,
  CASE WHEN u.name IS NULL THEN 'not seen'
    WHEN c.recommended IS NOT NULL AND u.usual <> c.recommended THEN 'not as recommended'
    WHEN u.told = 1 THEN 'one value alone' WHEN u.alike THEN 'alike' WHEN u.is_usual THEN 'differs' ELSE 'no usual value' END AS verdict,
  c.why,
  coalesce(nullif(concat_ws('; ', 'SONiC: ' || c.sonic, 'EOS: ' || c.eos, 'NX-OS: ' || c.nxos, 'Cumulus: ' || c.cumulus, 'Junos: ' || c.junos, 'SR Linux: ' || c.sr_linux, 'InfiniBand: ' || c.infiniband, 'hosts: ' || c.hosts), ''), 'nothing yet') AS read_from
FROM configuration_checks c
LEFT JOIN configuration_compared u ON u.name = c.name
WHERE EXISTS (FROM configuration_parts)
ORDER BY list_position(['not as recommended', 'differs', 'no usual value', 'one value alone', 'alike', 'not seen'], verdict), 1, u.role;
