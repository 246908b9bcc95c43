-- A slot may hold several attempts, of jobs that one trainer takes together: what is busy is the slot, once.

-- Public views ------------------------------------------------------------------------------------------------------

DROP VIEW v_workers;
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots,
       CASE WHEN state = 'offline' OR drain IS NULL THEN state
            WHEN EXISTS (SELECT 1 FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL)
            THEN 'draining' ELSE 'drained' END AS state,
       last_seen_at, version,
       (SELECT count(DISTINCT a.slot) FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots,
       drain
FROM workers AS w;
