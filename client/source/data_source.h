// The sources that commands read from: a coordinator, or the database file itself if nobody serves
// it. Both give the same rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/read/reader.h"
#include "core/results/job_list.h"
#include "pelab/v1/admin.pb.h"
#include "pelab/v1/allocations.pb.h"
#include "pelab/v1/claims.pb.h"
#include "pelab/v1/fleet.pb.h"
#include "pelab/v1/maintenance.pb.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"
#include "pelab/v1/transfer.pb.h"

namespace pelab::client {

// Functions that return a list return the whole list; the Read functions deliver pages or pieces.
// Errors are those of db::RowReader, and UNAVAILABLE if a coordinator does not answer.
// Several threads may read at the same time.
class DataSource {
 public:
  virtual ~DataSource() = default;

  absl::StatusOr<results::JobList> Jobs(const v1::JobFilter& filter);
  // The same jobs in pages, for sweeps of any size; `on_page` works as in ReadCurves. Each page
  // holds the configurations of its rows. `on_page` may move data out of the page.
  absl::Status ReadJobs(const v1::JobFilter& filter,
                        const std::function<absl::Status(v1::ListJobsResponse&)>& on_page);
  // Accuracy curves, ordered by job and epoch, in pages: a sweep can have millions of epochs.
  // `on_page` runs on the calling thread while the next page is fetched on another; it must not use
  // this source. Its first error ends the reading and is returned.
  using CurvePage = google::protobuf::RepeatedPtrField<v1::CurveRow>;
  absl::Status ReadCurves(const v1::JobFilter& filter,
                          const std::function<absl::Status(const CurvePage&)>& on_page);
  absl::StatusOr<std::vector<v1::HeadAblationRow>> HeadAblations(const v1::JobFilter& filter);
  // `whole_models`: only rows about all layers together.
  absl::StatusOr<std::vector<v1::DepositRow>> Deposits(const v1::JobFilter& filter,
                                                       bool whole_models = false);
  // The number of epochs until a job reached a test accuracy; no rows for jobs that did not reach
  // it.
  absl::StatusOr<std::vector<v1::EpochsToRow>> EpochsTo(const v1::JobFilter& filter,
                                                        double test_accuracy);
  // The analyses of this name; all analyses if `name` is empty.
  absl::StatusOr<std::vector<v1::AnalysisRow>> Analyses(const v1::JobFilter& filter,
                                                        const std::string& name);
  absl::StatusOr<std::vector<v1::ArtifactRow>> Artifacts(const v1::JobFilter& filter);
  absl::StatusOr<std::vector<v1::AttemptRow>> Attempts(const v1::JobFilter& filter);
  virtual absl::StatusOr<std::vector<v1::WorkerRow>> Workers();
  // Reads the audit in pages, oldest entry first: the calls that principals made, and those that
  // were refused. The request's page is ignored. `on_page` works as in ReadCurves.
  using AuditPage = google::protobuf::RepeatedPtrField<v1::AuditRow>;
  absl::Status ReadAudit(const v1::ListAuditRequest& request,
                         const std::function<absl::Status(const AuditPage&)>& on_page);
  absl::StatusOr<std::vector<v1::Sweep>> Sweeps();  // newest first
  absl::StatusOr<v1::Sweep> Sweep(const std::string& sweep);
  // Registered sheets, newest first, without their documents.
  absl::StatusOr<std::vector<v1::SheetRow>> Sheets();
  absl::StatusOr<v1::Sheet> Sheet(const std::string& sheet);
  // The state of the sheet's claims after each round, or after the last one alone.
  absl::StatusOr<std::vector<v1::SheetClaimRow>> SheetClaims(const std::string& sheet,
                                                             bool last_round);

  // Delivers a stored file's bytes in order, in pieces. Ends with the first error of `on_piece` and
  // returns it. NOT_FOUND if no file with this hash is stored.
  virtual absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) = 0;
  virtual absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) = 0;

  // "the coordinator at unix:/run/pelab.sock" or "pelab.db (nobody serves it)".
  virtual std::string Description() const = 0;

 protected:
  // Calls `use` with a reader. If readers are not thread-safe, no other thread uses this reader
  // meanwhile. Returns the error of `use`, or of getting a reader.
  virtual absl::Status Use(const std::function<absl::Status(db::RowReader&)>& use) = 0;
  // How many rows a page has at most. (Pages of curves have db::kMaxPage: their rows are short.)
  virtual int PageRows() const { return db::kMaxPage; }

 private:
  template <typename Request, typename Response>
  using List = absl::StatusOr<Response> (db::RowReader::*)(const Request&);

  // `ask(reader) -> StatusOr<Response>`.
  template <typename Response, typename Question>
  absl::StatusOr<Response> Ask(const Question& ask);
  // Passes every page of the list, with up to `rows` rows each, to `on_page`.
  template <typename Request, typename Response, typename OnPage>
  absl::Status ForEachPage(List<Request, Response> list, Request request, int rows,
                           const OnPage& on_page);
  // The rows of all pages together.
  template <typename Row, typename Request, typename Response>
  absl::StatusOr<std::vector<Row>> AllRows(List<Request, Response> list,
                                           const v1::JobFilter& filter, Request request = {});
};

