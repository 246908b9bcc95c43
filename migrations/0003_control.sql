-- Control while sweeps run: pausing, extending, cancelling in slices; workers that drain.

-- A paused sweep starts no further jobs. Only a sweep that is expanding or active is ever paused.
ALTER TABLE sweeps ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
-- Set while jobs of a cancelled sweep are still to be dropped: the ordinal from which on.
ALTER TABLE sweeps ADD COLUMN drop_from INTEGER;
-- Seeds that were added to the document's, ["5..9","12"]: each extension's cells follow those before it.
ALTER TABLE sweeps ADD COLUMN extensions_json TEXT NOT NULL DEFAULT '[]';
-- Hardly ever has a row: what an assignment looks at before it asks more.
CREATE INDEX sweeps_held ON sweeps (sweep_id) WHERE paused = 1 OR drop_from IS NOT NULL;

-- A job goes with the most urgent of the live sweeps that claim it and are not paused: their rows say how urgent.
ALTER TABLE jobs DROP COLUMN priority;

-- A worker that drains takes no more jobs, whatever restarts, until it is told to resume.
ALTER TABLE workers ADD COLUMN drain TEXT CHECK (drain IN ('finish', 'checkpoint', 'kill'));

-- Public views ------------------------------------------------------------------------------------------------------

DROP VIEW v_workers;
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots,
       CASE WHEN state = 'offline' OR drain IS NULL THEN state
            WHEN EXISTS (SELECT 1 FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL)
            THEN 'draining' ELSE 'drained' END AS state,
       last_seen_at, version,
       (SELECT count(*) FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots,
       drain
FROM workers AS w;
