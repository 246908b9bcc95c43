-- Queues of a batch system in which pelab-scale starts workers (docs/adr/0049).
CREATE TABLE queues (
  name TEXT PRIMARY KEY,
  settings_json TEXT NOT NULL,               -- core/queues/settings.h
  paused_reason TEXT,                        -- NULL: it is not paused
  paused_at INTEGER,
  -- 1: pelab-scale is to cancel the allocations that wait. The row goes when none is left.
  removing INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL,
  CHECK ((paused_reason IS NULL) = (paused_at IS NULL))
) STRICT, WITHOUT ROWID;

-- The role 'scaler' is new. SQLite cannot change a CHECK, so the table is made anew.
ALTER TABLE principals RENAME TO old_principals;
CREATE TABLE principals (
  name TEXT PRIMARY KEY,
  role TEXT NOT NULL CHECK (role IN ('reader', 'submitter', 'operator', 'worker', 'scaler')),
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
INSERT INTO principals SELECT * FROM old_principals;
DROP TABLE old_principals;
