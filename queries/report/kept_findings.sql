-- question: Which findings of earlier diagnoses are kept? Of one found several times, the judgement
-- that saw the newest data, of these the last.
-- columns:
--   id        Stable over reruns
--   document  The whole finding as JSON
SELECT id, document
FROM findings
QUALIFY row_number() OVER (
  PARTITION BY id ORDER BY coalesce("end", start) DESC NULLS LAST, told DESC NULLS LAST, run
) = 1
ORDER BY coalesce("end", start) DESC NULLS LAST, loss_share DESC NULLS LAST, id
