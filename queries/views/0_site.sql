-- What a site's configuration says and no log tells; empty without one. `device` and `port` are
-- patterns, * and ? standing for any.
CREATE OR REPLACE TABLE site_link_rates (device VARCHAR, port VARCHAR, speed_gbps DOUBLE);

-- The 802.1p priorities the job's traffic uses: pauses of others are not its own. Empty: any.
CREATE OR REPLACE TABLE site_priorities (priority BIGINT);
