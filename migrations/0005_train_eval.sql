-- The accuracy on a sample of the training examples, evaluated after each epoch like the test
-- examples: without dropout. Training accuracy, measured during the epoch, is lower, and its
-- distance from the test accuracy is not what a model fails to generalize. NULL: not measured.
ALTER TABLE curves ADD COLUMN train_eval_correct INTEGER;
ALTER TABLE curves ADD COLUMN train_eval_total INTEGER;
ALTER TABLE staged_epochs ADD COLUMN train_eval_correct INTEGER;
ALTER TABLE staged_epochs ADD COLUMN train_eval_total INTEGER;
-- Of the last accepted epoch, as the other counts.
ALTER TABLE jobs ADD COLUMN train_eval_correct INTEGER;
ALTER TABLE jobs ADD COLUMN train_eval_total INTEGER;

DROP VIEW v_curves;
DROP VIEW accepted_epochs;
CREATE VIEW accepted_epochs AS
SELECT 0 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss,
       c.test_correct, c.test_total, c.learning_rate, c.seconds, c.train_eval_correct,
       c.train_eval_total
FROM attempts AS a JOIN curves AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
UNION ALL
SELECT 1 AS waits, a.job_id, c.epoch, c.train_loss, c.train_correct, c.train_total, c.test_loss,
       c.test_correct, c.test_total, c.learning_rate, c.seconds, c.train_eval_correct,
       c.train_eval_total
FROM attempts AS a JOIN staged_epochs AS c USING (attempt_id)
WHERE NOT EXISTS (
  SELECT 1 FROM attempts AS later
  WHERE later.job_id = a.job_id AND later.number > a.number AND later.start_epoch <= c.epoch)
  AND (c.staged_id > (SELECT until_id FROM epoch_move)
       OR c.attempt_id > (SELECT through_attempt FROM epoch_move));

CREATE VIEW v_curves AS
SELECT job_id, epoch, train_loss,
       CAST(train_correct AS REAL) / train_total AS train_accuracy,
       test_loss,
       CAST(test_correct AS REAL) / test_total AS test_accuracy,
       learning_rate, seconds,
       train_correct, train_total, test_correct, test_total,
       CAST(train_eval_correct AS REAL) / train_eval_total AS train_eval_accuracy,
       train_eval_correct, train_eval_total
FROM accepted_epochs;

DROP VIEW v_jobs;
CREATE VIEW v_jobs AS
SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state,
       j.attempts, j.device, j.epochs, j.epochs_done,
       CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy,
       CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy,
       CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy,
       j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json,
       j.train_correct, j.train_total, j.test_correct, j.test_total,
       j.trained, j.configuration_id,
       j.train_loss, j.test_loss, j.trained AND j.diverged AS diverged, j.warning,
       CAST(j.train_eval_correct AS REAL) / j.train_eval_total AS train_eval_accuracy,
       j.train_eval_correct, j.train_eval_total
FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id
WHERE NOT EXISTS (
  SELECT 1 FROM jobs AS other
  WHERE other.key = j.key AND other.generation <> j.generation
    AND (other.trained > j.trained
         OR (other.trained = j.trained AND other.generation > j.generation)));