// Cancels a streaming call from another thread. Thread-safe.
class Canceller {
 public:
  void Cancel();
  bool cancelled() const;
  // The streaming call sets its own cancel function here, and null when it ends. Runs `cancel`
  // immediately if Cancel was already called.
  void Set(std::function<void()> cancel);

 private:
  mutable std::mutex mutex_;
  std::function<void()> cancel_;
  bool cancelled_ = false;
};

// Operations that only a coordinator offers.
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
  // Makes as many calls as it needs and returns the sum of the answers.
  virtual absl::StatusOr<v1::RetryResponse> Retry(v1::RetryRequest request) = 0;
  virtual absl::StatusOr<v1::ExtendResponse> Extend(const v1::ExtendRequest& request) = 0;
  virtual absl::StatusOr<v1::DrainWorkerResponse> DrainWorker(
      const v1::DrainWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::AnalyzeResponse> Analyze(const v1::AnalyzeRequest& request) = 0;
  virtual absl::StatusOr<v1::Settlement> RegisterSheet(const v1::RegisterSheetRequest& request) = 0;
  virtual absl::StatusOr<v1::Settlement> Advance(const v1::AdvanceRequest& request) = 0;
  // The principal of these calls; none if the coordinator has no principals.
  virtual absl::StatusOr<v1::WhoAmIResponse> WhoAmI() = 0;
  virtual absl::StatusOr<v1::PrincipalToken> AddPrincipal(
      const v1::AddPrincipalRequest& request) = 0;
  virtual absl::StatusOr<v1::ListPrincipalsResponse> ListPrincipals() = 0;
  virtual absl::StatusOr<v1::Principal> ChangePrincipal(
      const v1::ChangePrincipalRequest& request) = 0;
  virtual absl::StatusOr<v1::PrincipalToken> RotateToken(const v1::RotateTokenRequest& request) = 0;
  // Queues of pelab-scale (allocations.proto), and the demand for a kind of slot.
  virtual absl::StatusOr<v1::ListQueuesResponse> ListQueues() = 0;
  virtual absl::StatusOr<v1::QueueRow> PutQueue(const v1::PutQueueRequest& request) = 0;
  virtual absl::StatusOr<v1::QueueRow> RemoveQueue(const v1::RemoveQueueRequest& request) = 0;
  virtual absl::StatusOr<v1::QueueRow> PauseQueue(const v1::PauseQueueRequest& request) = 0;
  virtual absl::StatusOr<v1::QueueRow> ResumeQueue(const v1::ResumeQueueRequest& request) = 0;
  virtual absl::StatusOr<v1::DemandResponse> Demand(const v1::DemandRequest& request) = 0;
  // Calls `on_update` with a snapshot immediately and after every change, until every job has
  // ended. CANCELLED if `canceller` (may be null) is cancelled.
  virtual absl::Status Watch(const std::string& sweep,
                             const std::function<void(const v1::SweepUpdate&)>& on_update,
                             Canceller* canceller) = 0;
  // Delivers the stored parts of the log, then new ones until the attempt ends. CANCELLED if
  // `canceller` (may be null) is cancelled.
  virtual absl::Status FollowLog(const std::string& job, int attempt,
                                 const std::function<void(const v1::LogPart&)>& on_part,
                                 Canceller* canceller) = 0;
  // Delivers a consistent copy of the whole database in pieces. Ends with the first error of
  // `on_part` and returns it.
  virtual absl::Status Backup(
      const std::function<absl::Status(const v1::BackupPart&)>& on_part) = 0;
  virtual absl::StatusOr<v1::CheckImportResponse> CheckImport(
      const v1::CheckImportRequest& request) = 0;
  // A function that streams an upload. It passes the parts, in order, to the function that is its
  // argument. It stops at the first error of that function, or at an error of its own. After an
  // error nothing is stored.
  template <typename Part>
  using Send = std::function<absl::Status(const std::function<absl::Status(const Part&)>&)>;
  virtual absl::StatusOr<v1::PutFileResponse> PutFile(const Send<v1::PutFileRequest>& send) = 0;
  virtual absl::StatusOr<v1::ImportJobResponse> ImportJob(const Send<v1::ImportJobPart>& send) = 0;
  virtual absl::StatusOr<v1::ImportSweepResponse> ImportSweep(
      const Send<v1::ImportSweepPart>& send) = 0;
};

}  // namespace pelab::client
