-- Principals: who may call what, what they may use, and the record of what they did.

CREATE TABLE principals (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('reader', 'submitter', 'operator', 'worker')),
  token_sha256 TEXT UNIQUE,                  -- NULL: it has a certificate
  previous_token_sha256 TEXT,                -- valid until previous_until
  previous_until INTEGER NOT NULL DEFAULT 0,
  certificate_uri TEXT UNIQUE,               -- NULL: it has a token
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL DEFAULT 0,     -- 0: never
  disabled INTEGER NOT NULL DEFAULT 0,
  -- Limits; 0: none.
  share REAL NOT NULL DEFAULT 0,
  max_slots INTEGER NOT NULL DEFAULT 0,
  max_queued INTEGER NOT NULL DEFAULT 0,
  gpu_seconds REAL NOT NULL DEFAULT 0,
  max_priority INTEGER NOT NULL DEFAULT 0,
  gpu_seconds_used REAL NOT NULL DEFAULT 0   -- by attempts that have ended
) STRICT, WITHOUT ROWID;

-- Written in the transaction of what it records. sha256 is of the row and of the sha256 before it,
-- so no row can be changed or removed alone (core/access/audit_chain.h).
CREATE TABLE audit (
  audit_id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  principal TEXT NOT NULL,                   -- empty: nobody that is known
  peer TEXT NOT NULL,
  method TEXT NOT NULL,
  target TEXT NOT NULL,                      -- never a token or a document
  outcome TEXT NOT NULL,                     -- 'OK', or the code with which it was refused
  count INTEGER NOT NULL,                    -- refusals that the row stands for, or 1
  trace_id TEXT NOT NULL,
  sha256 TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (at_ms, audit_id);

-- The principal that submitted it; empty: there were none.
ALTER TABLE sweeps ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX sweeps_by_owner ON sweeps (owner, sweep_id) WHERE owner <> '';
-- The principal that first said hello as this worker; nobody else may be it.
ALTER TABLE workers ADD COLUMN principal TEXT NOT NULL DEFAULT '';
-- The principal whose budget pays for it: the owner of the sweep that got the slot.
ALTER TABLE attempts ADD COLUMN principal TEXT NOT NULL DEFAULT '';
CREATE INDEX attempts_by_worker ON attempts (worker_id, started_at);

DROP VIEW v_sweeps;
CREATE VIEW v_sweeps AS
SELECT s.sweep_id, s.name, s.protocol, s.state, s.priority, s.file_name, s.created_at, s.cells,
       s.new_jobs, s.stored_jobs, s.in_flight_jobs, s.failed_earlier_jobs,
       coalesce(n.queued, 0) AS queued, coalesce(n.assigned, 0) AS assigned,
       coalesce(n.running, 0) AS running, coalesce(n.succeeded, 0) AS succeeded,
       coalesce(n.failed, 0) AS failed, coalesce(n.cancelled, 0) AS cancelled,
       coalesce(n.epochs, 0) AS epochs, coalesce(n.epochs_done, 0) AS epochs_done,
       s.paused, s.extensions_json, s.document, s.overrides_json, s.note, s.owner
FROM sweeps AS s LEFT JOIN sweep_counts AS n USING (sweep_id)
WHERE s.deleted = 0;

CREATE VIEW v_audit AS
SELECT audit_id, at_ms, principal, peer, method, target, outcome, count, trace_id, sha256
FROM audit;
