-- question: What does each host or rank run with that should be the same on all hosts of its job?
-- `about` says which diagnosis a fact belongs to, `bad` that the value is wrong wherever it stands (null:
-- only a difference is), `decides` whether it accuses by itself or only supports. To compare more, add
-- `ABOUT_facts.sql`, a part here, and a model whose rule reads it from `host_differences`.
SELECT 'gpudirect' AS about, * FROM evidence.gpudirect_facts
UNION ALL SELECT 'affinity', * FROM evidence.affinity_facts
UNION ALL SELECT 'network', * FROM evidence.network_facts
UNION ALL SELECT 'settings', * FROM evidence.settings_facts
