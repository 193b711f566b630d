-- question: How many times less than the NICs below it do the uplinks of the narrowest leaf carry?
-- Null where no leaf's is known.
SELECT max(ratio) AS ratio FROM leaf_capacity
