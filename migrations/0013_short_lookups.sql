-- A worker's open attempts and a job's other generations are looked up in indexes that have only
-- these few. SQLite took the index of all attempts of a worker, and looked for other generations of
-- every job among all keys.
CREATE INDEX attempts_open_by_worker ON attempts (worker_id, slot) WHERE outcome IS NULL;
DROP VIEW v_workers;
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots,
       CASE WHEN state = 'offline' OR drain IS NULL THEN state
            WHEN EXISTS (SELECT 1 FROM attempts AS a INDEXED BY attempts_open_by_worker
                         WHERE a.worker_id = w.worker_id AND a.outcome IS NULL)
            THEN 'draining' ELSE 'drained' END AS state,
       last_seen_at, version,
       (SELECT count(DISTINCT a.slot) FROM attempts AS a INDEXED BY attempts_open_by_worker
        WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots,
       drain, CASE name WHEN '' THEN host ELSE name END AS name
FROM workers AS w;

CREATE INDEX jobs_again ON jobs (key, generation) WHERE generation > 1;
DROP VIEW v_jobs;
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state,
       j.attempts, j.device, j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained, j.configuration_id,
       j.train_loss, j.test_loss, j.trained AND j.diverged AS diverged, j.warning,
       CAST(j.train_eval_correct AS REAL) / j.train_eval_total AS train_eval_accuracy,
       j.train_eval_correct, j.train_eval_total
FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id
-- The generation that counts: the newest that is trained; the newest, if none is.
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other INDEXED BY jobs_again
  WHERE other.key = j.key AND other.generation > 1 AND other.generation <> j.generation
    AND (other.trained > j.trained
         OR (other.trained = j.trained AND other.generation > j.generation)))
AND (j.generation = 1 OR NOT EXISTS (
  SELECT 1 FROM jobs AS first
  WHERE first.key = j.key AND first.generation = 1 AND first.trained > j.trained));
