#include "core/db/check/invariants.h"

namespace pelab::db {
namespace {

// Curves: each job's accepted epochs, and the summary that lists read instead of them.
const std::vector<Invariant> kCurves = {
    {"epochs have no gap and none is there twice",
     "SELECT printf('job %d: %d rows for %d epochs from %d to %d', job_id, count(*), "
     "count(DISTINCT epoch), min(epoch), max(epoch)) FROM v_curves GROUP BY job_id "
     "HAVING min(epoch) <> 0 OR max(epoch) <> count(*) - 1 OR count(DISTINCT epoch) <> count(*)"},
    {"epochs that wait for their curve are of an attempt, and not in it yet",
     "SELECT printf('attempt %d, epoch %d', s.attempt_id, s.epoch) FROM staged_epochs AS s, "
     "epoch_move AS m WHERE (s.staged_id > m.until_id OR s.attempt_id > m.through_attempt) AND "
     "(s.attempt_id NOT IN (SELECT attempt_id FROM attempts) OR EXISTS (SELECT 1 FROM curves AS c "
     "WHERE c.attempt_id = s.attempt_id AND c.epoch = s.epoch))"},
    {"trained jobs have every epoch",
     "SELECT printf('job %d: %d of %d epochs are stored', j.job_id, coalesce(c.stored, 0), "
     "j.epochs) FROM jobs AS j LEFT JOIN (SELECT job_id, count(*) AS stored FROM v_curves "
     "GROUP BY job_id) AS c USING (job_id) WHERE j.trained AND coalesce(c.stored, 0) <> j.epochs"},
    {"summaries agree with the curves",
     "SELECT printf('job %d: epochs_done is %d, the curve has %d', j.job_id, j.epochs_done, "
     "coalesce(c.stored, 0)) FROM jobs AS j LEFT JOIN (SELECT job_id, count(*) AS stored "
     "FROM v_curves GROUP BY job_id) AS c USING (job_id) "
     "WHERE j.epochs_done <> coalesce(c.stored, 0)"},
    {"final accuracies are those of the last epoch",
     "SELECT printf('job %d: the summary says %s/%s in training, %s/%s of it without dropout and "
     "%s/%s in the test, its last epoch %d/%d, %s/%s and %d/%d', j.job_id, j.train_correct, "
     "j.train_total, j.train_eval_correct, j.train_eval_total, j.test_correct, j.test_total, "
     "c.train_correct, c.train_total, c.train_eval_correct, c.train_eval_total, c.test_correct, "
     "c.test_total) "
     "FROM jobs AS j JOIN v_curves AS c ON c.job_id = j.job_id AND c.epoch = j.epochs_done - 1 "
     "WHERE (j.train_correct, j.train_total, j.train_eval_correct, j.train_eval_total, "
     "j.test_correct, j.test_total) IS NOT (c.train_correct, c.train_total, "
     "c.train_eval_correct, c.train_eval_total, c.test_correct, c.test_total)"},
    {"final losses are those of the last epoch, and say which trainings diverged",
     "SELECT printf('job %d: the summary says %s in training, %s in the test, diverged %d; its "
     "last epoch %s and %s, and divergence is above %s', j.job_id, j.train_loss, j.test_loss, "
     "j.diverged, c.train_loss, c.test_loss, f.divergence_loss) FROM jobs AS j JOIN v_curves AS c "
     "ON c.job_id = j.job_id AND c.epoch = j.epochs_done - 1 LEFT JOIN configurations AS f "
     "USING (configuration_id) WHERE (j.train_loss, j.test_loss) IS NOT (c.train_loss, "
     "c.test_loss) OR (j.trained AND j.diverged <> "
     "coalesce(min(c.train_loss, c.test_loss) > f.divergence_loss, 0))"},
    {"best accuracies are those of the best epoch",
     "SELECT printf('job %d: the summary says %s/%s, the curve %s/%s', job_id, correct, total, "
     "best_correct, best_total) FROM (SELECT job_id, max(c.test_accuracy), "
     "c.test_correct AS best_correct, c.test_total AS best_total, "
     "j.best_test_correct AS correct, j.best_test_total AS total, "
     "sum(c.test_correct IS j.best_test_correct AND c.test_total IS j.best_test_total) AS found "
     "FROM v_curves AS c JOIN jobs AS j USING (job_id) GROUP BY job_id) "
     "WHERE found = 0 OR correct * best_total <> best_correct * total"},
};

const std::vector<Invariant> kMatrices = {
    {"ablation matrices are whole",
     "SELECT printf('analysis %d of job %d: %d of %d x %d heads', n.analysis_id, n.job_id, "
     "count(h.head), n.layers, "
     "n.heads) FROM analyses AS n LEFT JOIN head_ablation AS h USING (analysis_id) WHERE n.name = "
     "'head_ablation' "
     "GROUP BY n.analysis_id HAVING count(h.head) <> n.layers * n.heads OR max(h.layer) >= "
     "n.layers OR "
     "max(h.head) >= n.heads"},
    {"ablated counts follow from each other",
     "SELECT printf('analysis %d of job %d, layer %d head %d: %d correct of %d intact, %d lost, "
     "%d gained', n.analysis_id, n.job_id, h.layer, h.head, h.correct, n.intact_correct, h.lost, "
     "h.gained) FROM analyses AS n JOIN head_ablation AS h USING (analysis_id) WHERE "
     "h.correct NOT BETWEEN 0 AND n.total OR h.lost NOT BETWEEN 0 AND n.intact_correct OR "
     "h.gained NOT BETWEEN 0 AND n.total - n.intact_correct OR "
     "n.intact_correct - h.correct <> h.lost - h.gained"},
    {"entries of an ablation matrix exist whole or not at all",
     "SELECT printf('analysis %d of job %d, layer %d head %d', n.analysis_id, n.job_id, h.layer, "
     "h.head) FROM analyses AS n JOIN head_ablation AS h USING (analysis_id) "
     "WHERE n.intact_nll IS NOT NULL AND (h.correct IS NULL) + (h.lost IS NULL) + "
     "(h.gained IS NULL) + (h.drop_standard_error IS NULL) + (h.nll IS NULL) + "
     "(h.nll_standard_error IS NULL) NOT IN (0, 6)"},
    {"ablation matrices have their deposit indices",
     "SELECT printf('analysis %d of job %d: %d of %d layers, %d over all', n.analysis_id, "
     "n.job_id, count(d.layer) FILTER (WHERE d.layer >= 0), n.layers, "
     "count(d.layer) FILTER (WHERE d.layer = -1)) FROM analyses AS n "
     "LEFT JOIN deposit_indices AS d USING (analysis_id) "
     "WHERE n.name = 'head_ablation' AND n.intact_nll IS NOT NULL GROUP BY n.analysis_id "
     "HAVING count(d.layer) <> n.layers + 1 OR max(d.layer) <> n.layers - 1 OR min(d.layer) <> -1"},
};

// Jobs, attempts and sweeps: work is done only once, and their states are consistent.
const std::vector<Invariant> kStates = {
    {"a key and generation is one job",
     "SELECT printf('key %s, generation %d: %d jobs, %d of them succeeded', key, generation, "
     "count(*), sum(state = 'succeeded')) FROM jobs NOT INDEXED GROUP BY key, generation "
     "HAVING count(*) > 1"},
    {"a job was trained by one attempt",
     "SELECT printf('job %d: attempts %s trained it', j.job_id, group_concat(a.number)) "
     "FROM jobs AS j JOIN attempts AS a USING (job_id) "
     "WHERE a.outcome = 'succeeded' AND a.start_epoch < j.epochs "
     "GROUP BY j.job_id HAVING count(*) > 1"},
    {"succeeded jobs are trained, and trained ones neither failed nor cancelled",
     "SELECT printf('job %d (%s)', job_id, state) FROM jobs WHERE "
     "(state = 'succeeded' AND NOT trained) OR (trained AND state IN ('failed', 'cancelled'))"},
    {"trained jobs have an attempt that succeeded",
     "SELECT printf('job %d', job_id) FROM jobs AS j WHERE j.trained AND NOT EXISTS "
     "(SELECT 1 FROM attempts AS a WHERE a.job_id = j.job_id AND a.outcome = 'succeeded')"},
    {"attempts are numbered from 1 and counted",
     "SELECT printf('job %d: %d attempts are counted, %d are there, up to number %d', j.job_id, "
     "j.attempts, count(a.number), max(coalesce(a.number, 0))) FROM jobs AS j "
     "LEFT JOIN attempts AS a USING (job_id) GROUP BY j.job_id "
     "HAVING count(a.number) <> j.attempts OR max(coalesce(a.number, 0)) <> j.attempts "
     "OR min(coalesce(a.number, 1)) <> 1"},
    {"a job has at most one open attempt",
     "SELECT printf('job %d: attempts %s are open', job_id, group_concat(number)) "
     "FROM attempts NOT INDEXED WHERE outcome IS NULL GROUP BY job_id HAVING count(*) > 1"},
    {"jobs that are assigned or running have an open attempt",
     "SELECT printf('job %d (%s)', j.job_id, j.state) FROM jobs AS j WHERE j.state IN "
     "('assigned', 'running') AND NOT EXISTS (SELECT 1 FROM attempts AS a "
     "WHERE a.job_id = j.job_id AND a.outcome IS NULL)"},
    // Succeeded and cancelled jobs are excepted: a cancelled job, or one whose analyses were given
    // up, may have an open attempt until the worker confirms.
    {"jobs that wait or have failed hold no open attempt",
     "SELECT printf('job %d (%s): attempt %d is open', j.job_id, j.state, a.number) FROM jobs AS j "
     "JOIN attempts AS a USING (job_id) WHERE a.outcome IS NULL AND j.state NOT IN ('assigned', "
     "'running', 'succeeded', 'cancelled')"},
    {"every job has its spec",
     "SELECT printf('job %d (%s %s seed %d)', job_id, pe_label, task, seed) FROM jobs AS j "
     "WHERE NOT EXISTS (SELECT 1 FROM configurations AS c "
     "WHERE c.configuration_id = j.configuration_id)"},
    {"every configuration is that of a job",
     "SELECT printf('configuration %d', configuration_id) FROM configurations WHERE "
     "configuration_id NOT IN (SELECT configuration_id FROM jobs WHERE configuration_id "
     "IS NOT NULL)"},
    {"checkpoints are of jobs that still train, and not ahead of their curves",
     "SELECT printf('job %d (%s): a checkpoint of epoch %d, %d of %d epochs are stored', j.job_id, "
     "j.state, c.epoch, j.epochs_done, j.epochs) FROM checkpoints AS c JOIN jobs AS j "
     "USING (job_id) WHERE j.trained OR j.state NOT IN ('queued', 'assigned', 'running') "
     "OR c.epoch > j.epochs_done"},
    {"ended attempts say when they ended, open ones do not",
     "SELECT printf('attempt %d of job %d (%s)', number, job_id, coalesce(outcome, 'open')) "
     "FROM attempts WHERE (outcome IS NULL) <> (ended_at IS NULL)"},
    {"active sweeps wait for a job",
     "SELECT printf('sweep %d (%s)', s.sweep_id, s.name) FROM sweeps AS s "
     "WHERE s.state = 'active' AND NOT EXISTS (SELECT 1 FROM sweep_jobs AS c JOIN jobs AS j "
     "USING (job_id) WHERE c.sweep_id = s.sweep_id AND c.claimed AND j.state IN ('queued', "
     "'assigned', 'running'))"},
    // A trained job that is open again gets further analyses, perhaps only for another sweep.
    {"the counts of a sweep are those of its jobs",
     "SELECT printf('sweep %d (%s): %s are counted, %s are there', s.sweep_id, s.name, "
     "coalesce((SELECT n.queued || ' ' || n.assigned || ' ' || n.running || ' ' || n.succeeded "
     "|| ' ' || n.failed || ' ' || n.cancelled || ', epochs ' || n.epochs_done || ' of ' || "
     "n.epochs || ', open ' || n.open_claims FROM sweep_counts AS n "
     "WHERE n.sweep_id = s.sweep_id), 'none'), there.counts) AS problem "
     "FROM sweeps AS s JOIN (SELECT c.sweep_id, sum(c.claimed AND j.state = 'queued') || ' ' || "
     "sum(c.claimed AND j.state = 'assigned') || ' ' || sum(c.claimed AND j.state = 'running') "
     "|| ' ' || sum(j.state = 'succeeded' OR (NOT c.claimed AND j.trained)) || ' ' || "
     "sum(j.state = 'failed') || ' ' || sum(j.state = 'cancelled' OR (NOT c.claimed AND "
     "NOT j.trained AND j.state IN ('queued', 'assigned', 'running'))) || ', epochs ' || "
     "sum(CASE WHEN c.claimed THEN j.epochs_done WHEN j.trained THEN j.epochs "
     "ELSE c.withdrawn_epochs END) || ' of ' || sum(j.epochs) || ', open ' || sum(c.claimed = 1 "
     "AND o.state IN ('expanding', 'active') "
     "AND j.state IN ('queued', 'assigned', 'running')) AS counts FROM sweep_jobs AS c "
     "JOIN jobs AS j USING (job_id) JOIN sweeps AS o USING (sweep_id) GROUP BY c.sweep_id) "
     "AS there USING (sweep_id) WHERE s.deleted = 0 AND problem NOT LIKE '%: ' || there.counts || "
     "' are counted%'"},
    {"finished sweeps wait for no job",
     "SELECT printf('sweep %d (%s): job %d is %s', s.sweep_id, s.name, j.job_id, j.state) "
     "FROM sweeps AS s JOIN sweep_jobs AS c USING (sweep_id) JOIN jobs AS j USING (job_id) "
     "WHERE s.state = 'finished' AND c.claimed AND NOT j.trained "
     "AND j.state IN ('queued', 'assigned', 'running')"},
    // The claims of a very large sweep are withdrawn in slices, which continue when a coordinator
    // starts.
    {"cancelled sweeps claim nothing",
     "SELECT printf('sweep %d (%s): %d jobs', s.sweep_id, s.name, count(*)) FROM sweeps AS s "
     "JOIN sweep_jobs AS c USING (sweep_id) WHERE s.state = 'cancelled' AND c.claimed "
     "AND s.drop_from IS NULL GROUP BY s.sweep_id"},
    {"sweeps hold the cells that were expanded; active ones hold all",
     "SELECT printf('sweep %d (%s, %s): %d of %d cells, up to ordinal %d', s.sweep_id, s.name, "
     "s.state, s.expanded_cells, s.cells, max(coalesce(c.ordinal, -1))) FROM sweeps AS s "
     "LEFT JOIN sweep_jobs AS c USING (sweep_id) GROUP BY s.sweep_id "
     "HAVING (max(coalesce(c.ordinal, -1)) >= s.expanded_cells AND NOT s.expands_again) "
     "OR s.expanded_cells > s.cells "
     "OR (s.state IN ('active', 'finished') AND s.expanded_cells <> s.cells)"},
};

const std::vector<Invariant> kFiles = {
    // As bytes, because length and GLOB of a text end at a NUL.
    {"files are named by their SHA-256",
     "SELECT printf('%s of attempt %d: \"%s\"', kind, attempt_id, substr(sha256, 1, 80)) FROM "
     "(SELECT 'an artifact' AS kind, attempt_id, sha256 FROM artifacts UNION ALL "
     "SELECT 'the checkpoint', attempt_id, sha256 FROM checkpoints UNION ALL "
     "SELECT 'an upload', attempt_id, sha256 FROM uploads) "
     "WHERE length(CAST(sha256 AS BLOB)) <> 64 OR sha256 GLOB '*[^0-9a-f]*'"},
    {"files that specs may name are named by their SHA-256",
     "SELECT printf('\"%s\"', substr(sha256, 1, 80)) FROM files "
     "WHERE length(CAST(sha256 AS BLOB)) <> 64 OR sha256 GLOB '*[^0-9a-f]*'"},
    // A trained job without weights, such as one that was imported without its files, runs no more.
    {"files of own encodings and data are stored while jobs may need them",
     "SELECT printf('configuration %d: no file %s', c.configuration_id, c.file) FROM "
     "(SELECT configuration_id, CASE WHEN json_valid(replace(template, char(31), 0)) THEN "
     "replace(template, char(31), 0) ->> f.value END AS file FROM configurations, "
     "json_each('[\"$.pe.file\", \"$.task.file\"]') AS f "
     "WHERE configuration_id IN (SELECT configuration_id FROM jobs "
     "WHERE pe = 'own' OR task GLOB 'own:*')) AS c "
     "WHERE c.file IS NOT NULL AND c.file NOT IN (SELECT sha256 FROM files) AND EXISTS "
     "(SELECT 1 FROM jobs AS j "
     "WHERE j.configuration_id = c.configuration_id AND (NOT j.trained OR EXISTS "
     "(SELECT 1 FROM attempts AS a JOIN artifacts AS f USING (attempt_id) "
     "WHERE a.job_id = j.job_id AND f.name = 'weights.safetensors')))"},
};

const std::vector<Invariant> kSheets = {
    {"rounds follow one another, and only the last one is open",
     "SELECT printf('sheet %d, round %d: seeds %d to %d', r.sheet_id, r.round, r.first_seed, "
     "r.end_seed - 1) FROM sheet_rounds AS r JOIN sheets AS s USING (sheet_id) "
     "LEFT JOIN sheet_rounds AS b ON b.sheet_id = r.sheet_id AND b.round = r.round - 1 "
     "WHERE r.end_seed <= r.first_seed OR (b.round IS NULL AND (r.round <> 1 OR "
     "r.first_seed <> s.first_seed)) OR (b.round IS NOT NULL AND (b.end_seed <> r.first_seed OR "
     "b.ended_at IS NULL))"},
    {"rounds that have ended say what every claim has come to",
     "SELECT printf('sheet %d, round %d: %d claims', r.sheet_id, r.round, count(c.claim)) "
     "FROM sheet_rounds AS r LEFT JOIN sheet_claims AS c USING (sheet_id, round) "
     "GROUP BY r.sheet_id, r.round HAVING (r.ended_at IS NULL) <> (count(c.claim) = 0) OR "
     "count(c.claim) NOT IN (0, (SELECT count(*) FROM sheet_claims AS f "
     "WHERE f.sheet_id = r.sheet_id AND f.round = 1))"},
    {"claims that get no more seeds keep their evidence",
     "SELECT printf('sheet %d, round %d: %s', a.sheet_id, a.round, a.claim) FROM sheet_claims AS a "
     "JOIN sheet_claims AS b ON b.sheet_id = a.sheet_id AND b.round = a.round - 1 AND "
     "b.position = a.position WHERE a.claim <> b.claim OR (b.standing <> 'open' AND "
     "(a.standing = 'open' OR (a.seeds, a.log_e_holds, a.log_e_fails) IS NOT "
     "(b.seeds, b.log_e_holds, b.log_e_fails)))"},
};

}  // namespace

const std::vector<Invariant>& Invariants() {
  static const std::vector<Invariant> all = [] {
    std::vector<Invariant> together = kCurves;
    together.insert(together.end(), kMatrices.begin(), kMatrices.end());
    together.insert(together.end(), kStates.begin(), kStates.end());
    together.insert(together.end(), kFiles.begin(), kFiles.end());
    together.insert(together.end(), kSheets.begin(), kSheets.end());
    return together;
  }();
  return all;
}

}  // namespace pelab::db
