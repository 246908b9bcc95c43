-- A database of schema 2: two jobs that succeeded, one that runs, one that waits, in a sweep that lives.
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
  created_at INTEGER NOT NULL, intact_nll REAL, chance REAL,
  UNIQUE (job_id, name, parameters_json, version)
) STRICT;
INSERT INTO "analyses" VALUES(1,2,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',2,2,2,2,32,0.001342847,NULL,1795270472429,2.14264358952641487121e+00,0.125);
INSERT INTO "analyses" VALUES(2,2,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',2,NULL,NULL,NULL,NULL,0.001400372,'{"total":32,"intact_correct":2,"intact_nll":2.142643589526415,"chance":0.125,"correct":[3,5],"lost":[0,0],"gained":[1,3],"nll":[2.1206227242946625,2.1404374539852142],"nll_standard_error":[0.009355356451323344,0.014691510952101014]}',1795270472429,NULL,NULL);
INSERT INTO "analyses" VALUES(3,1,'head_ablation',2,'{"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"}',1,2,2,5,32,0.001400574,NULL,1795270472471,2.13521756231784820556e+00,0.125);
INSERT INTO "analyses" VALUES(4,1,'layer_ablation',1,'{"data":"test","max_examples":0,"method":"zero"}',1,NULL,NULL,NULL,NULL,0.00226993,'{"total":32,"intact_correct":5,"intact_nll":2.135217562317848,"chance":0.125,"correct":[4,2],"lost":[2,3],"gained":[1,0],"nll":[2.1364136524498463,2.160755228251219],"nll_standard_error":[0.013051033953789882,0.012911778512883932]}',1795270472474,NULL,NULL);
CREATE TABLE analysis_requests (
  job_id INTEGER NOT NULL REFERENCES jobs,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  parameters_json TEXT NOT NULL,             -- RFC 8785
  PRIMARY KEY (job_id, name, parameters_json, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE artifacts (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,                      -- the file is FILE.artifacts/<first two>/<sha256>
  bytes INTEGER NOT NULL,
  PRIMARY KEY (attempt_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "artifacts" VALUES(1,'weights.safetensors','72f7b9f8f5fa5feaf0997f5477d472c59fda40c1f85f9b71e080e6eed33ac2ea',10416);
INSERT INTO "artifacts" VALUES(2,'weights.safetensors','93ec0650ffde8d0df225fbc11ed59db1c10836e3905f0ce27d956c61d62328dd',10416);
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
INSERT INTO "attempts" VALUES(1,1,1,7774921052831865067,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',0,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472530);
INSERT INTO "attempts" VALUES(2,2,1,-1539012924710536743,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',7,0,'{}','succeeded',NULL,NULL,1795270471666,1795270472488);
INSERT INTO "attempts" VALUES(3,3,1,-8137762391867919976,'3acd1d38-fab7-4de1-8e4e-79aa397c0490',1,'cpu','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]',2,0,'{}',NULL,NULL,NULL,1795270472489,NULL);
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
INSERT INTO "curves" VALUES(1,0,2.12652277946472167968e+00,7,64,2.1364593505859375e+00,4,32,0.001,4.20572499569971114397e-03);
INSERT INTO "curves" VALUES(1,1,2.11799216270446777343e+00,11,64,2.13521742820739746093e+00,5,32,0.0005,2.50008500006515532732e-03);
INSERT INTO "curves" VALUES(2,0,2.09264969825744628906e+00,9,64,2.14508914947509765625e+00,3,32,0.001,0.00424351299443515);
INSERT INTO "curves" VALUES(2,1,2.07826828956604,9,64,2.14264369010925292968e+00,2,32,0.0005,2.18174500332679599523e-03);
INSERT INTO "curves" VALUES(3,0,2.09033679962158203125e+00,11,64,2.1006908416748046875e+00,5,32,0.001,4.04466399777447804808e-03);
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
INSERT INTO "deposit_indices" VALUES(1,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "deposit_indices" VALUES(1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "deposit_indices" VALUES(1,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "deposit_indices" VALUES(3,-1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "deposit_indices" VALUES(3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "deposit_indices" VALUES(3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE "head_ablation" (
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
INSERT INTO "head_ablation" VALUES(1,0,0,3,0,1,3.07578432578586372092e-02,2.13445050641894340515e+00,1.0074063128322933297e-02);
INSERT INTO "head_ablation" VALUES(1,0,1,3,0,1,3.07578432578586372092e-02,2.12949855253100395202e+00,8.51313536510903828835e-03);
INSERT INTO "head_ablation" VALUES(1,1,0,2,0,0,0.0,2.14228312671184539794e+00,8.19630198193552553243e-03);
INSERT INTO "head_ablation" VALUES(1,1,1,5,0,3,5.15269763995035920411e-02,2.14057065173983573913e+00,1.04304974247404064202e-02);
INSERT INTO "head_ablation" VALUES(3,0,0,3,3,1,6.15156865157172744185e-02,2.14129036292433738708e+00,9.8606984276885818047e-03);
INSERT INTO "head_ablation" VALUES(3,0,1,4,2,1,5.38439404378524277827e-02,2.13019903376698493957e+00,1.46098959618831958362e-02);
INSERT INTO "head_ablation" VALUES(3,1,0,2,3,0,5.15269763995035920411e-02,2.14229821041226387023e+00,6.90311349199188191427e-03);
INSERT INTO "head_ablation" VALUES(3,1,1,2,3,0,5.15269763995035920411e-02,2.15294453129172325134e+00,0.00876408718457125);
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
  ended_at INTEGER, trained INTEGER NOT NULL DEFAULT 0, execution_json TEXT,
  UNIQUE (key, generation)
) STRICT;
INSERT INTO "jobs" VALUES(1,'4f345309f3e3b3d5cfde9a951f693ffa703dc86058267f2212074a104bf05632',1,'nope','nope','distance','clean',0,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":0,"task":{"data_seed":0,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}','any',0,'succeeded',0,0,2,1,0,0,2,11,64,5,32,5,32,0.02099969,'cpu',NULL,1795270470959,1795270472530,1,'{"threads":1,"micro_batch":0,"packing":1}');
INSERT INTO "jobs" VALUES(2,'fe374146b0f4123ad031b43bcac63f09cac15766413292725c7df08699ebf651',1,'nope','nope','distance','clean',1,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":1,"task":{"data_seed":1,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}','any',0,'succeeded',0,0,2,1,0,0,2,9,64,2,32,3,32,0.013162171,'cpu',NULL,1795270470959,1795270472488,1,'{"threads":1,"micro_batch":0,"packing":1}');
INSERT INTO "jobs" VALUES(3,'e740ec3d1e42110c9829dc5080b602a9d06f81f7dc33a1b119f588c6700024cc',1,'nope','nope','distance','clean',2,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":2,"task":{"data_seed":2,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}','any',0,'running',0,0,2,1,0,0,1,11,64,5,32,5,32,0.012879803,'cpu',NULL,1795270470959,NULL,0,'{"threads":1,"micro_batch":0,"packing":1}');
INSERT INTO "jobs" VALUES(4,'8fb2c8aa0f02aa1770b570a23edb0c033e473b96dffe3ad28b8f8fc3a3e9bb2e',1,'nope','nope','distance','clean',3,'{"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":16,"d_model":8,"dropout":0.1,"dropout_sites":["attention","output","ffn"],"final_norm":true,"heads":2,"key_padding":"masked","kv_source":"self","layer_norm_eps":0.00001,"layers":2,"mask":"causal","max_len":16,"readout":"masked_mean"},"pe":{"name":"nope","version":1},"seed":3,"task":{"data_seed":3,"definition":"clean","label_space":"exact","length":16,"max_distance":8,"name":"distance","scored_classes":"all","split":"disjoint","test_examples":32,"train_examples":64,"version":1,"vocabulary":40},"train":{"batch_size":64,"beta1":0.98,"beta2":0.9,"epochs":2,"epsilon":1e-8,"lr":0.001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}}','any',0,'queued',0,0,2,0,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795270470959,NULL,0,NULL);
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
INSERT INTO "sweep_jobs" VALUES(1,3,4,1);
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
, reopened INTEGER NOT NULL DEFAULT 0, analysis_jobs INTEGER NOT NULL DEFAULT 0, analysis_impossible_jobs INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "sweeps" VALUES(1,'kept','clean','name: kept
protocol: clean
pe: [nope]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 64, test_examples: 32}
seed: [0, 1, 2, 3]
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2, max_len: 16, dropout: 0.1}
train: {epochs: 2, batch_size: 64, lr: 1e-3}
analyses: [head_ablation, layer_ablation]
','kept.yaml','[]','1e82b331-b776-4774-8aee-8c7a0e0f44a2','[{"name":"head_ablation","parameters_json":"{\"data\":\"test\",\"hygiene\":\"clean\",\"max_examples\":0,\"method\":\"zero\",\"target\":\"head\"}","version":2},{"name":"layer_ablation","parameters_json":"{\"data\":\"test\",\"max_examples\":0,\"method\":\"zero\"}","version":1}]','{"device":"any","memory_bytes":0}',0,0,'active',4,4,4,0,0,0,1795270470959,0,0,0);
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
INSERT INTO "workers" VALUES('3acd1d38-fab7-4de1-8e4e-79aa397c0490','host','0.1.0','[{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":0},{"device":"cpu","device_kind":"cpu","device_name":"","memory_bytes":12638255104,"slot":1}]',2,'{}','offline',1795270473383);
CREATE INDEX sweeps_by_name ON sweeps (name, sweep_id);
CREATE INDEX jobs_open ON jobs (state, job_id) WHERE state IN ('queued', 'assigned', 'running');
CREATE INDEX sweep_jobs_by_job ON sweep_jobs (job_id, sweep_id);
CREATE UNIQUE INDEX attempts_open ON attempts (job_id) WHERE outcome IS NULL;
CREATE INDEX artifacts_by_hash ON artifacts (sha256);
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
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error, started_at, ended_at,
       environment_json
FROM attempts;
CREATE VIEW v_workers AS
SELECT worker_id, host, slots_json AS devices, slots, state, last_seen_at, version,
       (SELECT count(*) FROM attempts AS a WHERE a.worker_id = w.worker_id AND a.outcome IS NULL) AS busy_slots
FROM workers AS w;
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
CREATE VIEW v_artifacts AS
SELECT a.job_id, f.name, f.sha256, f.bytes
FROM artifacts AS f JOIN attempts AS a USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later JOIN artifacts AS g USING (attempt_id)
  WHERE later.job_id = a.job_id AND g.name = f.name AND later.number > a.number);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sweeps',1);
INSERT INTO "sqlite_sequence" VALUES('jobs',4);
INSERT INTO "sqlite_sequence" VALUES('attempts',4);
INSERT INTO "sqlite_sequence" VALUES('analyses',8);
COMMIT;
PRAGMA application_id = 1346718786;
PRAGMA user_version = 2;
