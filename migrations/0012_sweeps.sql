-- Sweeps as people handle them: they go on where they were left, have notes, are renamed and deleted.

ALTER TABLE sweeps ADD COLUMN note TEXT NOT NULL DEFAULT '';
-- Its cells are looked at once more, from the first to expanded_cells: rows of sweep_jobs beyond that are of before.
ALTER TABLE sweeps ADD COLUMN expands_again INTEGER NOT NULL DEFAULT 0;
-- Nobody sees it any more; its jobs are deleted in slices, and its row goes with the last of them.
ALTER TABLE sweeps ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sweeps_deleted ON sweeps (sweep_id) WHERE deleted = 1;

-- What was submitted under each token: also submissions that went on with a sweep that was there.
CREATE TABLE submissions (
  client_token TEXT PRIMARY KEY,
  sweep_id INTEGER NOT NULL REFERENCES sweeps,
  request_sha256 TEXT NOT NULL,              -- of document, overrides and flags: another request is refused
  went_on INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_by_sweep ON submissions (sweep_id);

-- The job's epochs_done when the claim was withdrawn: what others do with the job afterwards is none of this sweep's. NULL where
-- it is claimed.
ALTER TABLE sweep_jobs ADD COLUMN withdrawn_epochs INTEGER;
UPDATE sweep_jobs SET withdrawn_epochs = (SELECT j.epochs_done FROM jobs AS j WHERE j.job_id = sweep_jobs.job_id)
WHERE claimed = 0;
DROP INDEX sweep_jobs_by_job;
CREATE INDEX sweep_jobs_by_job ON sweep_jobs (job_id, sweep_id, claimed);
CREATE INDEX jobs_by_configuration ON jobs (configuration_id);

-- A sweep counts a job on which it has no claim any more as cancelled, until somebody trains it.
INSERT OR REPLACE INTO sweep_counts
SELECT c.sweep_id,
       sum(c.claimed AND j.state = 'queued'), sum(c.claimed AND j.state = 'assigned'), sum(c.claimed AND j.state = 'running'),
       sum(j.state = 'succeeded' OR (NOT c.claimed AND j.trained AND j.state IN ('queued', 'assigned', 'running'))),
       sum(j.state = 'failed'),
       sum(j.state = 'cancelled' OR (NOT c.claimed AND NOT j.trained AND j.state IN ('queued', 'assigned', 'running'))),
       sum(j.epochs), sum(CASE WHEN j.trained AND NOT c.claimed THEN j.epochs ELSE j.epochs_done END), n.open_claims
FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) JOIN sweep_counts AS n USING (sweep_id)
WHERE EXISTS (SELECT 1 FROM sweep_jobs AS w WHERE w.sweep_id = c.sweep_id AND w.claimed = 0)
GROUP BY c.sweep_id;

-- A sweep's protocol is what its jobs say, not what its document begins with.
UPDATE sweeps SET protocol = coalesce((SELECT group_concat(protocol, ',') FROM (
  SELECT DISTINCT j.protocol FROM sweep_jobs AS c JOIN jobs AS j USING (job_id)
  WHERE c.sweep_id = sweeps.sweep_id ORDER BY j.protocol)), protocol);

-- Public views ------------------------------------------------------------------------------------------------------

DROP VIEW v_sweeps;
CREATE VIEW v_sweeps AS
SELECT s.sweep_id, s.name, s.protocol, s.state, s.priority, s.file_name, s.created_at, s.cells,
       s.new_jobs, s.stored_jobs, s.in_flight_jobs, s.failed_earlier_jobs,
       coalesce(n.queued, 0) AS queued, coalesce(n.assigned, 0) AS assigned, coalesce(n.running, 0) AS running,
       coalesce(n.succeeded, 0) AS succeeded, coalesce(n.failed, 0) AS failed, coalesce(n.cancelled, 0) AS cancelled,
       coalesce(n.epochs, 0) AS epochs, coalesce(n.epochs_done, 0) AS epochs_done,
       s.paused, s.extensions_json, s.document, s.overrides_json, s.note
FROM sweeps AS s LEFT JOIN sweep_counts AS n USING (sweep_id)
WHERE s.deleted = 0;

DROP VIEW v_sweep_jobs;
CREATE VIEW v_sweep_jobs AS
SELECT s.sweep_id, s.name AS sweep, c.job_id, c.ordinal, j.key
FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) JOIN jobs AS j USING (job_id)
WHERE s.deleted = 0;
