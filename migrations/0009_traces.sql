-- Which trace a sweep and an attempt belong to (W3C Trace Context), in hexadecimal digits. The span
-- of a sweep is the call that submitted it. An attempt is a span below that of the sweep for which it
-- ran. Empty: none is known, as for everything that is older than this migration.
ALTER TABLE sweeps ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE sweeps ADD COLUMN span_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN span_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN parent_span_id TEXT NOT NULL DEFAULT '';

DROP VIEW v_sweeps;
CREATE VIEW v_sweeps AS
SELECT s.sweep_id, s.name, s.protocol, s.state, s.priority, s.file_name, s.created_at, s.cells,
       s.new_jobs, s.stored_jobs, s.in_flight_jobs, s.failed_earlier_jobs,
       coalesce(n.queued, 0) AS queued, coalesce(n.assigned, 0) AS assigned,
       coalesce(n.running, 0) AS running, coalesce(n.succeeded, 0) AS succeeded,
       coalesce(n.failed, 0) AS failed, coalesce(n.cancelled, 0) AS cancelled,
       coalesce(n.epochs, 0) AS epochs, coalesce(n.epochs_done, 0) AS epochs_done,
       s.paused, s.extensions_json, s.document, s.overrides_json, s.note, s.owner,
       s.trace_id
FROM sweeps AS s LEFT JOIN sweep_counts AS n USING (sweep_id)
WHERE s.deleted = 0;

DROP VIEW v_attempts;
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error,
       started_at, ended_at, environment_json, error_kind, trace_id, span_id
FROM attempts;
