-- question: Which share of its usual step does the job transfer that does so longest?
SELECT max(share) AS share FROM (
  SELECT median(transfer_ms / step_time_ms) AS share FROM evidence.job_steps
  WHERE transfer_ms IS NOT NULL AND step_time_ms > 0 GROUP BY job
) WHERE share > 0
