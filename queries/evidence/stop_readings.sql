-- question: Which counters of stopped senders are in the store, however often they were read?
SELECT EXISTS (
    FROM priority_samples
    WHERE coalesce(pfc_rx_frames, pfc_tx_frames, pfc_rx_pause_us, pfc_tx_pause_us) IS NOT NULL
  ) AS pauses,
  EXISTS (FROM pause_intervals) AS paused_twice,
  EXISTS (FROM port_samples WHERE xmit_wait IS NOT NULL) AS waits,
  EXISTS (FROM evidence.switch_systems WHERE system = 'infiniband')
    OR EXISTS (FROM nccl_nics WHERE link_layer = 'IB') AS infiniband
