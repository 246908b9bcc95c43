-- As in 0004_sheets.sql, and a claim can be put aside: somebody asked that it gets no further
-- seeds. SQLite cannot change a CHECK, so the table is made again.
CREATE TABLE new_sheet_claims (
  sheet_id INTEGER NOT NULL REFERENCES sheets,
  round INTEGER NOT NULL,
  position INTEGER NOT NULL,                 -- of the claim in the sheet, from 0
  claim TEXT NOT NULL,                       -- its id, with the values of its `each`
  standing TEXT NOT NULL CHECK (
    standing IN ('open', 'decided', 'all seeds', 'futile', 'put aside')),
  verdict TEXT NOT NULL CHECK (verdict IN ('undecided', 'holds', 'fails', 'not eligible')),
  seeds INTEGER NOT NULL,                    -- that its e-values rest on, from the sheet's first
  eligible INTEGER NOT NULL,                 -- of these
  exploratory INTEGER NOT NULL,              -- of these: stored before the sheet was registered
  log_e_holds REAL NOT NULL,                 -- natural logarithms
  log_e_fails REAL NOT NULL,
  log_threshold REAL NOT NULL,               -- that the verdict met, or that it would need
  PRIMARY KEY (sheet_id, round, position)
) STRICT, WITHOUT ROWID;
INSERT INTO new_sheet_claims
SELECT sheet_id, round, position, claim, standing, verdict, seeds, eligible, exploratory,
       log_e_holds, log_e_fails, log_threshold
FROM sheet_claims;
DROP VIEW v_sheet_claims;
DROP TABLE sheet_claims;
ALTER TABLE new_sheet_claims RENAME TO sheet_claims;
CREATE VIEW v_sheet_claims AS
SELECT sheet_id, round, position, claim, standing, verdict, seeds, eligible, exploratory,
       log_e_holds, log_e_fails, log_threshold
FROM sheet_claims;
