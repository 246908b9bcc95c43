-- Epochs arrive from many attempts at once, and in `curves` those of each attempt are on a page of their own: a page of the
-- log for every epoch. They are appended here, dozens to a page, and moved into `curves` an attempt at a time, once there are
-- many of them (server/store/epoch_staging.h).
CREATE TABLE staged_epochs (
  staged_id INTEGER PRIMARY KEY,             -- in the order of arrival
  attempt_id INTEGER NOT NULL,               -- of attempts; the move into curves checks that
  epoch INTEGER NOT NULL,
  train_loss REAL NOT NULL,
  train_correct INTEGER NOT NULL,
  train_total INTEGER NOT NULL,
  test_loss REAL NOT NULL,
  test_correct INTEGER NOT NULL,
  test_total INTEGER NOT NULL,
  learning_rate REAL NOT NULL,
  seconds REAL NOT NULL
) STRICT;

-- Rows up to `until_id` of attempts up to `through_attempt` are in `curves` already, and go in a moment. One row, always.
CREATE TABLE epoch_move (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  until_id INTEGER NOT NULL,
  through_attempt INTEGER NOT NULL
) STRICT;
INSERT INTO epoch_move VALUES (1, 0, 0);

DROP VIEW v_curves;

-- Every stored epoch of every attempt, accepted or not.
CREATE VIEW stored_epochs AS
SELECT attempt_id, epoch, train_loss, train_correct, train_total, test_loss, test_correct, test_total, learning_rate, seconds
FROM curves
UNION ALL
SELECT attempt_id, epoch, train_loss, train_correct, train_total, test_loss, test_correct, test_total, learning_rate, seconds
FROM staged_epochs
WHERE staged_id > (SELECT until_id FROM epoch_move) OR attempt_id > (SELECT through_attempt FROM epoch_move);

-- A job's accepted line: an attempt's epoch counts until a later attempt started at or before it. (Both halves are joined with
-- their attempts apart: so a query of one job, aggregate or not, reads no other's epochs in `curves`.)
CREATE VIEW accepted_epochs AS
SELECT 0 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss, c.test_correct, c.test_total,
       c.learning_rate, c.seconds
FROM attempts AS a JOIN curves AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
UNION ALL
SELECT 1 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss, c.test_correct, c.test_total,
       c.learning_rate, c.seconds
FROM attempts AS a JOIN staged_epochs AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
  AND (c.staged_id > (SELECT until_id FROM epoch_move) OR c.attempt_id > (SELECT through_attempt FROM epoch_move));

-- Public views ------------------------------------------------------------------------------------------------------

CREATE VIEW v_curves AS
SELECT job_id, epoch, train_loss,
       CAST(train_correct AS REAL) / train_total AS train_accuracy,
       test_loss,
       CAST(test_correct AS REAL) / test_total AS test_accuracy,
       learning_rate, seconds,
       train_correct, train_total, test_correct, test_total
FROM accepted_epochs;
