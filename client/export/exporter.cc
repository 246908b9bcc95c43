#include "client/export/exporter.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/export/own_names.h"
#include "client/export/readme.h"
#include "client/export/tables.h"
#include "client/limits.h"
#include "client/terminal/show.h"
#include "client/terminal/unknown_values.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/cells.h"
#include "core/results/fields.h"
#include "core/results/names.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using render::Json;

// The names of the files that every export has.
std::vector<std::string> OwnNames() {
  std::vector<std::string> names = {"README.md", "SHA256SUMS", "provenance.json", "specs.jsonl",
                                    "sweep.yaml"};
  for (const ExportTable& table :
       {JobsTable({}), SummaryTable({}), CurvesTable(), HeadAblationsTable(), DepositsTable(),
        AnalysesTable(), AttemptsTable()}) {
    names.push_back(table.file);
  }
  return names;
}

class Exporter {
 public:
  Exporter(DataSource& source, ExportFolder& folder,
           const std::function<void(const std::string&)>& progress)
      : source_(source), folder_(folder), progress_(progress) {}

  absl::Status Write(const v1::Sweep& sweep, const std::string& where) {
    facts_.sweep = sweep;
    facts_.where = where;
    facts_.version = PELAB_VERSION;
    facts_.exported_at_ms = absl::ToUnixMillis(absl::Now());
    filter_.set_sweep(Concat(sweep.sweep_id()));
    filter_.set_where(where);
    PELAB_ASSIGN_OR_RETURN(jobs_, source_.Jobs(filter_));
    if (!where.empty() && jobs_.empty()) {
      return NoJobMeets(source_, filter_, "no job of the sweep");
    }
    for (const v1::JobRow& job : jobs_) Note(job);
    PELAB_RETURN_IF_ERROR(WriteDocument());
    PELAB_RETURN_IF_ERROR(WriteSpecs());
    PELAB_RETURN_IF_ERROR(WriteJobs());
    PELAB_RETURN_IF_ERROR(WriteCurves());
    PELAB_RETURN_IF_ERROR(WriteOfJobs(HeadAblationsTable(), [this](const v1::JobFilter& some) {
      return source_.HeadAblations(some);
    }));
    PELAB_RETURN_IF_ERROR(WriteOfJobs(
        DepositsTable(), [this](const v1::JobFilter& some) { return source_.Deposits(some); }));
    PELAB_RETURN_IF_ERROR(WriteOfJobs(
        AnalysesTable(), [this](const v1::JobFilter& some) { return source_.Analyses(some, ""); }));
    PELAB_RETURN_IF_ERROR(WriteOfJobs(AttemptsTable(), [this](const v1::JobFilter& some) {
      auto attempts = source_.Attempts(some);
      if (attempts.ok()) std::for_each(attempts->begin(), attempts->end(), NoteAttempt());
      return attempts;
    }));
    PELAB_RETURN_IF_ERROR(folder_.Write("provenance.json", render::ToJson(ProvenanceOf(facts_))));
    return folder_.Write("README.md", ReadmeOf(facts_, tables_, folder_.files()));
  }

  const ExportFacts& facts() const { return facts_; }

 private:
  void Note(const v1::JobRow& job) {
    facts_.states[results::StateName(job.state())] += 1;
    if (job.state() == v1::JOB_STATE_SUCCEEDED || job.trained()) {
      facts_.trained += 1;
    } else if (facts_.unfinished.size() < limits::kExportNamed) {
      facts_.unfinished.push_back(Concat("job ", job.job_id(), ", ", JobLabel(job), ": ",
                                         StateText(job), ", ", job.epochs_done(), " of ",
                                         job.epochs(), " epochs"));
    }
  }

  // Collects the environments and times that attempts report.
  std::function<void(const v1::AttemptRow&)> NoteAttempt() {
    return [this](const v1::AttemptRow& attempt) {
      std::int64_t& first = facts_.first_started_at_ms;
      if (first == 0 || attempt.started_at_ms() < first) first = attempt.started_at_ms();
      facts_.last_ended_at_ms = std::max(facts_.last_ended_at_ms, attempt.ended_at_ms());
      const Json said = ParseJson<Json>(attempt.environment_json());
      if (!said.is_object()) return;
      for (const std::string& member : EnvironmentMembers()) {
        const auto found = said.find(member);
        if (found == said.end()) continue;
        facts_
            .environment[member][found->is_string() ? found->get<std::string>() : found->dump()] +=
            1;
      }
    };
  }

  absl::Status BeginTable(ExportTable table) {
    tables_.push_back(std::move(table));
    PELAB_RETURN_IF_ERROR(folder_.Begin(tables_.back().file));
    return folder_.Append(render::CsvHeader(tables_.back().Names()));
  }
  absl::Status AppendRows(const Json& rows) {
    const std::vector<std::string> names = tables_.back().Names();
    std::string lines;
    for (const Json& row : rows) render::AppendCsv(names, row, lines);
    folder_.CountRows(rows.size());
    return folder_.Append(lines);
  }
  absl::Status EndTable() {
    PELAB_RETURN_IF_ERROR(folder_.End());
    progress_(Concat(folder_.files().back().name, ": ", folder_.files().back().rows, " rows"));
    return absl::OkStatus();
  }

