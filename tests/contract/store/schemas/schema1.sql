-- A database of schema 1: one job that succeeded, one that runs, one that waits, in a sweep that lives.
BEGIN TRANSACTION;
CREATE TABLE analyses (
  analysis_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES jobs,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  parameters_json TEXT NOT NULL,             -- RFC 8785
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  layers INTEGER,                            -- head_ablation: shape and the intact model's counts
  heads INTEGER,
  intact_correct INTEGER,
  total INTEGER,
  seconds REAL,
  result_json TEXT,                          -- other analyses
  created_at INTEGER NOT NULL,
  UNIQUE (job_id, name, parameters_json, version)
) STRICT;
INSERT INTO "analyses" VALUES(1,1,'head_ablation',1,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero"}',1,1,2,42,97,0.5,NULL,1);
CREATE TABLE artifacts (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,                      -- the file is FILE.artifacts/<first two>/<sha256>
  bytes INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "artifacts" VALUES(1,'weights.safetensors','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',12);
CREATE TABLE attempts (
  attempt_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id INTEGER NOT NULL REFERENCES jobs,
  number INTEGER NOT NULL,                   -- from 1
  token INTEGER NOT NULL,                    -- fencing token, 64 bits
  worker_id TEXT NOT NULL REFERENCES workers,
  slot INTEGER NOT NULL,
  device TEXT NOT NULL,
  analyses_json TEXT NOT NULL,               -- those that this attempt was asked for
  last_sequence INTEGER NOT NULL DEFAULT 0,  -- of the last event that is stored
  start_epoch INTEGER,                       -- NULL until its trainer said hello
  environment_json TEXT,                     -- what it said
  outcome TEXT CHECK (outcome IN ('succeeded', 'failed', 'lost', 'preempted', 'cancelled', 'superseded')),
  error_kind TEXT,
  error TEXT,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  UNIQUE (job_id, number)
) STRICT;
INSERT INTO "attempts" VALUES(1,1,1,7,'w',0,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',4,0,'{}','succeeded',NULL,NULL,1,1);
INSERT INTO "attempts" VALUES(2,2,1,8,'w',0,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',1,0,'{}',NULL,NULL,NULL,1,NULL);
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
INSERT INTO "curves" VALUES(1,0,0.5,40,99,0.25,42,97,0.001,2.0);
CREATE TABLE head_ablation (
  analysis_id INTEGER NOT NULL REFERENCES analyses,
  layer INTEGER NOT NULL,
  head INTEGER NOT NULL,
  correct INTEGER NOT NULL,
  PRIMARY KEY (analysis_id, layer, head)
) STRICT, WITHOUT ROWID;
INSERT INTO "head_ablation" VALUES(1,0,0,10);
INSERT INTO "head_ablation" VALUES(1,0,1,42);
CREATE TABLE jobs (
  job_id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  generation INTEGER NOT NULL,
  pe TEXT NOT NULL,
  pe_label TEXT NOT NULL,
  task TEXT NOT NULL,
  protocol TEXT NOT NULL,                    -- label of the matching named set, or 'custom'
  seed INTEGER NOT NULL,
  spec_json TEXT NOT NULL,                   -- canonical
  device_kind TEXT NOT NULL,                 -- any | gpu | cpu
  memory_bytes INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'assigned', 'running', 'succeeded', 'failed', 'cancelled')),
  priority INTEGER NOT NULL,
  not_before INTEGER NOT NULL DEFAULT 0,     -- end of a back-off
  epochs INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  lost_attempts INTEGER NOT NULL DEFAULT 0,  -- spent of the budget for lost workers
  failed_attempts INTEGER NOT NULL DEFAULT 0,-- spent of the budget for task failures
  -- The summary that lists read instead of the curves; kept in the transaction that stores the epoch.
  epochs_done INTEGER NOT NULL DEFAULT 0,
  train_correct INTEGER,
  train_total INTEGER,
  test_correct INTEGER,
  test_total INTEGER,
  best_test_correct INTEGER,
  best_test_total INTEGER,
  wall_seconds REAL,
  device TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  UNIQUE (key, generation)
) STRICT;
INSERT INTO "jobs" VALUES(1,'k1',1,'rope','rope','distance','clean',1,'{}','any',0,'succeeded',0,0,1,1,0,0,1,40,99,42,97,42,97,NULL,NULL,NULL,1,1);
INSERT INTO "jobs" VALUES(2,'k2',1,'rope','rope','distance','clean',2,'{}','any',0,'running',0,0,1,1,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO "jobs" VALUES(3,'k3',1,'rope','rope','distance','clean',3,'{}','any',0,'queued',0,0,1,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL);
CREATE TABLE logs (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  byte_offset INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (attempt_id, byte_offset)
) STRICT, WITHOUT ROWID;
CREATE TABLE sweep_jobs (
  sweep_id INTEGER NOT NULL REFERENCES sweeps,
  ordinal INTEGER NOT NULL,
  job_id INTEGER NOT NULL REFERENCES jobs,
  claimed INTEGER NOT NULL DEFAULT 1,        -- 0: the claim is withdrawn
  PRIMARY KEY (sweep_id, ordinal)
) STRICT, WITHOUT ROWID;
INSERT INTO "sweep_jobs" VALUES(1,0,1,1);
INSERT INTO "sweep_jobs" VALUES(1,1,2,1);
INSERT INTO "sweep_jobs" VALUES(1,2,3,1);
CREATE TABLE sweeps (
  sweep_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  protocol TEXT NOT NULL,
  document TEXT NOT NULL,
  file_name TEXT NOT NULL,
  overrides_json TEXT NOT NULL,              -- [{"field":…,"value":…}]
  client_token TEXT NOT NULL UNIQUE,
  analyses_json TEXT NOT NULL,
  resources_json TEXT NOT NULL,
  priority INTEGER NOT NULL,
  fresh INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('expanding', 'active', 'finished', 'cancelled')),
  cells INTEGER NOT NULL,
  expanded_cells INTEGER NOT NULL DEFAULT 0, -- expansion resumes here
  new_jobs INTEGER NOT NULL DEFAULT 0,
  stored_jobs INTEGER NOT NULL DEFAULT 0,
  in_flight_jobs INTEGER NOT NULL DEFAULT 0,
  failed_earlier_jobs INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO "sweeps" VALUES(1,'old','clean','d','f','[]','t','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]','{}',0,0,'active',3,3,3,0,0,0,1);
CREATE TABLE workers (
  worker_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  version TEXT NOT NULL,
  slots_json TEXT NOT NULL,                  -- [{"slot":…,"device":…,"device_kind":…,"device_name":…,"memory_bytes":…}]
  slots INTEGER NOT NULL,
  capabilities_json TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('online', 'draining', 'offline')),
  last_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "workers" VALUES('w','h','0.1.0','[]',1,'{}','online',1);
CREATE INDEX sweeps_by_name ON sweeps (name, sweep_id);
CREATE INDEX jobs_open ON jobs (state, job_id) WHERE state IN ('queued', 'assigned', 'running');
CREATE INDEX sweep_jobs_by_job ON sweep_jobs (job_id, sweep_id);
CREATE UNIQUE INDEX attempts_open ON attempts (job_id) WHERE outcome IS NULL;
CREATE INDEX artifacts_by_hash ON artifacts (sha256);
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, j.attempts, j.device,
       j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, j.spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total
FROM jobs AS j
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND ((other.state = 'succeeded') > (j.state = 'succeeded')
         OR ((other.state = 'succeeded') = (j.state = 'succeeded') AND other.generation > j.generation)));
CREATE VIEW v_sweep_jobs AS
SELECT s.sweep_id, s.name AS sweep, c.job_id, c.ordinal
FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id);
CREATE VIEW v_curves AS
SELECT a.job_id, c.epoch, c.train_loss,
       CAST(c.train_correct AS REAL) / c.train_total AS train_accuracy,
       c.test_loss,
       CAST(c.test_correct AS REAL) / c.test_total AS test_accuracy,
       c.learning_rate, c.seconds,
       c.train_correct, c.train_total, c.test_correct, c.test_total
FROM attempts AS a JOIN curves AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch);
CREATE VIEW v_head_ablation AS
SELECT n.job_id,
       n.parameters_json ->> '$.method' AS method,
       n.parameters_json ->> '$.hygiene' AS hygiene,
       n.parameters_json ->> '$.data' AS split,
       h.layer, h.head, h.correct, n.total,
       CAST(h.correct AS REAL) / n.total AS accuracy,
       CAST(n.intact_correct - h.correct AS REAL) / n.total AS accuracy_drop,
       n.intact_correct
FROM analyses AS n JOIN head_ablation AS h USING (analysis_id);
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error, started_at, ended_at,
       environment_json
FROM attempts;
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots, state, last_seen_at, version,
       (SELECT count(*) FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots
FROM workers AS w;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sweeps',1);
INSERT INTO "sqlite_sequence" VALUES('jobs',3);
INSERT INTO "sqlite_sequence" VALUES('attempts',2);
INSERT INTO "sqlite_sequence" VALUES('analyses',1);
COMMIT;
PRAGMA application_id = 1346718786;
PRAGMA user_version = 1;
