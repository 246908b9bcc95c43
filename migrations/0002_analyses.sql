-- Head ablations with paired counts and losses, deposit indices, analyses of jobs that are already trained, and how a
-- job's first attempt computed.

DROP VIEW v_jobs;
DROP VIEW v_head_ablation;

-- Training succeeded once: its results stay, and a job that is queued, assigned or running only adds analyses.
ALTER TABLE jobs ADD COLUMN trained INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET trained = 1 WHERE state = 'succeeded';
-- {"threads":…,"micro_batch":…,"packing":…} of the first attempt's hello; every later attempt computes alike.
ALTER TABLE jobs ADD COLUMN execution_json TEXT;

-- It was finished and is active again only while analyses are added to its jobs.
ALTER TABLE sweeps ADD COLUMN reopened INTEGER NOT NULL DEFAULT 0;
-- Of stored_jobs: queued again for analyses that they lack, and those whose weights are not kept.
ALTER TABLE sweeps ADD COLUMN analysis_jobs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sweeps ADD COLUMN analysis_impossible_jobs INTEGER NOT NULL DEFAULT 0;

-- Analyses that were asked for by job, besides those of the sweeps that claim it. Gone once the job has them, or when
-- they are given up.
CREATE TABLE analysis_requests (
  job_id INTEGER NOT NULL REFERENCES jobs,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  parameters_json TEXT NOT NULL,             -- RFC 8785
  PRIMARY KEY (job_id, name, parameters_json, version)
) STRICT, WITHOUT ROWID;

ALTER TABLE analyses ADD COLUMN intact_nll REAL;  -- head_ablation from version 2 on, as chance
ALTER TABLE analyses ADD COLUMN chance REAL;

-- The standard error is derived, but is stored: the square root is not in every SQLite that reads the views.
CREATE TABLE head_ablation_2 (
  analysis_id INTEGER NOT NULL REFERENCES analyses,
  layer INTEGER NOT NULL,
  head INTEGER NOT NULL,
  correct INTEGER,                           -- NULL, as all that follows: the entry does not exist
  lost INTEGER,                              -- right intact, wrong ablated; NULL in version 1, as all that follows
  gained INTEGER,                            -- wrong intact, right ablated
  drop_standard_error REAL,                  -- of (lost - gained) / total, paired
  nll REAL,                                  -- mean over the scored examples, in nats
  nll_standard_error REAL,                   -- of the paired mean change
  PRIMARY KEY (analysis_id, layer, head)
) STRICT, WITHOUT ROWID;
INSERT INTO head_ablation_2 (analysis_id, layer, head, correct)
SELECT analysis_id, layer, head, correct FROM head_ablation;
DROP TABLE head_ablation;
ALTER TABLE head_ablation_2 RENAME TO head_ablation;

-- One row a layer and one over all; NULL where an index means nothing.
CREATE TABLE deposit_indices (
  analysis_id INTEGER NOT NULL REFERENCES analyses,
  layer INTEGER NOT NULL,                    -- -1: over all layers
  max_drop REAL,
  top_share REAL,
  top_ratio REAL,
  gini REAL,
  effective_heads REAL,
  top_layer INTEGER,
  top_head INTEGER,
  deposit INTEGER,                           -- of a layer: 0 or 1
  deposits INTEGER,                          -- over all layers: how many have one
  PRIMARY KEY (analysis_id, layer)
) STRICT, WITHOUT ROWID;

-- What live sweeps and open attempts still wait for is computed by version 2 now. Version 1 knew heads only, and
-- "target" is the last of the names: the parameters stay canonical (as text: `|| ''`).
UPDATE sweeps SET analyses_json = (
  SELECT json_group_array(CASE
    WHEN a.value ->> '$.name' = 'head_ablation' AND a.value ->> '$.version' = 1
    THEN json_object('name', 'head_ablation',
                     'parameters_json', json_set(a.value ->> '$.parameters_json', '$.target', 'head') || '',
                     'version', 2)
    ELSE json(a.value) END)
  FROM json_each(analyses_json) AS a)
WHERE state IN ('expanding', 'active') AND json_valid(analyses_json);
UPDATE attempts SET analyses_json = (
  SELECT json_group_array(CASE
    WHEN a.value ->> '$.name' = 'head_ablation' AND a.value ->> '$.version' = 1
    THEN json_object('name', 'head_ablation',
                     'parameters_json', json_set(a.value ->> '$.parameters_json', '$.target', 'head') || '',
                     'version', 2)
    ELSE json(a.value) END)
  FROM json_each(analyses_json) AS a)
WHERE outcome IS NULL AND json_valid(analyses_json);

-- Public views ------------------------------------------------------------------------------------------------------

-- Of each key, the latest generation that was trained; the latest of all where none was.
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, j.attempts, j.device,
       j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, j.spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained
FROM jobs AS j
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained OR (other.trained = j.trained AND other.generation > j.generation)));

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
       n.analysis_id
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

CREATE VIEW v_deposits AS
SELECT n.job_id,
       n.parameters_json ->> '$.method' AS method,
       n.parameters_json ->> '$.hygiene' AS hygiene,
       n.parameters_json ->> '$.data' AS split,
       coalesce(n.parameters_json ->> '$.target', 'head') AS target,
       nullif(d.layer, -1) AS layer,
       d.max_drop, d.top_share, d.top_ratio, d.gini, d.effective_heads, d.top_layer, d.top_head, d.deposit, d.deposits,
       n.analysis_id
FROM analyses AS n JOIN deposit_indices AS d USING (analysis_id);

CREATE VIEW v_analyses AS
SELECT job_id, name, version, parameters_json,
       coalesce(total, result_json ->> '$.total') AS total,
       coalesce(intact_correct, result_json ->> '$.intact_correct') AS intact_correct,
       seconds, result_json, created_at, analysis_id
FROM analyses;

-- Of each name the file of the job's latest attempt that has it.
CREATE VIEW v_artifacts AS
SELECT a.job_id, f.name, f.sha256, f.bytes
FROM artifacts AS f JOIN attempts AS a USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later JOIN artifacts AS g USING (attempt_id)
  WHERE later.job_id = a.job_id AND g.name = f.name AND later.number > a.number);
