// One job from its document to its kept weights, as a sequence of events.
#include <ATen/ATen.h>
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "worker/trainer/analysis/registry.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/model/torch_compat.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Keeps freed memory with the process: a step's tensors are those of the last step, and giving their pages back to the
// system and faulting them in again costs several percent of it.
void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

double SecondsSince(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

nlohmann::ordered_json FileJson(const FileInfo& file) {
  return {{"file", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}};
}

// What a job is trained with, made in the order in which each part needs the last.
struct Workbench {
  Workbench(const spec::Job& job, const Dataset& dataset, at::Device device)
      : labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, device),
        decoder(job, ModelConfigFrom(job, labels.classes), &parameters) {
    parameters.Materialize(job.seed, device, at::kFloat);
  }
  LabelSpace labels;
  DeviceData data;
  ParameterSet parameters;
  Decoder decoder;
};

// Keeps the last epoch boundary in memory and writes it now and then, and when the training is stopped.
class Checkpoints {
 public:
  Checkpoints(const Arguments& arguments, std::string spec_json, EventStream* events)
      : workdir_(arguments.workdir),
        least_seconds_(arguments.checkpoint_seconds),
        spec_json_(std::move(spec_json)),
        events_(*events) {}

  void Boundary(Checkpoint boundary) {
    last_ = std::move(boundary);
    if (SecondsSince(written_at_) >= least_seconds_) Write();
  }

  void Write() {
    if (!last_) return;
    nlohmann::ordered_json members = {{"epoch", last_->epoch}};
    members.update(FileJson(WriteCheckpoint(workdir_, spec_json_, *last_)));
    events_.Emit("checkpoint", members);
    last_.reset();
    written_at_ = Clock::now();
  }

 private:
  fs::path workdir_;
  double least_seconds_;
  std::string spec_json_;
  EventStream& events_;
  std::optional<Checkpoint> last_;
  Clock::time_point written_at_ = Clock::now();
};

// The epoch to start at; restores the checkpoint that it takes up, unless that is damaged.
std::int64_t StartEpoch(const Arguments& arguments, const std::string& spec_json,
                        Trainer* trainer) {
  if (!arguments.resume) return 0;
  try {
    const std::optional<Checkpoint> checkpoint = ReadCheckpoint(arguments.workdir, spec_json);
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

void RunAnalysis(const spec::Analysis& analysis, const Workbench& bench, EventStream* events) {
  const Clock::time_point began = Clock::now();
  const AnalysisEntry& entry = FindAnalysis(analysis);
  nlohmann::ordered_json members = {
      {"version", entry.version},
      {"parameters", nlohmann::ordered_json::parse(spec::CanonicalParameters(analysis))}};
  members.update(entry.run(analysis, bench.decoder, bench.data));
  members["seconds"] = SecondsSince(began);
  events->Emit(std::string(entry.event), members);
}

}  // namespace

void Run(const Arguments& arguments, int events_fd, std::string* job_id) {
  const Clock::time_point began = Clock::now();
  const spec::JobDocument document = ReadJobDocument(arguments.spec);
  *job_id = document.job_id;
  const spec::Job& job = document.job;
  for (const spec::Analysis& analysis : document.analyses) FindAnalysis(analysis);
  EventStream events(events_fd, document.job_id);
  std::error_code error;
  fs::create_directories(arguments.workdir, error);
  if (error) {
    throw TrainerError(ErrorKind::kIo,
                       "cannot create " + arguments.workdir + ": " + error.message());
  }
  KeepFreedMemory();
  ConfigureDeterminism(arguments.threads);
  RequireDevice(arguments.device);

  const Dataset dataset = MakeDataset(job);
  Workbench bench(job, dataset, at::Device(arguments.device));
  Trainer trainer(job, &bench.decoder, &bench.parameters, &bench.data);
  const std::string spec_json = spec::ToCanonicalJson(job);
  const std::int64_t start = StartEpoch(arguments, spec_json, &trainer);
  const std::int64_t epochs = job.Int("train.epochs");
  events.Emit("hello", {{"protocol", 1},
                        {"trainer", PELAB_VERSION},
                        {"libtorch", LibTorchVersion()},
                        {"device", arguments.device},
                        {"device_name", DeviceName(arguments.device)},
                        {"threads", arguments.threads},
                        {"start_epoch", start},
                        {"epochs", epochs},
                        {"parameters", bench.parameters.count()},
                        {"train_examples", dataset.train_examples},
                        {"test_examples", dataset.test_examples()},
                        {"data_sha256", DatasetSha256(dataset)}});
  Checkpoints checkpoints(arguments, spec_json, &events);
  try {
    for (std::int64_t epoch = start; epoch < epochs; ++epoch) {
      EmitEpoch(trainer.RunEpoch(epoch), &events);
      checkpoints.Boundary(trainer.Snapshot(epoch + 1));
    }
    for (const spec::Analysis& analysis : document.analyses) {
      RunAnalysis(analysis, bench, &events);
    }
  } catch (const Stopped&) {
    checkpoints.Write();
    throw;
  }
  const FileInfo weights = WriteWeights(arguments.workdir, spec_json, bench.parameters);
  events.Emit("done", {{"weights", FileJson(weights)}, {"wall_seconds", SecondsSince(began)}});
}

}  // namespace pelab::trainer
