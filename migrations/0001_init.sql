-- The schema of a database: tables, the views that they are read through, and why they are so.
--
-- Only server/store writes the tables. The views v_* are the public schema (docs/formats.md): a
-- later migration may add columns to the end of a view, and changes nothing else about it.
-- Times are Unix milliseconds. Layers, heads and epochs count from 0. Accuracies are stored as
-- counts of correct and scored examples, never as fractions. A column *_json holds a JSON text.

-- Jobs ------------------------------------------------------------------------------------------

-- What jobs have in common that differ only in their seed. A specification has about a kilobyte,
-- of which a few digits are the job's own, so it is stored once for all seeds.
CREATE TABLE configurations (
  configuration_id INTEGER PRIMARY KEY,
  -- The canonical specification, with char(31) in place of each value that equals the job's seed
  -- (core/experiment/configuration.h). Canonical JSON has no other char(31), so putting the seed
  -- back gives the specification byte for byte.
  template TEXT NOT NULL UNIQUE,
  -- The final loss of a training that diverged is above this (core/experiment/chance.h). NULL if
  -- the specification cannot be read.
  divergence_loss REAL
) STRICT;

-- A job is one training. `key` is the SHA-256 of its canonical specification; a sweep that is
-- submitted with --fresh trains the same key again as the next generation.
CREATE TABLE jobs (
  job_id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  generation INTEGER NOT NULL,               -- from 1
  pe TEXT NOT NULL,
  pe_label TEXT NOT NULL,                    -- with the fields that distinguish it in its sweep
  task TEXT NOT NULL,
  protocol TEXT NOT NULL,                    -- label of the matching protocol, or 'custom'
  seed INTEGER NOT NULL,
  device_kind TEXT NOT NULL,                 -- where it may run: any | gpu | cpu
  memory_bytes INTEGER NOT NULL,             -- that it needs; 0: not stated
  state TEXT NOT NULL CHECK (
    state IN ('queued', 'assigned', 'running', 'succeeded', 'failed', 'cancelled')),
  not_before INTEGER NOT NULL DEFAULT 0,     -- time at which a back-off ends
  epochs INTEGER NOT NULL,                   -- to train
  attempts INTEGER NOT NULL DEFAULT 0,
  lost_attempts INTEGER NOT NULL DEFAULT 0,  -- spent of the budget for lost workers
  failed_attempts INTEGER NOT NULL DEFAULT 0, -- spent of the budget for failures of the task
  -- A summary of the accepted epochs. Lists read it instead of the curves. It is written in the
  -- transaction that stores the epoch. Counts and losses without "best" are of the last epoch.
  epochs_done INTEGER NOT NULL DEFAULT 0,
  train_correct INTEGER,
  train_total INTEGER,
  test_correct INTEGER,
  test_total INTEGER,
  best_test_correct INTEGER,
  best_test_total INTEGER,
  wall_seconds REAL,
  device TEXT,                               -- of the latest attempt
  error TEXT,                                -- why the latest attempt ended badly
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- 1 once training has succeeded. Its results stay: a trained job that is queued, assigned or
  -- running again only adds analyses.
  trained INTEGER NOT NULL DEFAULT 0,
  -- {"threads":…,"micro_batch":…,"packing":…} of the first attempt; later ones compute alike.
  execution_json TEXT,
  pe_version INTEGER NOT NULL DEFAULT 0,     -- that a slot must have to run the job
  task_version INTEGER NOT NULL DEFAULT 0,
  configuration_id INTEGER REFERENCES configurations,  -- every job has one
  train_loss REAL,
  test_loss REAL,
  diverged INTEGER NOT NULL DEFAULT 0,       -- 1: both final losses are above divergence_loss
  warning TEXT,                              -- what a success lacks: weights that were not kept
  UNIQUE (key, generation)
) STRICT;
CREATE INDEX jobs_open ON jobs (state, job_id) WHERE state IN ('queued', 'assigned', 'running');
CREATE INDEX jobs_diverged ON jobs (job_id) WHERE diverged = 1;
CREATE INDEX jobs_by_configuration ON jobs (configuration_id);

-- Sweeps ----------------------------------------------------------------------------------------

