-- The figures of a claim's seeds after the round, as `pelab claims show` has them
-- (core/claims/summary.h). They are NULL for rounds that ended before this migration.
ALTER TABLE sheet_claims ADD COLUMN leans_to TEXT CHECK (leans_to IN ('holds', 'fails'));
ALTER TABLE sheet_claims ADD COLUMN k INTEGER;   -- of n seeds, those on the side that decides
ALTER TABLE sheet_claims ADD COLUMN n INTEGER;
ALTER TABLE sheet_claims ADD COLUMN shows INTEGER;          -- seeds that show what is claimed
ALTER TABLE sheet_claims ADD COLUMN mean REAL;              -- NULL without a finite value, too
ALTER TABLE sheet_claims ADD COLUMN t_half_width REAL;      -- NULL with fewer than two, too
ALTER TABLE sheet_claims ADD COLUMN median_low REAL;        -- NULL if unbounded, too
ALTER TABLE sheet_claims ADD COLUMN median_high REAL;
DROP VIEW v_sheet_claims;
CREATE VIEW v_sheet_claims AS
SELECT sheet_id, round, position, claim, standing, verdict, seeds, eligible, exploratory,
       log_e_holds, log_e_fails, log_threshold,
       leans_to, k, n, shows, mean, t_half_width, median_low, median_high
FROM sheet_claims;
