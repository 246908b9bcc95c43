#include "core/results/comparison.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/results/fields.h"
#include "core/results/shown.h"

namespace pelab::results {
namespace {

using render::Json;
using State = stats::SeedResult::State;

bool IsCompared(const std::string& field, const std::vector<std::string>& compared) {
  return std::any_of(compared.begin(), compared.end(), [&](const std::string& name) {
    // The label of own data, and much else, follows from these fields.
    const bool of_task = name == "task.test" || name == "task.data" || name == "task.file";
    const std::string known = of_task ? "task" : name == "pe_label" ? "pe" : name;
    return field == known || field.starts_with(known + ".");
  });
}

// One side's jobs and their fields.
struct Side {
  explicit Side(const JobList& list) : jobs(list), fields(list) {}
  const JobList& jobs;
  FieldTable fields;
};

using Values = std::map<std::string, std::set<std::string>>;  // by field

// The values of each field on one side, by task.
std::map<std::string, Values> ValuesByTask(const Side& side) {
  std::map<std::string, Values> all;
  for (const Fields* fields : side.fields.distinct()) {
    Values& values = all[ValueOf(*fields, "task")];
    for (const auto& [name, value] : *fields) values[name].insert(value);
  }
  return all;
}

const std::set<std::string>& Of(const Values& values, const std::string& name) {
  static const auto& none = *new std::set<std::string>{"-"};
  const auto found = values.find(name);
  return found == values.end() ? none : found->second;
}

// Fields that have a single value on each side within every task that both sides have. In some
// task, the two values differ.
std::map<std::string, std::string> FindConfounders(const Side& a, const Side& b,
                                                   const std::vector<std::string>& compared) {
  const auto of_a = ValuesByTask(a), of_b = ValuesByTask(b);
  std::map<std::string, std::string> found;
  std::set<std::string> mixed;
  for (const auto& [task, values_a] : of_a) {
    const auto other = of_b.find(task);
    if (other == of_b.end()) continue;
    std::set<std::string> names;
    for (const auto& [name, values] : values_a) names.insert(name);
    for (const auto& [name, values] : other->second) names.insert(name);
    for (const std::string& name : names) {
      const auto &in_a = Of(values_a, name), &in_b = Of(other->second, name);
      if (in_a.size() > 1 || in_b.size() > 1) {
        mixed.insert(name);
      } else if (in_a != in_b && !IsCompared(name, compared)) {
        found.emplace(name, Concat(name, ": ", *in_a.begin(), " against ", *in_b.begin()));
      }
    }
  }
  for (const std::string& name : mixed) found.erase(name);
  return found;
}

// The fields that partners share, without the seed.
Fields Common(const Fields& all, const std::vector<std::string>& compared,
              const std::map<std::string, std::string>& confounders) {
  Fields common = all;
  std::erase_if(common, [&](const auto& field) {
    return IsCompared(field.first, compared) || confounders.count(field.first) > 0;
  });
  return common;
}

struct Place {
  std::string identity;
  std::int64_t seed = 0;
  auto operator<=>(const Place&) const =
      default;  // NOLINT(modernize-use-nullptr): there is no pointer
};

// The fields in which two jobs differ. The label of an encoding or of data follows from its
// fields, so it is left out where the names are the same and a field says what differs.
std::set<std::string> DifferingFields(const Fields& one, const Fields& other) {
  std::set<std::string> differing = MixedFields({&one, &other});
  for (const std::string label : {"pe", "task"}) {
    const std::string name = label + ".name";
    const auto field = differing.lower_bound(label + ".");
    const bool said = field != differing.end() && field->starts_with(label + ".");
    if (said && ValueOf(one, name) == ValueOf(other, name)) differing.erase(label);
  }
  return differing;
}

class Pairing {
 public:
  Pairing(const Side& a, const Side& b, const std::vector<std::string>& compared,
          const std::map<std::string, std::string>& confounders)
      : compared_(compared), confounders_(confounders), a_(a), b_(b) {}

