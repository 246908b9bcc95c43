// Where commands read from: a coordinator, or the database file itself when nobody serves it. Both
// give the same rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/results/job_list.h"
#include "pelab/v1/fleet.pb.h"
#include "pelab/v1/maintenance.pb.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"
#include "pelab/v1/transfer.pb.h"

namespace pelab::client {

// Lists are whole, but for what is read in pages. Errors are those of db::Reader; UNAVAILABLE only
// where a coordinator does not answer. Several threads may read at once.
class DataSource {
 public:
  virtual ~DataSource() = default;

  absl::StatusOr<results::JobList> Jobs(const v1::JobFilter& filter);
  // The same in pages, for sweeps of any size, as ReadCurves; each with the configurations of its
  // rows. `on_page` may take what the page holds.
  virtual absl::Status ReadJobs(
      const v1::JobFilter& filter,
      const std::function<absl::Status(v1::ListJobsResponse&)>& on_page) = 0;
  // By job and epoch, in pages: a sweep has millions of epochs. `on_page` runs on this thread while
  // the next page is fetched, and must not use this source; its error ends the list and is returned.
  using CurvePage = google::protobuf::RepeatedPtrField<v1::CurveRow>;
  virtual absl::Status ReadCurves(const v1::JobFilter& filter,
                                  const std::function<absl::Status(const CurvePage&)>& on_page) = 0;
  virtual absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(
      const v1::JobFilter& filter) = 0;
  // `whole_models`: only rows over all layers.
  virtual absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter& filter,
                                                               bool whole_models = false) = 0;
  // How many epochs jobs took to a test accuracy; only those that reached it.
  virtual absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter& filter,
                                                                double test_accuracy) = 0;
  // Of one name; of all where it is empty.
  virtual absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter& filter,
                                                                const std::string& name) = 0;
  virtual absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter& filter) = 0;
  // A stored file's bytes in order, in pieces; an error of `on_piece` ends it and is returned.
  // NOT_FOUND where no file of that hash is stored.
  virtual absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) = 0;
  virtual absl::StatusOr<std::vector<v1::AttemptRow>> Attempts(const v1::JobFilter& filter) = 0;
  virtual absl::StatusOr<std::vector<v1::WorkerRow>> Workers() = 0;
  virtual absl::StatusOr<std::vector<v1::Sweep>> Sweeps() = 0;  // newest first
  virtual absl::StatusOr<v1::Sweep> Sweep(const std::string& sweep) = 0;
  virtual absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) = 0;

  // "the coordinator at unix:/run/pelab.sock" or "pelab.db (nobody serves it)".
  virtual std::string Description() const = 0;
};

// Stops a call that streams, from any thread. Thread-safe.
class Canceller {
 public:
  void Cancel();
  bool cancelled() const;
  // Set by the call while it streams (null: none). Runs at once where Cancel has been called.
  void Set(std::function<void()> cancel);

 private:
  mutable std::mutex mutex_;
  std::function<void()> cancel_;
  bool cancelled_ = false;
};

// What only a coordinator can do.
class Coordinator : public DataSource {
 public:
  virtual absl::StatusOr<v1::PreviewResponse> Preview(const v1::PreviewRequest& request) = 0;
  virtual absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request) = 0;
  virtual absl::StatusOr<v1::CancelResponse> Cancel(const v1::CancelRequest& request) = 0;
  virtual absl::StatusOr<v1::SweepControl> Pause(const v1::PauseRequest& request) = 0;
  virtual absl::StatusOr<v1::SweepControl> Resume(const v1::ResumeRequest& request) = 0;
  virtual absl::StatusOr<v1::SweepControl> SetPriority(const v1::SetPriorityRequest& request) = 0;
  virtual absl::StatusOr<v1::SweepControl> Rename(const v1::RenameRequest& request) = 0;
  virtual absl::StatusOr<v1::SweepControl> SetNote(const v1::SetNoteRequest& request) = 0;
  virtual absl::StatusOr<v1::DeleteResponse> Delete(const v1::DeleteRequest& request) = 0;
  // In as many calls as it takes; the answers added up.
  virtual absl::StatusOr<v1::RetryResponse> Retry(v1::RetryRequest request) = 0;
  virtual absl::StatusOr<v1::ExtendResponse> Extend(const v1::ExtendRequest& request) = 0;
  virtual absl::StatusOr<v1::DrainWorkerResponse> DrainWorker(
      const v1::DrainWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::AnalyzeResponse> Analyze(const v1::AnalyzeRequest& request) = 0;
  // Calls `on_update` with a snapshot at once and whenever something changed, until every job has
  // ended. CANCELLED after `canceller`, which may be null.
  virtual absl::Status Watch(const std::string& sweep,
                             const std::function<void(const v1::SweepUpdate&)>& on_update,
                             Canceller* canceller) = 0;
  // What is kept, then what comes, until the attempt ends.
  virtual absl::Status FollowLog(const std::string& job, int attempt,
                                 const std::function<void(const v1::LogPart&)>& on_part,
                                 Canceller* canceller) = 0;
  // A consistent copy of everything, in pieces; an error of `on_part` ends it and is returned.
  virtual absl::Status Backup(
      const std::function<absl::Status(const v1::BackupPart&)>& on_part) = 0;
  virtual absl::StatusOr<v1::CheckImportResponse> CheckImport(
      const v1::CheckImportRequest& request) = 0;
  // `send` gives the parts one after another to the function that it is called with, and ends with
  // that function's first error, or one of its own: then nothing is stored.
  template <typename Part>
  using Send = std::function<absl::Status(const std::function<absl::Status(const Part&)>&)>;
  virtual absl::StatusOr<v1::ImportJobResponse> ImportJob(const Send<v1::ImportJobPart>& send) = 0;
  virtual absl::StatusOr<v1::ImportSweepResponse> ImportSweep(
      const Send<v1::ImportSweepPart>& send) = 0;
};

}  // namespace pelab::client