  // sweep.yaml, and the files of own encodings and data where it looks for them.
  absl::Status WriteDocument() {
    const ExportedDocument document = PlaceOwnFiles(facts_.sweep, OwnNames());
    PELAB_RETURN_IF_ERROR(folder_.Write("sweep.yaml", document.text));
    facts_.own_files = document.files;
    std::set<std::string> written;
    for (const ExportedFile& file : document.files) {
      if (!written.insert(file.name).second) continue;
      PELAB_RETURN_IF_ERROR(folder_.Begin(file.name));
      const absl::Status read = source_.ReadArtifact(
          file.sha256, [this](const std::string& piece) { return folder_.Append(piece); });
      if (!read.ok())
        return Annotate(read, Concat("the file ", file.path, " that the sweep names"));
      PELAB_RETURN_IF_ERROR(folder_.End());
    }
    return absl::OkStatus();
  }

  absl::Status WriteSpecs() {
    PELAB_RETURN_IF_ERROR(folder_.Begin("specs.jsonl"));
    for (const v1::JobRow& job : jobs_) {
      PELAB_RETURN_IF_ERROR(
          folder_.Append(Concat("{\"job_id\":", job.job_id(), ",\"key\":\"", job.key(),
                                "\",\"spec\":", jobs_.SpecOf(job), "}\n")));
    }
    return folder_.End();
  }

  absl::Status WriteJobs() {
    PELAB_ASSIGN_OR_RETURN(const results::CellTable cells,
                           results::BuildCells(jobs_, "test_accuracy", {}));
    std::vector<std::string> fields;  // fields that differ between jobs and have no column yet
    for (const std::string& name : cells.columns) {
      if (name != "pe" && name != "task" && name != "protocol") fields.push_back(name);
    }
    const results::FieldTable values(jobs_);
    PELAB_RETURN_IF_ERROR(BeginTable(JobsTable(fields)));
    Json rows = Json::array();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Json row = results::ToJson(jobs_.rows()[i], "");
      for (const std::string& name : fields) row[name] = values.StoredValue(i, name);
      rows.push_back(std::move(row));
      if (rows.size() == limits::kExportRows || i + 1 == jobs_.size()) {
        PELAB_RETURN_IF_ERROR(AppendRows(rows));
        rows = Json::array();
      }
    }
    PELAB_RETURN_IF_ERROR(EndTable());
    PELAB_RETURN_IF_ERROR(BeginTable(SummaryTable(cells.columns)));
    for (const results::Cell& cell : cells.cells) rows.push_back(results::ToJson(cells, cell));
    PELAB_RETURN_IF_ERROR(AppendRows(rows));
    return EndTable();
  }

  // Writes only jobs that are in jobs.csv; others may have been added since.
  absl::Status WriteCurves() {
    std::unordered_set<std::int64_t> known;
    for (const v1::JobRow& job : jobs_) known.insert(job.job_id());
    PELAB_RETURN_IF_ERROR(BeginTable(CurvesTable()));
    std::uint64_t written = 0;
    PELAB_RETURN_IF_ERROR(source_.ReadCurves(filter_, [&](const DataSource::CurvePage& page) {
      std::string text;
      std::uint64_t rows = 0;
      for (const v1::CurveRow& row : page) {
        if (!known.contains(row.job_id())) continue;
        results::AppendCsv(row, text);
        ++rows;
      }
      folder_.CountRows(rows);
      if ((written + rows) / limits::kExportProgressRows != written / limits::kExportProgressRows) {
        progress_(Concat("curves.csv: ", written + rows, " rows so far"));
      }
      written += rows;
      return folder_.Append(text);
    }));
    return EndTable();
  }

  // Calls `read(filter) -> StatusOr<vector<Row>>` for some jobs at a time.
  template <typename Read>
  absl::Status WriteOfJobs(ExportTable table, const Read& read) {
    PELAB_RETURN_IF_ERROR(BeginTable(std::move(table)));
    const std::vector<v1::JobRow>& jobs = jobs_.rows();
    for (std::size_t at = 0; at < jobs.size(); at += limits::kExportJobs) {
      v1::JobFilter some;
      for (std::size_t i = at; i < std::min(at + limits::kExportJobs, jobs.size()); ++i) {
        some.add_jobs(Concat(jobs[i].job_id()));
      }
      PELAB_ASSIGN_OR_RETURN(const auto rows, read(some));
      PELAB_RETURN_IF_ERROR(AppendRows(results::ToJsonArray(rows)));
    }
    return EndTable();
  }

  DataSource& source_;
  ExportFolder& folder_;
  const std::function<void(const std::string&)>& progress_;
  v1::JobFilter filter_;
  results::JobList jobs_;
  ExportFacts facts_;
  std::vector<ExportTable> tables_;
};

}  // namespace

absl::StatusOr<ExportReport> ExportSweep(DataSource& source, const std::string& sweep,
                                         const std::string& where, const std::string& path,
                                         const std::function<void(const std::string&)>& progress) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep found, source.Sweep(sweep));
  PELAB_ASSIGN_OR_RETURN(const auto folder, ExportFolder::Create(path));
  Exporter exporter(source, *folder, progress);
  PELAB_RETURN_IF_ERROR(exporter.Write(found, where));
  PELAB_RETURN_IF_ERROR(folder->Publish());
  return ExportReport{.sweep = found,
                      .jobs = exporter.facts().jobs(),
                      .trained = exporter.facts().trained,
                      .files = folder->files()};
}

}  // namespace pelab::client