  // Pairs of row numbers (job of a, job of b), in the order of a.
  absl::StatusOr<std::vector<std::pair<std::size_t, std::size_t>>> Pairs() {
    std::map<Place, std::size_t> partner;
    for (std::size_t i = 0; i < b_.jobs.size(); ++i) {
      const auto [there, is_new] = partner.emplace(PlaceOf(b_, i), i);
      if (!is_new) return Several(b_, there->second, i);
    }
    std::map<Place, std::size_t> own;
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t i = 0; i < a_.jobs.size(); ++i) {
      const Place place = PlaceOf(a_, i);
      const auto [there, is_new] = own.emplace(place, i);
      if (!is_new) return Several(a_, there->second, i);
      const auto found = partner.find(place);
      if (found != partner.end()) pairs.emplace_back(i, found->second);
    }
    return pairs;
  }

 private:
  Place PlaceOf(const Side& side, std::size_t job) {
    const Fields* fields = &side.fields.Of(job);
    const auto [known, is_new] = identities_.emplace(fields, "");
    if (is_new) known->second = IdentityOf(Common(*fields, compared_, confounders_));
    return {known->second, side.jobs.rows()[job].seed()};
  }

  absl::Status Several(const Side& side, std::size_t one, std::size_t other) const {
    const auto differing = DifferingFields(side.fields.Of(one), side.fields.Of(other));
    return absl::InvalidArgumentError(
        Concat("jobs ", side.jobs.rows()[one].job_id(), " and ", side.jobs.rows()[other].job_id(),
               " of one side have the same seed and differ only in ", Join(differing, ", "),
               ": add a condition, so that a job has one partner"));
  }

  const std::vector<std::string>& compared_;
  const std::map<std::string, std::string>& confounders_;
  const Side& a_;
  const Side& b_;
  std::map<const Fields*, std::string> identities_;
};

stats::SeedResult ResultOf(const stats::SeedResult& a, const stats::SeedResult& b) {
  if (a.state == State::kFailed || b.state == State::kFailed) return {State::kFailed, 0};
  if (a.state == State::kCancelled || b.state == State::kCancelled) return {State::kCancelled, 0};
  if (a.state == State::kMissing || b.state == State::kMissing) return {State::kMissing, 0};
  if (a.state == State::kCensored || b.state == State::kCensored) return {State::kCensored, 0};
  return {State::kDone, a.value - b.value};
}

// The results of a group's pairs: of each side, and of their differences.
struct PairResults {
  std::vector<stats::SeedResult> a, b, differences;
};

PairResults ResultsOf(const Metric& metric, const MetricValues* values, PairGroup& group) {
  PairResults results;
  std::vector<double> done;
  for (Pair& pair : group.pairs) {
    const stats::SeedResult a = results::ResultOf(pair.a, metric, values);
    const stats::SeedResult b = results::ResultOf(pair.b, metric, values);
    results.differences.push_back(ResultOf(a, b));
    const State both = results.differences.back().state;
    if (both == State::kCensored) {
      results.a.push_back(a);
      results.b.push_back(b);
    }
    if (both != State::kDone) continue;
    pair.difference = results.differences.back().value;
    done.push_back(*pair.difference);
    results.a.push_back(a);
    results.b.push_back(b);
  }
  // A test of only the seeds that reached the target would be about the seeds that did well.
  const bool some_censored =
      std::any_of(results.differences.begin(), results.differences.end(),
                  [](const auto& difference) { return difference.state == State::kCensored; });
  if (!some_censored) group.test = stats::PairedT(done);
  return results;
}

void Summarize(const Metric& metric, const MetricValues* values, stats::IntervalKind interval,
               std::vector<PairGroup>& groups) {
  std::vector<std::vector<stats::SeedResult>> a, b, differences;
  for (PairGroup& group : groups) {
    PairResults results = ResultsOf(metric, values, group);
    a.push_back(std::move(results.a));
    b.push_back(std::move(results.b));
    differences.push_back(std::move(results.differences));
  }
  const auto of_a = stats::SummarizeAll(a, interval);
  const auto of_b = stats::SummarizeAll(b, interval);
  auto of_differences = stats::SummarizeAll(differences, interval);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].a = of_a[i];
    groups[i].b = of_b[i];
    if (IsShare(metric)) ClipShare(of_differences[i], /*least=*/-1);
    groups[i].difference = of_differences[i];
  }
}

