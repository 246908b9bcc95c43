-- What readers of results had to work out for themselves: final losses, which trainings diverged, and how many examples an
-- ablation took.

-- Above it a final loss is that of a training that diverged (core/experiment/chance.h); NULL where the spec is not of this version.
ALTER TABLE configurations ADD COLUMN divergence_loss REAL;

-- Of the last stored epoch, as the counts beside them.
ALTER TABLE jobs ADD COLUMN train_loss REAL;
ALTER TABLE jobs ADD COLUMN test_loss REAL;
-- Both losses of the last epoch of all are above divergence_loss. (For jobs of before it is filled in by migrations/migrate.cc.)
ALTER TABLE jobs ADD COLUMN diverged INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_diverged ON jobs (job_id) WHERE diverged = 1;

UPDATE jobs SET (train_loss, test_loss) = (
  SELECT train_loss, test_loss FROM accepted_epochs
  WHERE waits = 0 AND job_id = jobs.job_id AND epoch = jobs.epochs_done - 1)
WHERE epochs_done > 0;
CREATE TEMP TABLE waiting AS SELECT job_id, epoch, train_loss, test_loss FROM accepted_epochs WHERE waits = 1;
UPDATE jobs SET (train_loss, test_loss) = (waiting.train_loss, waiting.test_loss)
FROM waiting WHERE waiting.job_id = jobs.job_id AND waiting.epoch = jobs.epochs_done - 1;
DROP TABLE waiting;

-- Public views ------------------------------------------------------------------------------------------------------

DROP VIEW v_jobs;
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, j.attempts, j.device,
       j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained, j.configuration_id,
       j.train_loss, j.test_loss, j.trained AND j.diverged AS diverged
FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained OR (other.trained = j.trained AND other.generation > j.generation)));

DROP VIEW v_head_ablation;
-- Of matrices that differ in nothing but the version of the analysis, the latest.
CREATE VIEW v_head_ablation AS
SELECT n.job_id,
       n.parameters_json ->> '$.method' AS method,
       n.parameters_json ->> '$.hygiene' AS hygiene,
       n.parameters_json ->> '$.data' AS split,
       h.layer, h.head, h.correct, n.total,
       CAST(h.correct AS REAL) / n.total AS accuracy,
       CAST(n.intact_correct - h.correct AS REAL) / n.total AS accuracy_drop,
       n.intact_correct,
       coalesce(n.parameters_json ->> '$.target', 'head') AS target,
       h.lost, h.gained, h.drop_standard_error,
       (CAST(n.intact_correct - h.correct AS REAL) / n.total)
         / nullif(max(CAST(n.intact_correct AS REAL) / n.total - n.chance, 0), 0) AS normalised_drop,
       h.nll, h.nll - n.intact_nll AS nll_drop, h.nll_standard_error AS nll_drop_standard_error, n.chance,
       n.analysis_id,
       n.parameters_json ->> '$.max_examples' AS max_examples
FROM analyses AS n JOIN head_ablation AS h USING (analysis_id)
WHERE NOT EXISTS (
  SELECT 1 FROM analyses AS newer
  WHERE newer.job_id = n.job_id AND newer.name = n.name AND newer.version > n.version
    AND newer.parameters_json ->> '$.method' IS n.parameters_json ->> '$.method'
    AND newer.parameters_json ->> '$.hygiene' IS n.parameters_json ->> '$.hygiene'
    AND newer.parameters_json ->> '$.data' IS n.parameters_json ->> '$.data'
    AND newer.parameters_json ->> '$.max_examples' IS n.parameters_json ->> '$.max_examples'
    AND coalesce(newer.parameters_json ->> '$.target', 'head') =
        coalesce(n.parameters_json ->> '$.target', 'head'));
