-- How the counters of a table count by format: a map of counters to the `info` of `rise`.
CREATE OR REPLACE VIEW counter_rules AS
SELECT table_name, format, map_from_entries(list((counter, {
    'most': 2 ^ width, 'width': width, 'overflow': overflow, 'kind': kind
  }))) AS rules
FROM (SELECT DISTINCT * FROM counter_info)
GROUP BY table_name, format;
