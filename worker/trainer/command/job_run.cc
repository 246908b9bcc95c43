#include "worker/trainer/command/job_run.h"

#include <ATen/ATen.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_text.h"
#include "core/experiment/canonical_json.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/command/workbench.h"

namespace pelab::trainer {
namespace {

// Works also if the document is not a valid job document.
std::string JobIdOf(const std::string& text) {
  const auto document = ParseJson(text);
  if (!document.is_object() || !document.contains("job")) return "job";
  return document["job"].is_string() ? document["job"].get<std::string>() : "job";
}

experiment::JobDocument Read(const JobFiles& files, JobLedger* ledger) {
  ledger->newest = "job";
  const std::string text = ReadFile(files.spec);
  ledger->newest = JobIdOf(text);
  if (!ledger->open.insert(ledger->newest).second) {
    throw TrainerError(ErrorKind::kBadSpec,
                       files.spec + ": job \"" + ledger->newest + "\" is given twice");
  }
  return ParseJobDocument(text, files.spec);
}

}  // namespace

void JobLedger::Fail(const std::string& id, const Failure& failure) {
  some_failed = true;
  open.erase(id);
  EventStream(events, id)
      .Emit("error", {{"kind", state::Name(failure.kind)}, {"message", failure.message}});
}

void JobLedger::FailAll(const Failure& failure) {
  some_failed = true;
  for (const std::string& id : std::set<std::string>(open)) Fail(id, failure);
}

JobRun::JobRun(JobFiles files, JobLedger* ledger)
    : files_(std::move(files)),
      ledger_(*ledger),
      document_(Read(files_, ledger)),
      spec_json_(experiment::ToCanonicalJson(document_.job)),
      events_(ledger->events, document_.job_id) {
  CheckAnalyses(document_);
}

const Dataset& JobRun::dataset() {
  if (!dataset_) dataset_ = MakeDataset(job());
  return *dataset_;
}

void JobRun::Done(const nlohmann::ordered_json& members) {
  events_.Emit("done", members);
  ledger_.open.erase(document_.job_id);
}

void JobRun::Fail(const Failure& failure) {
  ReportToPerson(failure);
  ledger_.Fail(document_.job_id, failure);
}

Checkpoints::Checkpoints(const Arguments& arguments, std::string execution, JobRun* job)
    : least_seconds_(arguments.checkpoint_seconds),
      every_epochs_(arguments.checkpoint_epochs),
      origin_{job->spec_json(), std::move(execution)},
      job_(*job) {}

void Checkpoints::Boundary(Checkpoint boundary) {
  last_ = std::move(boundary);
  ++epochs_since_;
  if (every_epochs_ > 0 ? epochs_since_ >= every_epochs_
                        : SecondsSince(written_at_) >= least_seconds_) {
    Write();
  }
}

void Checkpoints::Write() {
  if (!last_) return;
  nlohmann::ordered_json members = {{"epoch", last_->epoch}};
  members.update(FileJson(WriteCheckpoint(job_.files().workdir, origin_, *last_)));
  job_.events().Emit("checkpoint", members);
  last_.reset();
  epochs_since_ = 0;
  written_at_ = std::chrono::steady_clock::now();
}

std::optional<Checkpoint> CheckpointToTakeUp(const Arguments& arguments, const JobRun& job,
                                             const std::string& execution,
                                             std::int64_t parameters) {
  if (!arguments.resume) return std::nullopt;
  try {
    std::optional<Checkpoint> checkpoint =
        ReadCheckpoint(job.files().workdir, {job.spec_json(), execution});
    if (!checkpoint) return std::nullopt;
    const std::int64_t most = job.files().max_start_epoch;
    if (most >= 0 && checkpoint->epoch > most) return std::nullopt;
    for (const at::Tensor* state :
         {&checkpoint->parameters, &checkpoint->first_moment, &checkpoint->second_moment}) {
      if (state->numel() == parameters) continue;
      throw TrainerError(ErrorKind::kIo, "the checkpoint has " + std::to_string(state->numel()) +
                                             " parameters, the model " +
                                             std::to_string(parameters));
    }
    return checkpoint;
  } catch (const TrainerError& error) {
    // The checkpoint would be damaged at every later attempt too, but training from the start
    // always works.
    std::cerr << "pelab-trainer: starting anew, the checkpoint is of no use: " << error.what()
              << "\n";
    return std::nullopt;
  }
}

}  // namespace pelab::trainer