// The results of example_correctness for a job.
struct Judged {
  std::int64_t total = 0;
  std::string right;  // one bit per example, as hexadecimal digits
};
using JudgedByKind = std::map<std::pair<int, std::string>, Judged>;

std::map<std::int64_t, JudgedByKind> JudgedByJob(const std::vector<v1::AnalysisRow>& analyses) {
  std::map<std::int64_t, JudgedByKind> jobs;
  for (const v1::AnalysisRow& row : analyses) {
    if (row.name() != "example_correctness") continue;
    const Json result = ParseJson<Json>(row.result_json());
    if (!result.is_object() || !result.contains("right") || !result["right"].is_string()) continue;
    jobs[row.job_id()][{row.version(), row.parameters_json()}] = {row.total(), result["right"]};
  }
  return jobs;
}

unsigned Digit(char c) {
  return c >= 'a' ? static_cast<unsigned>(c - 'a') + 10 : static_cast<unsigned>(c - '0');
}

std::optional<ExampleCounts> CountOf(const JudgedByKind& a, const JudgedByKind& b) {
  for (const auto& [kind, of_a] : a) {
    const auto found = b.find(kind);
    if (found == b.end()) continue;
    const Judged& of_b = found->second;
    if (of_a.total != of_b.total || of_a.right.size() != of_b.right.size()) continue;
    ExampleCounts counts;
    for (std::size_t i = 0; i < of_a.right.size(); ++i) {
      const unsigned bits_a = Digit(of_a.right[i]), bits_b = Digit(of_b.right[i]);
      counts.only_a += std::popcount(bits_a & ~bits_b & 15u);
      counts.only_b += std::popcount(bits_b & ~bits_a & 15u);
    }
    return counts;
  }
  return std::nullopt;
}

Json ExamplesJson(const std::optional<ExampleCounts>& examples) {
  if (!examples) return nullptr;
  return {{"only_a", examples->only_a}, {"only_b", examples->only_b}, {"p", examples->p()}};
}

}  // namespace

absl::StatusOr<Comparison> Compare(const JobList& a, const JobList& b,
                                   const std::vector<std::string>& compared, const Metric& metric,
                                   const MetricValues* values, stats::IntervalKind interval) {
  std::set<std::int64_t> in_a;
  for (const v1::JobRow& job : a) in_a.insert(job.job_id());
  for (const v1::JobRow& job : b) {
    if (in_a.count(job.job_id()) > 0) {
      return absl::InvalidArgumentError(Concat(
          "job ", job.job_id(), " is on both sides: the two conditions must exclude each other"));
    }
  }
  const Side side_a(a), side_b(b);
  const auto confounders = FindConfounders(side_a, side_b, compared);
  Pairing pairing(side_a, side_b, compared, confounders);
  auto pairs = pairing.Pairs();
  if (!pairs.ok()) return pairs.status();

  Comparison out{.metric = metric, .interval = interval};
  for (const auto& [name, text] : confounders) out.confounders.push_back(text);
  out.unpaired_a = a.size() - pairs->size();
  out.unpaired_b = b.size() - pairs->size();
  std::map<const Fields*, Fields> common;  // fields of a's paired jobs
  std::vector<const Fields*> all;
  for (const auto& [i, j] : *pairs) {
    const Fields* fields = &side_a.fields.Of(i);
    const auto [known, is_new] = common.emplace(fields, Fields());
    if (!is_new) continue;
    known->second = Common(*fields, compared, confounders);
    all.push_back(&known->second);
  }
  if (!all.empty()) out.columns = TellingColumns(all);
  std::erase_if(out.columns, [&](const std::string& name) { return IsCompared(name, compared); });
  std::map<std::string, std::size_t> numbers;
  for (const auto& [i, j] : *pairs) {
    const Fields& fields = common.at(&side_a.fields.Of(i));
    const auto [number, is_new] = numbers.emplace(IdentityOf(fields), out.groups.size());
    if (is_new) {
      PairGroup& group = out.groups.emplace_back();
      for (const std::string& column : out.columns) group.values.push_back(ValueOf(fields, column));
    }
    out.groups[number->second].pairs.push_back({a.rows()[i], b.rows()[j], std::nullopt});
  }
  ShowShortHashes(out.groups);
  Summarize(metric, values, interval, out.groups);
  return out;
}

