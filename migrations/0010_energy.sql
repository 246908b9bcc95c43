-- The energy of the GPU while an attempt had it, as the worker measured it. Attempts that were on
-- the GPU at the same time share it in equal parts. NULL: it was not measured.
ALTER TABLE attempts ADD COLUMN energy_joules REAL;

DROP VIEW v_attempts;
CREATE VIEW v_attempts AS
SELECT attempt_id, job_id, number, worker_id AS worker, device, start_epoch, outcome, error,
       started_at, ended_at, environment_json, error_kind, trace_id, span_id, energy_joules
FROM attempts;

-- As in 0008_usage.sql, and with the energy.
DROP VIEW v_usage;
CREATE VIEW v_usage AS
WITH RECURSIVE
ended AS (
  SELECT * FROM (
    SELECT a.job_id, a.principal, a.device = 'cpu' AS on_cpu, a.outcome, a.token, a.started_at,
           max(a.ended_at, a.started_at) AS ended_at, a.energy_joules,
           -- Attempts that one trainer ran together pay for their time in equal parts.
           count(*) OVER (PARTITION BY a.worker_id, a.slot, a.started_at) AS together
    FROM attempts AS a)
  WHERE outcome IS NOT NULL AND token <> 0),
-- The part of each attempt on each day (UTC) that it touched.
parts AS (
  SELECT job_id, principal, on_cpu, together, started_at, ended_at, energy_joules,
         started_at / 86400000 AS day,
         started_at AS begin, min(ended_at, (started_at / 86400000 + 1) * 86400000) AS end
  FROM ended
  UNION ALL
  SELECT job_id, principal, on_cpu, together, started_at, ended_at, energy_joules, day + 1, end,
         min(ended_at, (day + 2) * 86400000)
  FROM parts WHERE end < ended_at),
-- Of the sweeps that have a job, it counts for the first one of the principal that paid,
-- or for the first one of all.
owned AS (
  SELECT p.*, coalesce(
    (SELECT min(c.sweep_id) FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id)
     WHERE c.job_id = p.job_id AND s.deleted = 0 AND s.owner = p.principal),
    (SELECT min(c.sweep_id) FROM sweep_jobs AS c JOIN sweeps AS s USING (sweep_id)
     WHERE c.job_id = p.job_id AND s.deleted = 0)) AS sweep_id
  FROM parts AS p)
SELECT o.principal, o.sweep_id, s.name AS sweep, date(o.day * 86400, 'unixepoch') AS day,
       count(*) AS attempts,
       sum(CASE WHEN o.on_cpu THEN 0 ELSE (o.end - o.begin) / 1000.0 / o.together END)
         AS gpu_seconds,
       sum(CASE WHEN o.on_cpu THEN (o.end - o.begin) / 1000.0 / o.together ELSE 0 END)
         AS cpu_seconds,
       -- A day gets as much of an attempt's energy as of its time.
       sum(CASE WHEN o.ended_at > o.started_at
           THEN o.energy_joules * (o.end - o.begin) / (o.ended_at - o.started_at)
           ELSE o.energy_joules END) AS joules
FROM owned AS o LEFT JOIN sweeps AS s ON s.sweep_id = o.sweep_id
GROUP BY o.principal, o.sweep_id, o.day;
