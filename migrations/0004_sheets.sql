-- Claim sheets that are registered, and the rounds in which they are settled (docs/formats.md).

-- A sheet is registered once, before its first round; what it says never changes. Its rounds add
-- seeds to a sweep of its own.
CREATE TABLE sheets (
  sheet_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL UNIQUE,               -- of document, a NUL and sweep_document
  document TEXT NOT NULL,
  file_name TEXT NOT NULL,                   -- of the sheet, for messages
  sweep_document TEXT NOT NULL,              -- its sweep; a copy if the sheet has it inline
  first_seed INTEGER NOT NULL,
  -- No cell of the sheet had a job with this seed or a later one, pilots aside. Seeds before it are
  -- exploratory, later ones confirmatory.
  fresh_from INTEGER NOT NULL,
  slots INTEGER NOT NULL,                    -- that a round gives something to do
  owner TEXT NOT NULL,                       -- the principal that registered it; empty: none
  created_at INTEGER NOT NULL,
  sweep_id INTEGER REFERENCES sweeps         -- NULL before the first round, or if it was deleted
) STRICT;
CREATE INDEX sheets_by_name ON sheets (name, sheet_id);
CREATE INDEX sheets_by_sweep ON sheets (sweep_id);

CREATE TABLE sheet_rounds (
  sheet_id INTEGER NOT NULL REFERENCES sheets,
  round INTEGER NOT NULL,                    -- from 1
  first_seed INTEGER NOT NULL,
  end_seed INTEGER NOT NULL,                 -- the seed after its last one
  cells_json TEXT NOT NULL,                  -- [0,3,…]: combinations of the sweep
  began_at INTEGER NOT NULL,
  ended_at INTEGER,                          -- NULL while some of its jobs are to come
  PRIMARY KEY (sheet_id, round)
) STRICT, WITHOUT ROWID;

-- What each claim has come to after each round that has ended.
CREATE TABLE sheet_claims (
  sheet_id INTEGER NOT NULL REFERENCES sheets,
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,                 -- of the claim in the sheet, from 0
  claim TEXT NOT NULL,                       -- its id, with the values of its `each`
  standing TEXT NOT NULL CHECK (standing IN ('open', 'decided', 'all seeds', 'futile')),
  verdict TEXT NOT NULL CHECK (verdict IN ('undecided', 'holds', 'fails', 'not eligible')),
  seeds INTEGER NOT NULL,                    -- that its e-values rest on, from the sheet's first
  eligible INTEGER NOT NULL,                 -- of these
  exploratory INTEGER NOT NULL,              -- of these: stored before the sheet was registered
  log_e_holds REAL NOT NULL,                 -- natural logarithms
  log_e_fails REAL NOT NULL,
  log_threshold REAL NOT NULL,               -- that the verdict met, or that it would need
  PRIMARY KEY (sheet_id, round, position)
) STRICT, WITHOUT ROWID;

CREATE VIEW v_sheets AS
SELECT s.sheet_id, s.name, s.sha256, s.file_name, s.first_seed, s.fresh_from, s.slots, s.owner,
       s.created_at, s.sweep_id,
       (SELECT count(*) FROM sheet_rounds AS r WHERE r.sheet_id = s.sheet_id) AS rounds,
       (SELECT count(*) FROM sheet_rounds AS r
        WHERE r.sheet_id = s.sheet_id AND r.ended_at IS NOT NULL) AS ended_rounds,
       s.document, s.sweep_document
FROM sheets AS s;

CREATE VIEW v_sheet_rounds AS
SELECT sheet_id, round, first_seed, end_seed, cells_json, began_at, ended_at FROM sheet_rounds;

CREATE VIEW v_sheet_claims AS
SELECT sheet_id, round, position, claim, standing, verdict, seeds, eligible, exploratory,
       log_e_holds, log_e_fails, log_threshold
FROM sheet_claims;
