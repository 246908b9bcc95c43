-- v_attempts gets the kind of the error that ended an attempt. It tells a training whose loss was not
-- finite from one that a machine interrupted.
DROP VIEW v_attempts;
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error,
       started_at, ended_at, environment_json, error_kind
FROM attempts;
