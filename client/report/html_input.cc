#include "client/report/html_input.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

class Input {
 public:
  Input(DataSource& source, std::string where) : source_(source), where_(std::move(where)) {}

  absl::Status AddSweep(const std::string& name) {
    PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, source_.Sweep(name));
    const auto same = [&](const v1::Sweep& other) { return other.sweep_id() == sweep.sweep_id(); };
    if (std::any_of(input_.sweeps.begin(), input_.sweeps.end(), same)) return absl::OkStatus();
    v1::JobFilter& filter = filters_.emplace_back();
    filter.set_sweep(Concat(sweep.sweep_id()));
    filter.set_where(where_);
    input_.sweeps.push_back(std::move(sweep));
    PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, source_.Jobs(filter));
    std::set<std::int64_t>& own = own_.emplace_back();
    for (const v1::JobRow& job : jobs) {
      if (owner_.emplace(job.job_id(), own_.size() - 1).second) {
        own.insert(job.job_id());
        rows_.push_back(job);
      }
    }
    templates_.insert(jobs.templates().begin(), jobs.templates().end());
    return absl::OkStatus();
  }

  absl::Status MakeCells() {
    std::sort(rows_.begin(), rows_.end(),
              [](const auto& a, const auto& b) { return a.job_id() < b.job_id(); });
    v1::ListJobsResponse page;
    for (v1::JobRow& row : rows_) *page.add_jobs() = std::move(row);
    for (const auto& [id, spec_template] : templates_) {
      v1::Configuration* configuration = page.add_configurations();
      configuration->set_configuration_id(id);
      configuration->set_spec_template(spec_template);
    }
    input_.jobs.Add(std::move(page));
    PELAB_ASSIGN_OR_RETURN(input_.cells, results::BuildCells(input_.jobs, "test_accuracy", {}));
    return absl::OkStatus();
  }

  // NOT_FOUND: the condition leaves nothing.
  absl::Status NothingMeets() const {
    // A value that one sweep lacks may be in another, so several sweeps get no hint.
    if (filters_.size() == 1) return NoJobMeets(source_, filters_[0], "no job of these sweeps");
    return absl::NotFoundError(Concat("--where: no job of these sweeps meets \"", where_, "\""));
  }
  bool empty() const { return input_.jobs.empty(); }

  absl::Status ReadCurves() {
    for (std::size_t s = 0; s < filters_.size(); ++s) {
      std::int64_t job = -1;
      JobCurve* curve = nullptr;
      PELAB_RETURN_IF_ERROR(source_.ReadCurves(filters_[s], [&](const auto& page) {
        for (const v1::CurveRow& row : page) {
          if (row.job_id() != job) {
            job = row.job_id();
            curve = IsOf(s, job) ? &input_.curves[job] : nullptr;
          }
          if (curve != nullptr) AddEpoch(row, *curve);
        }
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAnalyses() {
    for (std::size_t s = 0; s < filters_.size(); ++s) {
      PELAB_ASSIGN_OR_RETURN(const auto analyses, source_.Analyses(filters_[s], "head_ablation"));
      input_.variants.merge(results::VariantsOf(analyses));
      PELAB_ASSIGN_OR_RETURN(auto heads, source_.HeadAblations(filters_[s]));
      Take(s, heads, input_.heads);
      PELAB_ASSIGN_OR_RETURN(auto deposits, source_.Deposits(filters_[s]));
      Take(s, deposits, input_.deposits);
      PELAB_ASSIGN_OR_RETURN(auto splits, source_.Analyses(filters_[s], "split_accuracy"));
      Take(s, splits, input_.splits);
    }
    return absl::OkStatus();
  }

  absl::Status ReadAttempts() {
    for (std::size_t s = 0; s < filters_.size(); ++s) {
      PELAB_ASSIGN_OR_RETURN(auto attempts, source_.Attempts(filters_[s]));
      Take(s, attempts, input_.attempts);
    }
    return absl::OkStatus();
  }

  // A sheet that this version cannot read is left out: the rest of the report is right without it.
  absl::Status ReadSheets() {
    auto sheets = source_.Sheets();
    if (absl::IsUnimplemented(sheets.status())) return absl::OkStatus();  // an older coordinator
    PELAB_RETURN_IF_ERROR(sheets.status());
    for (auto row = sheets->rbegin(); row != sheets->rend(); ++row) {
      const bool here =
          std::any_of(input_.sweeps.begin(), input_.sweeps.end(), [&](const v1::Sweep& sweep) {
            return row->has_sweep_id() && row->sweep_id() == sweep.sweep_id();
          });
      if (!here) continue;
      PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet, source_.Sheet(Concat(row->sheet_id())));
      auto judged = JudgeRegistered(source_, sheet);
      if (!judged.ok()) continue;
      PELAB_ASSIGN_OR_RETURN(auto rounds, source_.SheetClaims(Concat(row->sheet_id()),
                                                              /*last_round=*/false));
      input_.sheets.push_back({*std::move(judged), std::move(rounds)});
    }
    return absl::OkStatus();
  }

  ReportInput Done() && {
    input_.source = source_.Description();
    return std::move(input_);
  }

 private:
  // A job that several sweeps share belongs to the first of them.
  bool IsOf(std::size_t sweep, std::int64_t job) const { return own_[sweep].count(job) > 0; }

  template <typename Row>
  void Take(std::size_t sweep, std::vector<Row>& from, std::vector<Row>& to) {
    for (Row& row : from) {
      if (IsOf(sweep, row.job_id())) to.push_back(std::move(row));
    }
  }

  static void AddEpoch(const v1::CurveRow& row, JobCurve& curve) {
    const auto at = static_cast<std::size_t>(row.epoch());
    if (at >= curve.test.size()) {
      curve.test.resize(at + 1, std::numeric_limits<double>::quiet_NaN());
      curve.train.resize(at + 1, std::numeric_limits<double>::quiet_NaN());
    }
    curve.test[at] = row.test_accuracy();
    curve.train[at] = row.train_accuracy();
  }

  DataSource& source_;
  const std::string where_;
  ReportInput input_;
  std::vector<v1::JobFilter> filters_;       // by sweep
  std::vector<std::set<std::int64_t>> own_;  // by sweep: the jobs that are read with it
  std::map<std::int64_t, std::size_t> owner_;
  std::vector<v1::JobRow> rows_;
  results::JobList::Templates templates_;
};

}  // namespace

absl::StatusOr<ReportInput> ReadReportInput(DataSource& source,
                                            const std::vector<std::string>& sweeps,
                                            const std::string& where,
                                            const std::function<void(const char*)>& progress) {
  if (sweeps.empty()) return absl::InvalidArgumentError("a report needs at least one sweep");
  Input input(source, where);
  progress("jobs");
  for (const std::string& sweep : sweeps) PELAB_RETURN_IF_ERROR(input.AddSweep(sweep));
  PELAB_RETURN_IF_ERROR(input.MakeCells());
  if (!where.empty() && input.empty()) {
    return input.NothingMeets();
  }
  progress("curves");
  PELAB_RETURN_IF_ERROR(input.ReadCurves());
  progress("head ablations");
  PELAB_RETURN_IF_ERROR(input.ReadAnalyses());
  progress("attempts");
  PELAB_RETURN_IF_ERROR(input.ReadAttempts());
  progress("claim sheets");
  PELAB_RETURN_IF_ERROR(input.ReadSheets());
  return std::move(input).Done();
}

}  // namespace pelab::client
