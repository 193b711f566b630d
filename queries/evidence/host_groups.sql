-- question: Which hosts stand together: below one leaf, or numbered alike up to their last number?
-- Many sites number hosts within a rack: of `r12-n03` the others of `r12-n` are its rack, row or pod.
SELECT 'below ' || leaf AS place, host FROM evidence.leaf_hosts
UNION ALL
SELECT 'named ' || regexp_extract(host, '^(.*?)[0-9]+[^0-9]*$', 1) || '*', host
FROM training_hosts
WHERE regexp_matches(host, '^.*[^0-9][0-9]+[^0-9]*$')
ORDER BY place, host
