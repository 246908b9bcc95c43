#include "core/db/read/filter.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/db/raw_statement.h"
#include "core/db/read/reader.h"
#include "core/db/read/where.h"

namespace pelab::db {
namespace {

constexpr std::size_t kMinPrefix = 6;
constexpr std::size_t kKeyDigits = 64;

// Limits of a message about a sweep that does not exist.
constexpr std::int64_t kComparedNames = 1000;  // newest ones, among which one may be meant
constexpr std::size_t kListedNames = 8;
constexpr std::size_t kShownName = 100;  // bytes of a name

// Whether a job belongs to a sweep: it is one of the sweep's jobs, or another generation with the
// same key. If such a generation succeeded last, the views show it in place of the sweep's job. The
// list of numbers (two parameters) returns rows in order, so that a page can end early.
constexpr char kInList[] =
    "j.job_id IN (SELECT job_id FROM sweep_jobs WHERE sweep_id = ? UNION ALL "
    "SELECT other.job_id FROM sweep_jobs AS c JOIN jobs AS mine USING (job_id) JOIN jobs AS other "
    "ON other.key = mine.key AND other.generation <> mine.generation WHERE c.sweep_id = ?)";
constexpr char kLookedUp[] =
    // Nearly every job is one of the sweep's own. CROSS JOIN keeps its order.
    "(EXISTS (SELECT 1 FROM sweep_jobs AS c WHERE c.job_id = j.job_id AND c.sweep_id = ?) OR "
    "EXISTS (SELECT 1 FROM jobs AS mine CROSS JOIN sweep_jobs AS c USING (job_id) "
    "WHERE mine.key = j.key AND c.sweep_id = ?))";

// A sweep's own jobs alone: nothing stands for them.
constexpr char kOwnInList[] = "j.job_id IN (SELECT job_id FROM sweep_jobs WHERE sweep_id = ?)";
constexpr char kOwnLookedUp[] =
    "EXISTS (SELECT 1 FROM sweep_jobs AS c WHERE c.job_id = j.job_id AND c.sweep_id = ?)";

// v_jobs (migrations/0013_short_lookups.sql) without its condition on generations.
constexpr char kEveryGeneration[] =
    "(SELECT j.job_id, j.key, j.generation, j.pe, j.pe_label, j.task, j.protocol, j.seed, j.state, "
    "j.attempts, j.device, j.epochs, j.epochs_done, "
    "CAST(j.train_correct AS REAL) / j.train_total AS train_accuracy, "
    "CAST(j.test_correct AS REAL) / j.test_total AS test_accuracy, "
    "CAST(j.best_test_correct AS REAL) / j.best_test_total AS best_test_accuracy, "
    "j.wall_seconds, j.error, replace(c.template, char(31), j.seed) AS spec_json, "
    "j.train_correct, j.train_total, j.test_correct, j.test_total, j.trained, j.configuration_id, "
    "j.train_loss, j.test_loss, j.trained AND j.diverged AS diverged, j.warning, "
    "CAST(j.train_eval_correct AS REAL) / j.train_eval_total AS train_eval_accuracy, "
    "j.train_eval_correct, j.train_eval_total "
    "FROM jobs AS j LEFT JOIN configurations AS c ON c.configuration_id = j.configuration_id)";

bool IsKeyPrefix(const std::string& text) {
  return !text.empty() && text.size() <= kKeyDigits &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

absl::StatusOr<std::int64_t> FindByPrefix(Connection& db, const std::string& job) {
  RawStatement query(
      db,
      "SELECT job_id, key FROM v_jobs WHERE key >= ?1 AND key < ?1 || 'g' ORDER BY key LIMIT 2");
  query.Bind(1, absl::AsciiStrToLower(job));
  if (!query.Step()) return absl::NotFoundError(Concat("no job ", job));
  const std::int64_t id = query.Integer(0);
  if (query.Step()) {
    return absl::InvalidArgumentError(
        Concat("key prefix ", job, " fits more than one job; give more of its digits"));
  }
  return id;
}

bool WantsOwn(const v1::JobFilter& filter) { return filter.own_jobs() && !filter.sweep().empty(); }

// Adds that a job belongs to the sweep.
void AddSweepTest(std::int64_t sweep, bool own, SweepTest test, Expression& out) {
  const bool in_list = test == SweepTest::kInList;
  const char* const sql =
      own ? (in_list ? kOwnInList : kOwnLookedUp) : (in_list ? kInList : kLookedUp);
  out.sql += Concat(" AND ", sql);
  for (int i = own ? 1 : 2; i > 0; --i) out.binds.emplace_back(sweep);
}

// The views do not show a job of an older generation. The error then names the job that they show.
absl::Status CheckShown(Connection& db, std::int64_t job) {
  RawStatement query(db,
                     "SELECT v.job_id, v.generation FROM jobs AS j JOIN v_jobs AS v USING (key) "
                     "WHERE j.job_id = ?");
  query.Bind(1, job);
  if (!query.Step() || query.Integer(0) == job) return absl::OkStatus();
  return absl::NotFoundError(Concat("job ", job,
                                    " is of an older generation; the one that counts is job ",
                                    query.Integer(0), " (generation ", query.Integer(1), ")"));
}

// A sweep's number of cells, without seeds that were added later, and the job of its first cell.
struct Numbers {
  std::int64_t cells = 0;
  std::int64_t first = 0;
};

absl::StatusOr<Numbers> NumbersOf(Connection& db, const std::string& sweep) {
  const absl::StatusOr<std::int64_t> number = FindSweep(db, sweep);
  if (!number.ok()) return number.status();
  RawStatement query(db,
                     "SELECT cells, (SELECT job_id FROM sweep_jobs AS c WHERE c.sweep_id = "
                     "s.sweep_id ORDER BY ordinal LIMIT 1) FROM sweeps AS s WHERE sweep_id = ?");
  query.Bind(1, *number);
  query.Step();
  return Numbers{.cells = query.Integer(0), .first = query.Integer(1)};
}

constexpr std::int64_t kEveryJob = std::numeric_limits<std::int64_t>::max();

// An error that names sweeps that there are, the newest first.
absl::Status NoSweep(Connection& db, const std::string& sweep) {
  std::vector<std::string> names;
  RawStatement query(db,
                     "SELECT name FROM sweeps WHERE deleted = 0 GROUP BY name "
                     "ORDER BY max(sweep_id) DESC LIMIT ?");
  query.Bind(1, kComparedNames);
  while (query.Step()) names.push_back(query.Text(0));
  const std::string word = Shorten(Escape(sweep), kShownName);
  const std::string_view near = catalog::DidYouMean(word, {names.begin(), names.end()});
  std::vector<std::string> known;
  for (const std::string& name : names) {
    known.push_back(known.size() < kListedNames ? Shorten(Escape(name), kShownName) : "…");
    if (known.size() > kListedNames) break;
  }
  return absl::NotFoundError(
      Concat("no sweep \"", word, "\"",
             near.empty() ? "" : Concat("; did you mean ", Shorten(Escape(near), kShownName), "?"),
             known.empty()  ? "; there is none yet"
             : near.empty() ? Concat("; there are: ", Join(known, ", "))
                            : ""));
}

}  // namespace

std::string_view JobsOf(const v1::JobFilter& filter) {
  return WantsOwn(filter) ? kEveryGeneration : "v_jobs";
}

absl::StatusOr<std::int64_t> FindSweep(Connection& db, const std::string& sweep) {
  std::int64_t number = 0;
  if (ParseNumber(sweep, &number)) {
    RawStatement by_number(db, "SELECT sweep_id FROM sweeps WHERE sweep_id = ? AND deleted = 0");
    by_number.Bind(1, number);
    if (by_number.Step()) return number;
  }
  RawStatement by_name(db, "SELECT max(sweep_id) FROM sweeps WHERE name = ? AND deleted = 0");
  by_name.Bind(1, sweep);
  by_name.Step();
  if (!by_name.IsNull(0)) return by_name.Integer(0);
  return NoSweep(db, sweep);
}

absl::StatusOr<std::int64_t> FindJob(Connection& db, const std::string& job) {
  std::int64_t number = 0;
  if (ParseNumber(job, &number)) {
    RawStatement by_number(db, "SELECT job_id FROM jobs WHERE job_id = ?");
    by_number.Bind(1, number);
    if (by_number.Step()) return number;
    if (job.size() < kMinPrefix) return absl::NotFoundError(Concat("no job ", job));
  }
  if (!IsKeyPrefix(job) || job.size() < kMinPrefix) {
    return absl::InvalidArgumentError(Concat("\"", job, "\" names no job: give its number, or ",
                                             kMinPrefix, " or more hexadecimal digits of its key"));
  }
  return FindByPrefix(db, job);
}

absl::StatusOr<Expression> Compile(Connection& db, const v1::JobFilter& filter,
                                   SweepTest sweep_test) {
  Expression out{"1", {}};
  if (!filter.sweep().empty()) {
    absl::StatusOr<std::int64_t> sweep = FindSweep(db, filter.sweep());
    if (!sweep.ok()) return sweep.status();
    AddSweepTest(*sweep, WantsOwn(filter), sweep_test, out);
  }
  if (filter.states_size() > 0) {
    std::string marks;
    for (const int state : filter.states()) {
      const std::string name = v1::JobState_Name(static_cast<v1::JobState>(state));
      const std::string_view prefix = "JOB_STATE_";
      if (state == v1::JOB_STATE_UNSPECIFIED || name.size() <= prefix.size()) {
        return absl::InvalidArgumentError(Concat("unknown job state ", state));
      }
      marks += Concat(marks.empty() ? "?" : ", ?");
      out.binds.emplace_back(absl::AsciiStrToLower(name.substr(prefix.size())));
    }
    out.sql += Concat(" AND j.state IN (", marks, ")");
  }
  if (filter.jobs_size() > 0) {
    std::string marks;
    for (const std::string& job : filter.jobs()) {
      absl::StatusOr<std::int64_t> id = FindJob(db, job);
      if (!id.ok()) return id.status();
      if (absl::Status shown = CheckShown(db, *id); !WantsOwn(filter) && !shown.ok()) return shown;
      marks += Concat(marks.empty() ? "?" : ", ?");
      out.binds.emplace_back(*id);
    }
    out.sql += Concat(" AND j.job_id IN (", marks, ")");
  }
  if (!filter.where().empty()) {
    absl::StatusOr<Expression> where = CompileWhere(filter.where());
    if (!where.ok()) return where.status();
    out.sql += Concat(" AND ", where->sql);
    out.binds.insert(out.binds.end(), where->binds.begin(), where->binds.end());
  }
  return out;
}

absl::StatusOr<std::vector<JobRange>> RangesFrom(Connection& db, const v1::JobFilter& filter,
                                                 std::int64_t first) {
  const std::vector<JobRange> all = {{first, kEveryJob, SweepTest::kInList}};
  if (filter.sweep().empty()) return all;
  const absl::StatusOr<Numbers> numbers = NumbersOf(db, filter.sweep());
  if (!numbers.ok()) return numbers.status();
  if (first > kEveryJob - numbers->cells || first + numbers->cells <= numbers->first) return all;
  const std::int64_t near = first + numbers->cells;
  return std::vector<JobRange>{{first, near, SweepTest::kLookedUp},
                               {near, kEveryJob, SweepTest::kInList}};
}

absl::Status ForEachJob(Connection& db, const v1::JobFilter& filter, std::int64_t first,
                        const std::function<bool(std::int64_t)>& visit) {
  const absl::StatusOr<std::vector<JobRange>> ranges = RangesFrom(db, filter, first);
  if (!ranges.ok()) return ranges.status();
  for (const JobRange& range : *ranges) {
    const absl::StatusOr<Expression> where = Compile(db, filter, range.test);
    if (!where.ok()) return where.status();
    RawStatement query(db, SelectJobs("j.job_id", filter, *where));
    BindRange(range, *where, query);
    while (query.Step()) {
      if (!visit(query.Integer(0))) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

std::string SelectJobs(std::string_view columns, const v1::JobFilter& filter,
                       const Expression& where) {
  return Concat("SELECT ", columns, " FROM ", JobsOf(filter),
                " AS j WHERE j.job_id >= ? AND j.job_id < ? AND ", where.sql, " ORDER BY j.job_id");
}

void BindRange(const JobRange& range, const Expression& where, RawStatement& query) {
  query.Bind(1, range.first);
  query.Bind(2, range.end);
  query.BindAll(where.binds, 3);
}

absl::StatusOr<int> PageLimit(const v1::Page& page) {
  if (page.limit() == 0) return kDefaultPage;
  if (page.limit() >= 1 && page.limit() <= kMaxPage) return page.limit();
  return absl::InvalidArgumentError(
      Concat("page limit ", page.limit(), " is not from 1 to ", kMaxPage));
}

}  // namespace pelab::db
