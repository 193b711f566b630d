-- The p of so many events or more where `expected` come by chance: Poisson, an upper bound. The tail is at
-- most its first term over 1 - expected / (events + 1): a few percent above the exact p where p is small.
CREATE OR REPLACE MACRO events_at_least(events, expected) AS CASE
  WHEN events <= expected THEN 1.0
  WHEN expected <= 0 THEN 0.0
  ELSE least(1.0, exp(events * ln(expected) - expected - lgamma(events + 1.0))
    / (1 - expected / (events + 1.0)))
END;

-- The two-sided p of a standard normal deviate, from above: Mills' ratio is below 1 / z. At most 1.
CREATE OR REPLACE MACRO two_sided_p(z) AS
  least(2 * exp(-(z * z) / 2) / (greatest(abs(z), 1) * sqrt(2 * pi())), 1);

-- Whether so many of a number are usual: the share of them, or all but one.
CREATE OR REPLACE MACRO nearly_all(agreeing, of_all, share) AS agreeing >= least(share * of_all, of_all - 1);
