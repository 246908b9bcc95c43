#include "client/report/claim_cells.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/json_text.h"
#include "core/catalog/catalog.h"
#include "core/results/cells.h"
#include "core/stats/deposit.h"
#include "core/stats/seeds.h"

namespace pelab::client::report {
namespace {

using render::Json;

constexpr char kPartial[] = "partial_rope";

// The analysis chosen for one job and ablation: the one with the most examples. Analyses without a
// stored chance accuracy are chosen last.
struct Chosen {
  std::tuple<bool, std::int64_t, std::int64_t> rank;
  Indices indices;
};
using JobIndices = std::unordered_map<std::int64_t, std::map<Ablation, Chosen>>;

JobIndices IndicesOf(const ReportInput& input) {
  JobIndices jobs;
  std::set<std::int64_t> seen;
  std::map<std::int64_t, Chosen*> by_analysis;
  for (const v1::HeadAblationRow& row : input.heads) {
    if (!seen.insert(row.analysis_id()).second) continue;
    const Ablation ablation{row.method(), row.hygiene(), row.split(), row.target()};
    Chosen& chosen = jobs[row.job_id()][ablation];
    const std::tuple rank(row.has_chance(), row.total(), row.analysis_id());
    if (std::get<2>(chosen.rank) != 0) {
      if (rank < chosen.rank) continue;
      by_analysis.erase(std::get<2>(chosen.rank));
    }
    chosen = {rank, {}};
    chosen.indices.defined =
        row.has_chance() && stats::StandsOut(row.intact_correct(), row.total(), row.chance());
    by_analysis[row.analysis_id()] = &chosen;
  }
  for (const v1::DepositRow& row : input.deposits) {
    const auto found = by_analysis.find(row.analysis_id());
    if (found == by_analysis.end() || !found->second->indices.defined) continue;
    Indices& indices = found->second->indices;
    if (row.has_layer()) {
      if (row.deposit()) indices.layers.insert(row.layer());
      continue;
    }
    indices.max_drop = row.has_max_drop() ? row.max_drop() : 0;
    if (row.has_top_layer()) indices.top_layer = row.top_layer();
  }
  return jobs;
}

void AddJob(const ReportInput& input, const JobIndices& indices, const v1::JobRow& job,
            ClaimCell& cell) {
  if (!(job.trained() || job.state() == v1::JOB_STATE_SUCCEEDED) || !job.has_test_accuracy())
    return;
  const std::int64_t seed = job.seed();
  cell.test[seed] = job.test_accuracy();
  if (job.has_train_accuracy()) {
    cell.train[seed] = job.train_accuracy();
    cell.gap[seed] = job.train_accuracy() - job.test_accuracy();
  }
  const auto curve = input.curves.find(job.job_id());
  if (curve != input.curves.end()) cell.speed[seed] = stats::Mean(curve->second.test);
  const auto found = indices.find(job.job_id());
  if (found == indices.end()) return;
  for (const auto& [ablation, chosen] : found->second)
    cell.indices[ablation][seed] = chosen.indices;
}

}  // namespace

Json ClaimCell::Field(const std::string& name) const {
  const Json* at = &spec;
  std::size_t from = 0;
  for (;;) {
    const std::size_t dot = name.find('.', from);
    const std::string part = name.substr(from, dot - from);
    if (!at->is_object() || !at->contains(part)) return nullptr;
    at = &(*at)[part];
    if (dot == std::string::npos) return *at;
    from = dot + 1;
  }
}

const std::map<std::int64_t, Indices>* ClaimCell::OwnIndices() const {
  const bool published = protocol == "published";
  const bool slices = published && Field("pe.name") == "mla";
  const Ablation wanted{"zero", published ? "authors" : "clean", published ? "all" : "test",
                        slices ? "authors" : "head"};
  const auto fit = [&](const Ablation& have) {
    return std::tuple(have.method == wanted.method, have.hygiene == wanted.hygiene,
                      have.split == wanted.split, have.target == wanted.target);
  };
  const auto best =
      std::max_element(indices.begin(), indices.end(),
                       [&](const auto& a, const auto& b) { return fit(a.first) < fit(b.first); });
  return best == indices.end() ? nullptr : &best->second;
}

const std::map<std::int64_t, Indices>* ClaimCell::TrueHeads() const {
  const auto clean = indices.find({"zero", "clean", "test", "head"});
  if (clean != indices.end()) return &clean->second;
  for (const auto& [ablation, found] : indices) {
    if (ablation.method == "zero" && ablation.target == "head") return &found;
  }
  return nullptr;
}

std::vector<ClaimCell> ClaimCells(const ReportInput& input) {
  const JobIndices indices = IndicesOf(input);
  std::vector<ClaimCell> cells;
  std::map<std::tuple<std::string, std::string, std::string>, int> labels;
  for (const results::Cell& its : input.cells.cells) {
    const v1::JobRow& first = its.jobs.front();
    if (catalog::FindProtocol(first.protocol()) == nullptr) continue;
    ClaimCell cell{.protocol = first.protocol(),
                   .task = first.task(),
                   .pe_label = first.pe_label(),
                   .spec = ParseJson<Json>(input.jobs.SpecOf(first))};
    for (const v1::JobRow& job : its.jobs) AddJob(input, indices, job, cell);
    ++labels[{cell.protocol, cell.task, cell.pe_label}];
    cells.push_back(std::move(cell));
  }
  std::erase_if(cells, [&](const ClaimCell& cell) {
    return labels[{cell.protocol, cell.task, cell.pe_label}] > 1 &&
           cell.Field("pe.name") != kPartial;
  });
  return cells;
}

}  // namespace pelab::client::report
