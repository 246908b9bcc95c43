-- A job's row is written with every epoch of it, its spec never: apart from it, a dozen jobs share a page of the log instead
-- of three, and the queue of a million jobs is read without their specs.
CREATE TABLE job_specs (
  job_id INTEGER PRIMARY KEY REFERENCES jobs,
  spec_json TEXT NOT NULL                    -- canonical
) STRICT;
INSERT INTO job_specs SELECT job_id, spec_json FROM jobs;

-- What a slot must know to run the job.
ALTER TABLE jobs ADD COLUMN pe_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN task_version INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET pe_version = coalesce(spec_json ->> '$.pe.version', 0),
                task_version = coalesce(spec_json ->> '$.task.version', 0);

DROP VIEW v_jobs;
ALTER TABLE jobs DROP COLUMN spec_json;

-- Public views ------------------------------------------------------------------------------------------------------

CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, j.attempts, j.device,
       j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, s.spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained
FROM jobs AS j LEFT JOIN job_specs AS s ON s.job_id = j.job_id
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained OR (other.trained = j.trained AND other.generation > j.generation)));
