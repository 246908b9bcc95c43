-- Checkpoints that workers upload, so that a job goes on anywhere; and files that no other row names yet.

-- The newest of a job that still trains, one a job; gone when the job ends, and first of all where space is short.
CREATE TABLE checkpoints (
  job_id INTEGER PRIMARY KEY REFERENCES jobs,
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  epoch INTEGER NOT NULL,                    -- the next to run: never beyond the epochs that are stored
  sha256 TEXT NOT NULL,                      -- the file is FILE.artifacts/<first two>/<sha256>
  bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX checkpoints_by_hash ON checkpoints (sha256);

-- Files that an open attempt has sent, until its event names them or it ends: they are not collected before.
CREATE TABLE uploads (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (attempt_id, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX uploads_by_hash ON uploads (sha256);

-- Public views ------------------------------------------------------------------------------------------------------

CREATE VIEW v_checkpoints AS
SELECT c.job_id, c.epoch, c.bytes, c.sha256, c.created_at, a.number AS attempt, a.worker_id AS worker
FROM checkpoints AS c JOIN attempts AS a USING (attempt_id);
