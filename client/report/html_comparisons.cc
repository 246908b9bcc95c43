// Compares the encodings of a report with one of them, paired by seed, and says how fast each one
// learns.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/base/strings.h"
#include "core/results/comparison.h"
#include "core/stats/seeds.h"

namespace pelab::client::report {
namespace {

using render::Json;

constexpr double kHalf = 0.5;

// An encoding with its own settings: "partial_rope(heads=2)".
struct Encoding {
  std::string name;
  std::vector<v1::JobRow> jobs;
};

std::string EncodingName(const CellName& name) {
  if (name.own.empty()) return name.encoding;
  return name.own.starts_with(name.encoding) ? name.own : Concat(name.encoding, " ", name.own);
}

std::vector<Encoding> EncodingsOf(const ReportInput& input) {
  std::vector<Encoding> encodings;
  for (const results::Cell& cell : input.cells.cells) {
    const std::string name = EncodingName(NameOf(input.cells, cell));
    auto found = std::find_if(encodings.begin(), encodings.end(),
                              [&](const Encoding& known) { return known.name == name; });
    if (found == encodings.end()) found = encodings.insert(encodings.end(), {name, {}});
    found->jobs.insert(found->jobs.end(), cell.jobs.begin(), cell.jobs.end());
  }
  return encodings;
}

// Pairs the jobs of both encodings by task and protocol. A protocol may set fields by encoding;
// such fields differ from protocol to protocol, but they should not prevent a comparison. If the
// baseline has no job under the protocol, its jobs of all protocols are used.
using Rows = std::vector<v1::JobRow>;
std::vector<std::pair<Rows, Rows>> Sides(const Encoding& encoding, const Encoding& baseline) {
  std::map<std::pair<std::string, std::string>, std::pair<Rows, Rows>> sides;
  for (const v1::JobRow& job : encoding.jobs) {
    sides[{job.task(), job.protocol()}].first.push_back(job);
  }
  for (auto& [group, pair] : sides) {
    const auto& [task, protocol] = group;
    for (const bool any_protocol : {false, true}) {
      if (!pair.second.empty()) break;
      for (const v1::JobRow& job : baseline.jobs) {
        const bool same = any_protocol || job.protocol() == protocol;
        if (job.task() == task && same) pair.second.push_back(job);
      }
    }
  }
  std::vector<std::pair<Rows, Rows>> all;
  all.reserve(sides.size());
  for (auto& [group, pair] : sides) all.push_back(std::move(pair));
  return all;
}

// The rows with their specs filled in; rows of a job list come without them.
results::JobList ListOf(const ReportInput& input, const std::vector<v1::JobRow>& rows) {
  std::vector<v1::JobRow> whole = rows;
  for (v1::JobRow& row : whole) row.set_spec_json(input.jobs.SpecOf(row));
  return results::JobList(std::move(whole));
}

Json RowOf(const Encoding& encoding, const results::Comparison& comparison,
           const results::PairGroup& group) {
  const v1::JobRow& job = group.pairs.front().a;
  const results::DivergedPairs diverged = results::DivergedOf(group);
  Json values = Json::object();
  for (std::size_t i = 0; i < comparison.columns.size(); ++i) {
    values[comparison.columns[i]] = group.shown[i];
  }
  return {{"encoding", encoding.name},
          {"task", job.task()},
          {"protocol", job.protocol()},
          {"values", std::move(values)},
          {"mean", render::OrNull(group.a.mean)},
          {"baseline_mean", render::OrNull(group.b.mean)},
          {"difference", render::OrNull(group.difference.mean)},
          {"low", render::OrNull(group.difference.low)},
          {"high", render::OrNull(group.difference.high)},
          {"p", group.test ? Json(group.test->p) : Json(nullptr)},
          {"n", group.difference.n},
          {"of", group.pairs.size()},
          {"diverged", diverged.a},
          {"baseline_diverged", diverged.b},
          {"confounders", results::ShownConfounders(comparison)}};
}

// The first epoch, from 0, with a test accuracy of at least `kHalf`; censored at the last epoch if
// there is none.
stats::SeedResult EpochsToHalf(const JobCurve& curve) {
  using State = stats::SeedResult::State;
  const auto found = std::find_if(curve.test.begin(), curve.test.end(),
                                  [](double accuracy) { return accuracy >= kHalf; });
  const auto epoch = static_cast<double>(found - curve.test.begin());
  if (found == curve.test.end()) return {State::kCensored, epoch - 1};
  return {State::kDone, epoch};
}

}  // namespace

Json Comparisons(const ReportInput& input) {
  const std::vector<Encoding> encodings = EncodingsOf(input);
  if (encodings.size() < 2) return {{"baseline", nullptr}, {"rows", Json::array()}};
  auto baseline = std::find_if(encodings.begin(), encodings.end(),
                               [](const Encoding& known) { return known.name == "rope"; });
  if (baseline == encodings.end()) baseline = encodings.begin();
  Json rows = Json::array(), without = Json::array();
  for (const Encoding& encoding : encodings) {
    if (&encoding == &*baseline) continue;
    std::string why =
        "no pairs: no two jobs have the same seed and differ only in the compared fields";
    bool found = false;
    for (const auto& [own, theirs] : Sides(encoding, *baseline)) {
      const auto comparison =
          results::Compare(ListOf(input, own), ListOf(input, theirs), {"pe"}, input.cells.metric,
                           nullptr, stats::IntervalKind::kStudentT);
      if (!comparison.ok()) why = std::string(comparison.status().message());
      if (!comparison.ok() || comparison->groups.empty()) continue;
      found = true;
      for (const results::PairGroup& group : comparison->groups) {
        rows.push_back(RowOf(encoding, *comparison, group));
      }
    }
    if (!found) without.push_back({{"encoding", encoding.name}, {"why", why}});
  }
  return {{"baseline", baseline->name}, {"rows", std::move(rows)}, {"without", std::move(without)}};
}

Json EpochsToHalf(const ReportInput& input) {
  Json rows = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    std::vector<stats::SeedResult> seeds;
    for (const v1::JobRow& job : input.cells.cells[c].jobs) {
      const auto curve = input.curves.find(job.job_id());
      if (IsDone(job) && curve != input.curves.end() && !curve->second.test.empty()) {
        seeds.push_back(EpochsToHalf(curve->second));
      }
    }
    if (seeds.empty()) continue;
    const stats::SeedSummary summary = stats::Summarize(seeds);
    rows.push_back({{"cell", c},
                    {"median", render::OrNull(summary.median)},
                    {"reached", summary.n},
                    {"of", seeds.size()}});
  }
  return rows;
}

}  // namespace pelab::client::report
