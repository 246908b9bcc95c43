-- An invented migration: it adds columns, writes every row of a table, replaces a view and copies
-- a table that may be large. Tests use it as the one that follows the last (CMakeLists.txt).

ALTER TABLE jobs ADD COLUMN wish TEXT;
UPDATE jobs SET wish = 'the wish of ' || key;

CREATE TABLE next_logs (
  attempt_id INTEGER NOT NULL REFERENCES attempts,
  byte_offset INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (attempt_id, byte_offset)
) STRICT, WITHOUT ROWID;
INSERT INTO next_logs SELECT attempt_id, byte_offset, data FROM logs;

DROP VIEW v_logs;
CREATE VIEW v_logs AS
SELECT attempt_id, byte_offset, data, length(data) AS bytes
FROM next_logs;
