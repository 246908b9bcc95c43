-- What kind of error ended an attempt, so that a training whose loss was not finite can be told from
-- one that a machine interrupted.
DROP VIEW v_attempts;
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error,
       started_at, ended_at, environment_json, error_kind
FROM attempts;
