#include "client/import/recorded_runs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "client/import/recording.h"
#include "client/limits.h"
#include "core/base/json_text.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

constexpr char kJob[] = "job.json";
constexpr char kEvents[] = "events.jsonl";

struct RecordedRun {
  std::string folder;
  Recording recording;
  std::int64_t written_at_ms = 0;
};

std::int64_t WrittenAt(const std::string& path) {
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(path, failed);
  if (failed) return 0;
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

absl::StatusOr<experiment::JobDocument> ReadJobFile(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, limits::kJobFileBytes));
  experiment::JobDocumentResult read = experiment::FromJobDocument(text);
  if (read.document) return *std::move(read.document);
  return absl::InvalidArgumentError(Concat(path, ": ",
                                           read.violations.empty()
                                               ? "this is no job of a trainer"
                                               : experiment::Format(read.violations.front(), "")));
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

// A trainer that was killed may have left its last line unfinished: at the end of the file, or
// before a line that only comes between two calls.
bool IsCutOff(const std::vector<std::string_view>& lines, std::size_t at) {
  if (ParseJsonOrNull(lines[at]).is_object()) return false;
  return at + 1 == lines.size() || Recording::ComesBetweenCalls(lines[at + 1]);
}

absl::Status AddLines(const std::string& path, Recording& recording) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, limits::kRunBytes));
  const std::vector<std::string_view> lines = LinesOf(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || IsCutOff(lines, i)) continue;
    if (const absl::Status status = recording.Add(lines[i]); !status.ok()) {
      return absl::InvalidArgumentError(
          Concat(path, ":", i + 1, ": ", std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordedRun> ReadRun(const std::string& folder) {
  PELAB_ASSIGN_OR_RETURN(experiment::JobDocument document, ReadJobFile(Concat(folder, "/", kJob)));
  const std::string events = Concat(folder, "/", kEvents);
  RecordedRun run{folder, Recording(std::move(document), folder), WrittenAt(events)};
  PELAB_RETURN_IF_ERROR(AddLines(events, run.recording));
  return run;
}

// The folders with both files, `folder` among them, in the order of their names.
absl::StatusOr<std::vector<std::string>> FoldersOfRuns(const std::string& folder) {
  std::vector<std::string> found;
  const auto look = [&](const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::exists(path / kJob, ignored) &&
        std::filesystem::exists(path / kEvents, ignored)) {
      found.push_back(path.string());
    }
  };
  look(folder);
  std::error_code failed;
  for (auto at = std::filesystem::recursive_directory_iterator(folder, failed);
       !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) look(at->path());
  }
  if (failed) {
    return absl::InternalError(Concat("cannot read ", folder, ": ", failed.message()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

class RecordedRuns final : public db::ImportReader {
 public:
  explicit RecordedRuns(std::vector<RecordedRun> runs) : runs_(std::move(runs)) {}

  absl::StatusOr<std::vector<db::FinishedJob>> Finished(std::int64_t* others) override {
    std::vector<db::FinishedJob> jobs;
    *others = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Recording& recording = runs_[i].recording;
      if (recording.finished()) {
        jobs.push_back({static_cast<std::int64_t>(i), recording.key()});
      } else {
        *others += 1;
      }
    }
    return jobs;
  }
  absl::StatusOr<std::string> HashOfCurve(std::int64_t job_id) override {
    db::CurveHash hash;
    for (const v1::Epoch& epoch : Of(job_id).recording.epochs()) hash.Add(epoch);
    return hash.FinishHex();
  }
  absl::StatusOr<db::ExportedJob> ReadJob(std::int64_t job_id) override {
    return Of(job_id).recording.Export(Of(job_id).written_at_ms);
  }
  std::optional<std::string> PathOf(std::int64_t job_id, const v1::ImportedFile&) override {
    return Concat(Of(job_id).folder, "/", Of(job_id).recording.weights());
  }
  absl::StatusOr<std::vector<db::ExportedSweep>> Sweeps() override {
    return std::vector<db::ExportedSweep>();
  }
  absl::StatusOr<v1::ImportedCells> Cells(std::int64_t, std::uint64_t, int) override {
    return v1::ImportedCells();
  }
  absl::StatusOr<std::vector<v1::ImportVerdict>> Check(const v1::CheckImportRequest&) override {
    return absl::UnimplementedError("nothing is imported into recorded runs");
  }

 private:
  const RecordedRun& Of(std::int64_t job_id) const {
    return runs_.at(static_cast<std::size_t>(job_id));
  }

  const std::vector<RecordedRun> runs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<db::ImportReader>> OpenRecordedRuns(const std::string& folder) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<std::string> folders, FoldersOfRuns(folder));
  if (folders.empty()) {
    return absl::NotFoundError(Concat("no folder in ", folder, " has the files ", kJob, " and ",
                                      kEvents, " of a trainer's run"));
  }
  std::vector<RecordedRun> runs;
  for (const std::string& one : folders) {
    PELAB_ASSIGN_OR_RETURN(RecordedRun run, ReadRun(one));
    runs.push_back(std::move(run));
  }
  return std::make_unique<RecordedRuns>(std::move(runs));
}

}  // namespace pelab::client
