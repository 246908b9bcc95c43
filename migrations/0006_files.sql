-- Files that documents name and jobs need: the TorchScript files of own encodings
-- (docs/own-encodings.md). They are in FILE.artifacts, like the files of attempts. A file is kept
-- as long as the template of a configuration has its hash, and at least a day.
CREATE TABLE files (
  sha256 TEXT PRIMARY KEY,
  bytes INTEGER NOT NULL,
  stored_at INTEGER NOT NULL                 -- when it was last sent, or last named by a submission
) STRICT;
