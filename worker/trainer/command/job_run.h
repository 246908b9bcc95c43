// The jobs of a trainer's process, each with its document, its files and its events.
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

// Who has to hear of it where something fails.
struct JobLedger {
  int events = -1;             // the descriptor of the event stream; -1: there is none yet
  std::set<std::string> open;  // ids of jobs that are neither done nor failed
  std::string newest;          // the id that was opened last
  bool some_failed = false;

  // An error event of the job, or of each that is open.
  void Fail(const std::string& id, const Failure& failure);
  void FailAll(const Failure& failure);
};

class JobRun {
 public:
  // Reads the document. Throws TrainerError: kIo, or kBadSpec with every violation in its text; the job is the ledger's newest
  // then, under its id, or "job" where it has none that can be read. `ledger` outlives it.
  JobRun(JobFiles files, JobLedger* ledger);

  const experiment::JobDocument& document() const { return document_; }
  const experiment::Job& job() const { return document_.job; }
  const std::string& spec_json() const { return spec_json_; }  // canonical
  const JobFiles& files() const { return files_; }
  const Dataset& dataset();  // made at the first call, and kept
  EventStream& events() { return events_; }

  bool open() const { return ledger_.open.count(document_.job_id) != 0; }
  // Its last event.
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

// Keeps the last epoch boundary in memory and writes it now and then, and when the training is stopped.
class Checkpoints {
 public:
  // `job` outlives it.
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

// The checkpoint that the job goes on from: none where it shall not or there is none of the same origin, nor where that is
// damaged. `parameters`: how many the model has.
std::optional<Checkpoint> CheckpointToTakeUp(const Arguments& arguments, const JobRun& job,
                                             const std::string& execution, std::int64_t parameters);

}  // namespace pelab::trainer
