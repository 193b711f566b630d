-- question: How many times less than the NICs below it do the uplinks of the narrowest leaf carry?
-- No row where no leaf is known to be narrower by more than rounding.
SELECT max(ratio) AS ratio
FROM leaf_capacity
HAVING max(ratio) > 1.05
