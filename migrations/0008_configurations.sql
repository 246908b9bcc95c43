-- Jobs that differ in nothing but their seed share a configuration, which is stored once: of a spec of a kilobyte a few digits
-- were the job's own.
CREATE TABLE configurations (
  configuration_id INTEGER PRIMARY KEY,
  template TEXT NOT NULL UNIQUE              -- the canonical spec, with char(31) where a seed has the value of the job's own
) STRICT;
-- Never NULL: a column that is added to a table cannot say so.
ALTER TABLE jobs ADD COLUMN configuration_id INTEGER REFERENCES configurations;

-- As TemplateOf of core/experiment/configuration.h. Canonical JSON has no raw char(31), so putting the seed back gives the same text.
CREATE VIEW templates AS
SELECT j.job_id, replace(replace(replace(replace(s.spec_json,
         '"seed":' || j.seed || ',', '"seed":' || char(31) || ','),
         '"seed":' || j.seed || '}', '"seed":' || char(31) || '}'),
         '_seed":' || j.seed || ',', '_seed":' || char(31) || ','),
         '_seed":' || j.seed || '}', '_seed":' || char(31) || '}') AS template
FROM jobs AS j JOIN job_specs AS s ON s.job_id = j.job_id;
INSERT OR IGNORE INTO configurations (template) SELECT template FROM templates ORDER BY job_id;
UPDATE jobs SET configuration_id = (
  SELECT c.configuration_id FROM templates AS t JOIN configurations AS c USING (template) WHERE t.job_id = jobs.job_id);
DROP VIEW templates;
DROP VIEW v_jobs;
DROP TABLE job_specs;

-- Public views ------------------------------------------------------------------------------------------------------

CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, j.attempts, j.device,
       j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained, j.configuration_id
FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained OR (other.trained = j.trained AND other.generation > j.generation)));
