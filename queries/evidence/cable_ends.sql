-- question: Which ports are the ends of known cables?
SELECT owner, part, is_nic, far_owner, far_part, far_is_nic FROM cable_ends ORDER BY owner, part
