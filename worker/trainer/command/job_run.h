// The jobs of a trainer process, each with its document, files and events.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "worker/trainer/command/failure.h"
#include "worker/trainer/protocol/arguments.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/train/checkpoint.h"

namespace pelab::trainer {

// Tracks which jobs are open, so that a failure is reported for the right ones.
struct JobLedger {
  int events = -1;             // descriptor of the event stream; -1: none yet
  std::set<std::string> open;  // ids of the jobs that are neither done nor failed
  std::string newest;          // the id of the last job that was opened
  bool some_failed = false;

  // Fail writes an error event for one job, FailAll for each open job.
  void Fail(const std::string& id, const Failure& failure);
  void FailAll(const Failure& failure);
};

class JobRun {
 public:
  // Reads the document. Throws TrainerError: kIo, or kBadSpec (with every violation of the
  // document, or because two jobs have the same id or an analysis cannot run). After an error, the
  // ledger's `newest` is the job's id, or "job" if the document has no readable id. `ledger` must
  // outlive the job.
  JobRun(JobFiles files, JobLedger* ledger);

  const experiment::JobDocument& document() const { return document_; }
  const experiment::Job& job() const { return document_.job; }
  const std::string& spec_json() const { return spec_json_; }  // canonical
  const JobFiles& files() const { return files_; }
  const Dataset& dataset();  // generated at the first call and kept
  EventStream& events() { return events_; }

  bool open() const { return ledger_.open.count(document_.job_id) != 0; }
  // Each writes the job's last event.
  void Done(const nlohmann::ordered_json& members);
  void Fail(const Failure& failure);

 private:
  JobFiles files_;
  JobLedger& ledger_;
  experiment::JobDocument document_;
  std::string spec_json_;
  EventStream events_;
  std::optional<Dataset> dataset_;
};

// Keeps the state at the last epoch boundary in memory. Writes it as a checkpoint when one is due
// (--checkpoint-seconds, --checkpoint-epochs) and when Write is called.
class Checkpoints {
 public:
  // `job` must outlive it.
  Checkpoints(const Arguments& arguments, std::string execution, JobRun* job);

  void Boundary(Checkpoint boundary);
  void Write();

 private:
  double least_seconds_;
  std::int64_t every_epochs_;
  std::int64_t epochs_since_ = 0;
  CheckpointOrigin origin_;
  JobRun& job_;
  std::optional<Checkpoint> last_;
  std::chrono::steady_clock::time_point written_at_ = std::chrono::steady_clock::now();
};

// The checkpoint from which the job resumes. Empty without --resume, or if there is no checkpoint
// of the same origin, if its epoch is beyond --max-start-epoch, or if it is damaged. `parameters`:
// the number of the model's parameters.
std::optional<Checkpoint> CheckpointToTakeUp(const Arguments& arguments, const JobRun& job,
                                             const std::string& execution, std::int64_t parameters);

}  // namespace pelab::trainer