CREATE TABLE sweeps (
  sweep_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  protocol TEXT NOT NULL,                    -- of its jobs, joined by commas
  document TEXT NOT NULL,
  file_name TEXT NOT NULL,                   -- of the document, for messages
  overrides_json TEXT NOT NULL,              -- [{"field":…,"value":…}], of --set
  client_token TEXT NOT NULL UNIQUE,         -- of the submission that made it
  analyses_json TEXT NOT NULL,               -- [{"name":…,"version":…,"parameters_json":…}]
  resources_json TEXT NOT NULL,
  priority INTEGER NOT NULL,                 -- a higher one is more urgent
  fresh INTEGER NOT NULL,                    -- 1: its jobs are new generations
  state TEXT NOT NULL CHECK (state IN ('expanding', 'active', 'finished', 'cancelled')),
  cells INTEGER NOT NULL,
  expanded_cells INTEGER NOT NULL DEFAULT 0, -- expansion continues here
  -- What a submit answers: how many of its jobs it made, and how many were there in each state.
  new_jobs INTEGER NOT NULL DEFAULT 0,
  stored_jobs INTEGER NOT NULL DEFAULT 0,
  in_flight_jobs INTEGER NOT NULL DEFAULT 0,
  failed_earlier_jobs INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  -- 1: it was finished, and is active again only while analyses are added to its jobs.
  reopened INTEGER NOT NULL DEFAULT 0,
  -- Of stored_jobs: those queued again for analyses that they lack, and those that cannot be
  -- analyzed because their weights were not kept.
  analysis_jobs INTEGER NOT NULL DEFAULT 0,
  analysis_impossible_jobs INTEGER NOT NULL DEFAULT 0,
  -- 1: it starts no further jobs. Only a sweep that is expanding or active is ever paused.
  paused INTEGER NOT NULL DEFAULT 0,
  -- The ordinal from which on its claims are still to be withdrawn, after a cancel or a delete.
  -- NULL: nothing is to be done.
  drop_from INTEGER,
  -- Seeds that were added, ["5..9","12"]. The cells of each follow all cells before it.
  extensions_json TEXT NOT NULL DEFAULT '[]',
  note TEXT NOT NULL DEFAULT '',
  -- 1: its cells are expanded once more from the first on, because it was submitted again. The
  -- rows of sweep_jobs from expanded_cells on are those of the expansion before.
  expands_again INTEGER NOT NULL DEFAULT 0,
  -- 1: it is in no view any more. Its jobs are deleted in slices, and its row goes with the last.
  deleted INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sweeps_by_name ON sweeps (name, sweep_id);
-- Nearly always empty, so an assignment sees at once that no sweep holds jobs back.
CREATE INDEX sweeps_held ON sweeps (sweep_id) WHERE paused = 1 OR drop_from IS NOT NULL;
CREATE INDEX sweeps_deleted ON sweeps (sweep_id) WHERE deleted = 1;

-- The cells of a sweep: the claims that it has on jobs. Sweeps share jobs. A job is as urgent as
-- the most urgent sweep that claims it and is not paused; it stops when no live sweep claims it.
CREATE TABLE sweep_jobs (
  sweep_id INTEGER NOT NULL REFERENCES sweeps,
  ordinal INTEGER NOT NULL,                  -- of the cell, from 0
  job_id INTEGER NOT NULL REFERENCES jobs,
  claimed INTEGER NOT NULL DEFAULT 1,        -- 0: the claim was withdrawn
  -- The job's epochs_done at that moment: what other sweeps do with the job later does not count
  -- for this one. NULL while the job is claimed.
  withdrawn_epochs INTEGER,
  PRIMARY KEY (sweep_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_jobs_by_job ON sweep_jobs (job_id, sweep_id, claimed);

-- How many jobs of each sweep are in which state, so that a list of sweeps reads one row a sweep.
-- It is written in the transaction that changes a job. A job whose claim was withdrawn counts as
-- cancelled until somebody trains it.
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
  -- Claimed jobs that have not ended, while the sweep is expanding or active. At 0 it finishes.
  open_claims INTEGER NOT NULL DEFAULT 0
) STRICT;

-- What was submitted under each client's token, so that a repeated call has the same answer. It
-- includes submissions that continued an existing sweep.
CREATE TABLE submissions (
  client_token TEXT PRIMARY KEY,
  sweep_id INTEGER NOT NULL REFERENCES sweeps,
  request_sha256 TEXT NOT NULL,              -- of document, overrides and flags; another is refused
  went_on INTEGER NOT NULL                   -- 1: it continued an existing sweep
) STRICT, WITHOUT ROWID;
CREATE INDEX submissions_by_sweep ON submissions (sweep_id);

-- Workers and attempts --------------------------------------------------------------------------

CREATE TABLE workers (
  worker_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  version TEXT NOT NULL,
  -- [{"slot":…,"device":…,"device_kind":…,"device_name":…,"memory_bytes":…}]
  slots_json TEXT NOT NULL,
  slots INTEGER NOT NULL,
  capabilities_json TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('online', 'draining', 'offline')),
  last_seen_at INTEGER NOT NULL,
  -- Set: it takes no more jobs, whatever restarts, until it is told to resume.
  drain TEXT CHECK (drain IN ('finish', 'checkpoint', 'kill')),
  name TEXT NOT NULL DEFAULT ''              -- empty: its host is its name
) STRICT, WITHOUT ROWID;

-- An attempt is one assignment of a job to a slot of a worker.
CREATE TABLE attempts (
  attempt_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES jobs,
  number INTEGER NOT NULL,                   -- of the job's attempts, from 1
  token INTEGER NOT NULL,                    -- fencing token, 64 bits
  worker_id TEXT NOT NULL REFERENCES workers,
  slot INTEGER NOT NULL,                     -- attempts that one trainer runs share a slot
  device TEXT NOT NULL,
  analyses_json TEXT NOT NULL,               -- that it was asked for
  last_sequence INTEGER NOT NULL DEFAULT 0,  -- of the last stored event
  start_epoch INTEGER,                       -- NULL until its trainer has started
  environment_json TEXT,                     -- what its trainer said about itself
  outcome TEXT CHECK (
    outcome IN ('succeeded', 'failed', 'lost', 'preempted', 'cancelled', 'superseded')),
  error_kind TEXT,
  error TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  UNIQUE (job_id, number)
) STRICT;
-- A job has at most one open attempt: the database itself keeps what is recorded exactly once.
CREATE UNIQUE INDEX attempts_open ON attempts (job_id) WHERE outcome IS NULL;

-- Epochs ----------------------------------------------------------------------------------------

CREATE TABLE curves (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  epoch INTEGER NOT NULL,
  train_loss REAL NOT NULL,
  train_correct INTEGER NOT NULL,
  train_total INTEGER NOT NULL,
  test_loss REAL NOT NULL,
  test_correct INTEGER NOT NULL,
  test_total INTEGER NOT NULL,
  learning_rate REAL NOT NULL,
  seconds REAL NOT NULL,
  PRIMARY KEY (attempt_id, epoch)
) STRICT, WITHOUT ROWID;

-- Epochs arrive from many attempts at once. In `curves` those of each attempt lie on pages of
-- their own, so each epoch would write a page. Here they are appended, dozens to a page. They
-- move into `curves` an attempt at a time, once there are many (server/store/epoch_staging.h).
CREATE TABLE staged_epochs (
  staged_id INTEGER PRIMARY KEY,             -- in the order of arrival
  attempt_id INTEGER NOT NULL,               -- of attempts; the move into `curves` checks it
  epoch INTEGER NOT NULL,
  train_loss REAL NOT NULL,
  train_correct INTEGER NOT NULL,
  train_total INTEGER NOT NULL,
  test_loss REAL NOT NULL,
  test_correct INTEGER NOT NULL,
  test_total INTEGER NOT NULL,
  learning_rate REAL NOT NULL,
  seconds REAL NOT NULL
) STRICT;

-- How far a move has come, in one row: staged rows up to `until_id` of attempts up to
-- `through_attempt` are in `curves` already, and are about to be deleted.
CREATE TABLE epoch_move (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  until_id INTEGER NOT NULL,
  through_attempt INTEGER NOT NULL
) STRICT;
INSERT INTO epoch_move VALUES (1, 0, 0);

-- Analyses --------------------------------------------------------------------------------------

-- An analysis belongs to a job (its key and generation), with its parameters and its version.
CREATE TABLE analyses (
  analysis_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES jobs,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  parameters_json TEXT NOT NULL,             -- canonical (RFC 8785)
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  layers INTEGER,                            -- head_ablation: the matrix, and the intact model
  heads INTEGER,
  intact_correct INTEGER,
  total INTEGER,
  seconds REAL,
  result_json TEXT,                          -- of every other analysis
  created_at INTEGER NOT NULL,
  intact_nll REAL,                           -- head_ablation from version 2 on; so is chance
  chance REAL,
  UNIQUE (job_id, name, parameters_json, version)
) STRICT;

-- The entries of head-ablation matrices. An entry that does not exist has NULL from `correct` on.
CREATE TABLE head_ablation (
  analysis_id INTEGER NOT NULL REFERENCES analyses,
  layer INTEGER NOT NULL,
  head INTEGER NOT NULL,
  correct INTEGER,
  lost INTEGER,                              -- right intact, wrong ablated; NULL in version 1,
                                             -- and so are the columns after it
  gained INTEGER,                            -- wrong intact, right ablated
  -- Of (lost - gained) / total, paired. It is stored although it can be derived, because not
  -- every SQLite that reads the views has a square root.
  drop_standard_error REAL,
  nll REAL,                                  -- mean over the scored examples, in nats
  nll_standard_error REAL,                   -- of the paired mean change
  PRIMARY KEY (analysis_id, layer, head)
) STRICT, WITHOUT ROWID;

-- Deposit indices of head-ablation matrices: a row for each layer and one over all layers. A value
-- is NULL where its index has no meaning.
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

-- Analyses that were requested for a job, besides those of the sweeps that claim it. A row goes
-- when the job has the analysis, or when it is given up.
CREATE TABLE analysis_requests (
  job_id INTEGER NOT NULL REFERENCES jobs,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  parameters_json TEXT NOT NULL,             -- canonical (RFC 8785)
  PRIMARY KEY (job_id, name, parameters_json, version)
) STRICT, WITHOUT ROWID;

-- Files and logs --------------------------------------------------------------------------------

-- A file lies in FILE.artifacts/<first two digits>/<sha256>. It is removed some time after no row
-- of artifacts, uploads or checkpoints refers to it any more.
CREATE TABLE artifacts (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_hash ON artifacts (sha256);

-- The newest checkpoint of a job that still trains, uploaded by its worker so that the job can
-- continue anywhere. It goes when the job ends, and before anything else if space is short.
CREATE TABLE checkpoints (
  job_id INTEGER PRIMARY KEY REFERENCES jobs,
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  epoch INTEGER NOT NULL,                    -- the next to run; never beyond the stored epochs
  sha256 TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoints_by_hash ON checkpoints (sha256);

-- Files that an open attempt has sent. They are kept until one of its events refers to them, or
-- until it ends.
CREATE TABLE uploads (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (attempt_id, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_by_hash ON uploads (sha256);

-- What trainers wrote to stderr; the end of it, if it was long.
CREATE TABLE logs (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  byte_offset INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (attempt_id, byte_offset)
) STRICT, WITHOUT ROWID;

-- Views of the coordinator ----------------------------------------------------------------------

-- Every stored epoch of every attempt, accepted or not.
CREATE VIEW stored_epochs AS
SELECT attempt_id, epoch, train_loss, train_correct, train_total, test_loss, test_correct,
       test_total, learning_rate, seconds
FROM curves
UNION ALL
SELECT attempt_id, epoch, train_loss, train_correct, train_total, test_loss, test_correct,
       test_total, learning_rate, seconds
FROM staged_epochs
WHERE staged_id > (SELECT until_id FROM epoch_move)
   OR attempt_id > (SELECT through_attempt FROM epoch_move);

-- The accepted epochs of each job: an attempt's epoch counts until a later attempt starts at or
-- before it. `waits` is 1 for an epoch that is still staged. Both tables are joined with their
-- attempts separately, so that a query about one job reads no other job's epochs in `curves`.
CREATE VIEW accepted_epochs AS
SELECT 0 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss,
       c.test_correct, c.test_total, c.learning_rate, c.seconds
FROM attempts AS a JOIN curves AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
UNION ALL
SELECT 1 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss,
       c.test_correct, c.test_total, c.learning_rate, c.seconds
FROM attempts AS a JOIN staged_epochs AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
  AND (c.staged_id > (SELECT until_id FROM epoch_move)
       OR c.attempt_id > (SELECT through_attempt FROM epoch_move));

-- Public views ----------------------------------------------------------------------------------

-- Of each key, the latest generation that was trained, or the latest of all if none was.
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state,
       j.attempts, j.device, j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained, j.configuration_id,
       j.train_loss, j.test_loss, j.trained AND j.diverged AS diverged, j.warning
FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained
         OR (other.trained = j.trained AND other.generation > j.generation)));

CREATE VIEW v_sweeps AS
SELECT s.sweep_id, s.name, s.protocol, s.state, s.priority, s.file_name, s.created_at, s.cells,
       s.new_jobs, s.stored_jobs, s.in_flight_jobs, s.failed_earlier_jobs,
       coalesce(n.queued, 0) AS queued, coalesce(n.assigned, 0) AS assigned,
       coalesce(n.running, 0) AS running, coalesce(n.succeeded, 0) AS succeeded,
       coalesce(n.failed, 0) AS failed, coalesce(n.cancelled, 0) AS cancelled,
       coalesce(n.epochs, 0) AS epochs, coalesce(n.epochs_done, 0) AS epochs_done,
       s.paused, s.extensions_json, s.document, s.overrides_json, s.note
FROM sweeps AS s LEFT JOIN sweep_counts AS n USING (sweep_id)
WHERE s.deleted = 0;

CREATE VIEW v_sweep_jobs AS
SELECT s.sweep_id, s.name AS sweep, c.job_id, c.ordinal, j.key
FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) JOIN jobs AS j USING (job_id)
WHERE s.deleted = 0;

CREATE VIEW v_curves AS
SELECT job_id, epoch, train_loss,
       CAST(train_correct AS REAL) / train_total AS train_accuracy,
       test_loss,
       CAST(test_correct AS REAL) / test_total AS test_accuracy,
       learning_rate, seconds,
       train_correct, train_total, test_correct, test_total
FROM accepted_epochs;

-- Of matrices that differ only in the version of the analysis, the latest.
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
         / nullif(max(CAST(n.intact_correct AS REAL) / n.total - n.chance, 0), 0)
         AS normalised_drop,
       h.nll, h.nll - n.intact_nll AS nll_drop, h.nll_standard_error AS nll_drop_standard_error,
       n.chance, n.analysis_id,
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

CREATE VIEW v_deposits AS
SELECT n.job_id,
       n.parameters_json ->> '$.method' AS method,
       n.parameters_json ->> '$.hygiene' AS hygiene,
       n.parameters_json ->> '$.data' AS split,
       coalesce(n.parameters_json ->> '$.target', 'head') AS target,
       nullif(d.layer, -1) AS layer,
       d.max_drop, d.top_share, d.top_ratio, d.gini, d.effective_heads, d.top_layer, d.top_head,
       d.deposit, d.deposits,
       n.analysis_id
FROM analyses AS n JOIN deposit_indices AS d USING (analysis_id);

CREATE VIEW v_analyses AS
SELECT job_id, name, version, parameters_json,
       coalesce(total, result_json ->> '$.total') AS total,
       coalesce(intact_correct, result_json ->> '$.intact_correct') AS intact_correct,
       seconds, result_json, created_at, analysis_id
FROM analyses;

-- Of each name, the file of the job's latest attempt that has it.
CREATE VIEW v_artifacts AS
SELECT a.job_id, f.name, f.sha256, f.bytes
FROM artifacts AS f JOIN attempts AS a USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later JOIN artifacts AS g USING (attempt_id)
  WHERE later.job_id = a.job_id AND g.name = f.name AND later.number > a.number);

CREATE VIEW v_checkpoints AS
SELECT c.job_id, c.epoch, c.bytes, c.sha256, c.created_at, a.number AS attempt,
       a.worker_id AS worker
FROM checkpoints AS c JOIN attempts AS a USING (attempt_id);

CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error,
       started_at, ended_at, environment_json
FROM attempts;

CREATE VIEW v_logs AS
SELECT attempt_id, byte_offset, data
FROM logs;

-- A slot may hold several attempts, of jobs that one trainer runs together: the busy slots count.
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots,
       CASE WHEN state = 'offline' OR drain IS NULL THEN state
            WHEN EXISTS (SELECT 1 FROM attempts AS a
                         WHERE a.worker_id = w.worker_id AND a.outcome IS NULL)
            THEN 'draining' ELSE 'drained' END AS state,
       last_seen_at, version,
       (SELECT count(DISTINCT a.slot) FROM attempts AS a
        WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots,
       drain, CASE name WHEN '' THEN host ELSE name END AS name
FROM workers AS w;
