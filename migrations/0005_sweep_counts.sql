-- How the jobs of each sweep stand, kept in the transaction that changes them: a list of sweeps reads a row each.
CREATE TABLE sweep_counts (
  sweep_id INTEGER PRIMARY KEY REFERENCES sweeps,
  queued INTEGER NOT NULL DEFAULT 0,
  assigned INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  epochs INTEGER NOT NULL DEFAULT 0,
  epochs_done INTEGER NOT NULL DEFAULT 0,
  open_claims INTEGER NOT NULL DEFAULT 0     -- claimed jobs that have not ended, while the sweep is expanding or active
) STRICT;
INSERT INTO sweep_counts
SELECT c.sweep_id, sum(j.state = 'queued'), sum(j.state = 'assigned'), sum(j.state = 'running'), sum(j.state = 'succeeded'),
       sum(j.state = 'failed'), sum(j.state = 'cancelled'), sum(j.epochs), sum(j.epochs_done),
       sum(c.claimed = 1 AND s.state IN ('expanding', 'active') AND j.state IN ('queued', 'assigned', 'running'))
FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) JOIN sweeps AS s USING (sweep_id) GROUP BY c.sweep_id;
