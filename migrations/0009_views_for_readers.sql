-- What programs that read the file had to look up in tables: sweeps, the keys of their jobs, and logs.

-- Public views ------------------------------------------------------------------------------------------------------

CREATE VIEW v_sweeps AS
SELECT s.sweep_id, s.name, s.protocol, s.state, s.priority, s.file_name, s.created_at, s.cells,
       s.new_jobs, s.stored_jobs, s.in_flight_jobs, s.failed_earlier_jobs,
       coalesce(n.queued, 0) AS queued, coalesce(n.assigned, 0) AS assigned, coalesce(n.running, 0) AS running,
       coalesce(n.succeeded, 0) AS succeeded, coalesce(n.failed, 0) AS failed, coalesce(n.cancelled, 0) AS cancelled,
       coalesce(n.epochs, 0) AS epochs, coalesce(n.epochs_done, 0) AS epochs_done,
       s.paused, s.extensions_json, s.document, s.overrides_json
FROM sweeps AS s LEFT JOIN sweep_counts AS n USING (sweep_id);

DROP VIEW v_sweep_jobs;
CREATE VIEW v_sweep_jobs AS
SELECT s.sweep_id, s.name AS sweep, c.job_id, c.ordinal, j.key
FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id) JOIN jobs AS j USING (job_id);

CREATE VIEW v_logs AS
SELECT attempt_id, byte_offset, data
FROM logs;
