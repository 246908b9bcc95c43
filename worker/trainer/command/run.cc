// One job from its document to its kept weights, as a sequence of events.
#include <ATen/ATen.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Keeps the last epoch boundary in memory and writes it now and then, and when the training is stopped.
class Checkpoints {
 public:
  Checkpoints(const Arguments& arguments, CheckpointOrigin origin, EventStream* events)
      : workdir_(arguments.workdir),
        least_seconds_(arguments.checkpoint_seconds),
        every_epochs_(arguments.checkpoint_epochs),
        origin_(std::move(origin)),
        events_(*events) {}

  void Boundary(Checkpoint boundary) {
    last_ = std::move(boundary);
    ++epochs_since_;
    if (every_epochs_ > 0 ? epochs_since_ >= every_epochs_
                          : SecondsSince(written_at_) >= least_seconds_) {
      Write();
    }
  }

  void Write() {
    if (!last_) return;
    nlohmann::ordered_json members = {{"epoch", last_->epoch}};
    members.update(FileJson(WriteCheckpoint(workdir_, origin_, *last_)));
    events_.Emit("checkpoint", members);
    last_.reset();
    epochs_since_ = 0;
    written_at_ = Clock::now();
  }

 private:
  fs::path workdir_;
  double least_seconds_;
  std::int64_t every_epochs_;
  std::int64_t epochs_since_ = 0;
  CheckpointOrigin origin_;
  EventStream& events_;
  std::optional<Checkpoint> last_;
  Clock::time_point written_at_ = Clock::now();
};

// The epoch to start at; restores the checkpoint that it takes up, unless that is damaged.
std::int64_t StartEpoch(const Arguments& arguments, const CheckpointOrigin& origin,
                        Trainer* trainer) {
  if (!arguments.resume) return 0;
  try {
    const std::optional<Checkpoint> checkpoint = ReadCheckpoint(arguments.workdir, origin);
    if (!checkpoint) return 0;
    if (arguments.max_start_epoch >= 0 && checkpoint->epoch > arguments.max_start_epoch) return 0;
    trainer->Restore(*checkpoint);
    return checkpoint->epoch;
  } catch (const TrainerError& error) {
    // It would be damaged at every further attempt, too; training again always works.
    std::cerr << "pelab-trainer: starting anew, the checkpoint is of no use: " << error.what()
              << "\n";
    return 0;
  }
}

void EmitEpoch(const EpochResult& result, EventStream* events) {
  events->Emit("epoch", {{"epoch", result.epoch},
                         {"train_loss", result.train_loss},
                         {"train_correct", result.train_correct},
                         {"train_total", result.train_total},
                         {"test_loss", result.test.loss},
                         {"test_correct", result.test.correct},
                         {"test_total", result.test.total},
                         {"learning_rate", result.learning_rate},
                         {"seconds", result.seconds}});
}

// With the micro-batch that this job is trained in.
Arguments Settled(Arguments arguments, const Workbench& bench) {
  if (!arguments.micro_batch) {
    arguments.micro_batch =
        ChooseMicroBatch(bench.decoder.config(), bench.data.length(),
                         bench.job.Int("train.batch_size"), bench.data.device());
  }
  return arguments;
}

}  // namespace

void Run(const Arguments& given, int events_fd, std::string* job_id) {
  const Clock::time_point began = Clock::now();
  const spec::JobDocument document = ReadJobDocument(given.spec);
  *job_id = document.job_id;
  const spec::Job& job = document.job;
  CheckAnalyses(document);
  EventStream events(events_fd, document.job_id);
  PrepareProcess(given);

  Workbench bench(job, at::Device(given.device));
  const Arguments arguments = Settled(given, bench);
  Trainer trainer(job, &bench.decoder, &bench.parameters, &bench.data, *arguments.micro_batch,
                  arguments.cuda_graphs);
  const std::string spec_json = spec::ToCanonicalJson(job);
  const CheckpointOrigin origin{spec_json, ExecutionText(arguments)};
  const std::int64_t start = StartEpoch(arguments, origin, &trainer);
  const std::int64_t epochs = job.Int("train.epochs");
  EmitHello(arguments, bench, start, &events);
  Checkpoints checkpoints(arguments, origin, &events);
  try {
    for (std::int64_t epoch = start; epoch < epochs; ++epoch) {
      EmitEpoch(trainer.RunEpoch(epoch), &events);
      checkpoints.Boundary(trainer.Snapshot(epoch + 1));
    }
    RunAnalyses(document.analyses, arguments, bench, &events);
  } catch (const Stopped&) {
    checkpoints.Write();
    throw;
  }
  const FileInfo weights = WriteWeights(arguments.workdir, spec_json, bench.parameters);
  events.Emit("done", {{"weights", FileJson(weights)}, {"wall_seconds", SecondsSince(began)}});
}

}  // namespace pelab::trainer