std::vector<std::string> ShownConfounders(const Comparison& comparison) {
  ShortHashes hashes;
  for (const std::string& text : comparison.confounders) hashes.Add(text);
  std::vector<std::string> shown;
  for (const std::string& text : comparison.confounders) shown.push_back(hashes.In(text));
  return shown;
}

DivergedPairs DivergedOf(const PairGroup& group) {
  DivergedPairs diverged;
  for (const Pair& pair : group.pairs) {
    diverged.a += pair.a.diverged() ? 1 : 0;
    diverged.b += pair.b.diverged() ? 1 : 0;
  }
  return diverged;
}

std::string DivergedText(const Comparison& comparison, const std::string& name_a,
                         const std::string& name_b) {
  DivergedPairs all;
  std::size_t pairs = 0;
  for (const PairGroup& group : comparison.groups) {
    const DivergedPairs diverged = DivergedOf(group);
    all.a += diverged.a;
    all.b += diverged.b;
    pairs += group.pairs.size();
  }
  std::vector<std::string> parts;
  if (all.a > 0) parts.push_back(Concat(all.a, " of ", pairs, " jobs of ", name_a));
  if (all.b > 0) parts.push_back(Concat(all.b, " of ", pairs, " jobs of ", name_b));
  return parts.empty() ? "" : "diverged: " + Join(parts, ", ");
}

void CompareExamples(const std::vector<v1::AnalysisRow>& analyses, Comparison& comparison) {
  // Examples of another task or of other data are different examples.
  for (const std::string& other : comparison.confounders) {
    if (other.starts_with("task")) return;
  }
  const auto jobs = JudgedByJob(analyses);
  for (PairGroup& group : comparison.groups) {
    for (Pair& pair : group.pairs) {
      const auto a = jobs.find(pair.a.job_id()), b = jobs.find(pair.b.job_id());
      if (a == jobs.end() || b == jobs.end()) continue;
      pair.examples = CountOf(a->second, b->second);
    }
  }
}

render::Json ToJson(const Comparison& comparison, const PairGroup& group) {
  Json json = Json::object();
  for (std::size_t i = 0; i < comparison.columns.size(); ++i)
    json[comparison.columns[i]] = group.values[i];
  json["metric"] = comparison.metric.name;
  json["n"] = group.difference.n;
  json["missing"] = group.difference.missing;
  json["failed"] = group.difference.failed;
  json["complete"] = group.difference.complete();
  json["mean_a"] = render::OrNull(group.a.mean);
  json["mean_b"] = render::OrNull(group.b.mean);
  json["difference"] = render::OrNull(group.difference.mean);
  json["sd"] = render::OrNull(group.difference.sd);
  json["interval"] = IntervalName(comparison.interval);
  json["low"] = render::OrNull(group.difference.low);
  json["high"] = render::OrNull(group.difference.high);
  json["t"] = group.test ? Json(group.test->t) : Json(nullptr);
  json["p"] = group.test ? Json(group.test->p) : Json(nullptr);
  json["cancelled"] = group.difference.cancelled;
  json["not_reached"] = group.difference.censored;
  json["pairs"] = Json::array();
  for (const Pair& pair : group.pairs) {
    json["pairs"].push_back({{"seed", pair.a.seed()},
                             {"job_a", pair.a.job_id()},
                             {"job_b", pair.b.job_id()},
                             {"difference", render::OrNull(pair.difference)},
                             {"mcnemar", ExamplesJson(pair.examples)}});
  }
  return json;
}

std::vector<std::string> ComparisonColumns(const Comparison& comparison) {
  std::vector<std::string> columns = comparison.columns;
  for (const char* name :
       {"metric", "n", "missing", "failed", "complete", "mean_a", "mean_b", "difference", "sd",
        "interval", "low", "high", "t", "p", "cancelled", "not_reached"}) {
    columns.emplace_back(name);
  }
  return columns;
}

}  // namespace pelab::results
