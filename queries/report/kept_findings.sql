-- question: Which findings of earlier diagnoses are kept? Of one found several times, the last judgement.
-- Who asks for one has seen that: it may have been of one job, whose data end later or earlier.
-- columns:
--   id        Stable over reruns
--   document  The whole finding as JSON
SELECT id, document
FROM findings
QUALIFY row_number() OVER (
  PARTITION BY id ORDER BY told DESC NULLS LAST, coalesce("end", start) DESC NULLS LAST, run
) = 1
ORDER BY coalesce("end", start) DESC NULLS LAST, loss_share DESC NULLS LAST, id
