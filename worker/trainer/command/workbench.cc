#include "worker/trainer/command/workbench.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "worker/trainer/analysis/registry.h"
#include "worker/trainer/model/torch_compat.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

// The layout of a batch on the device: 1, every example padded to the task's length.
constexpr int kPacking = 1;

// Keeps freed memory with the process: a step's tensors are those of the last step, and giving their pages back to the
// system and faulting them in again costs several percent of it.
void KeepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

// "analysis-2-layer_ablation.json": a job may have an analysis twice, with other parameters.
std::string ResultName(std::size_t place, const spec::Analysis& analysis) {
  return "analysis-" + std::to_string(place) + "-" + analysis.name + ".json";
}

void RunAnalysis(const spec::Analysis& analysis, const std::string& result_name,
                 const Arguments& arguments, const Workbench& bench, EventStream* events) {
  const auto began = std::chrono::steady_clock::now();
  const AnalysisEntry& entry = FindAnalysis(analysis);
  const nlohmann::ordered_json result = entry.run(analysis, {bench.job, bench.decoder, bench.data});
  nlohmann::ordered_json members;
  if (!entry.own_event) members["name"] = entry.name;
  members["version"] = entry.version;
  members["parameters"] = nlohmann::ordered_json::parse(spec::CanonicalParameters(analysis));
  if (entry.own_event) {
    members.update(result);
  } else {
    members["file"] = WriteFileAtomically(arguments.workdir, result_name, result.dump()).name;
  }
  members["seconds"] = SecondsSince(began);
  events->Emit(entry.own_event ? std::string(entry.name) : "analysis", members);
}

}  // namespace

double SecondsSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

nlohmann::ordered_json FileJson(const FileInfo& file) {
  return {{"file", file.name}, {"sha256", file.sha256}, {"bytes", file.bytes}};
}

void PrepareProcess(const Arguments& arguments) {
  std::error_code error;
  std::filesystem::create_directories(arguments.workdir, error);
  if (error) {
    throw TrainerError(ErrorKind::kIo,
                       "cannot create " + arguments.workdir + ": " + error.message());
  }
  KeepFreedMemory();
  ConfigureDeterminism(arguments.threads);
  RequireDevice(arguments.device);
}

Workbench::Workbench(const spec::Job& of, at::Device device)
    : job(of),
      dataset(MakeDataset(job)),
      labels(LabelSpaceOf(job, dataset)),
      data(dataset, labels, device),
      decoder(job, ModelConfigFrom(job, labels.classes), &parameters) {
  parameters.Materialize(job.seed, device, at::kFloat, job.Choice("train.precision") == "bf16");
}

std::string ExecutionText(const Arguments& arguments) {
  return "threads " + std::to_string(arguments.threads) + ", micro-batch " +
         std::to_string(arguments.micro_batch.value_or(0)) + ", packing " +
         std::to_string(kPacking);
}

void EmitHello(const Arguments& arguments, const Workbench& bench, std::int64_t start_epoch,
               EventStream* events) {
  events->Emit("hello", {{"protocol", 1},
                         {"trainer", PELAB_VERSION},
                         {"libtorch", LibTorchVersion()},
                         {"device", arguments.device},
                         {"device_name", DeviceName(arguments.device)},
                         {"threads", arguments.threads},
                         {"micro_batch", arguments.micro_batch.value_or(0)},
                         {"packing", kPacking},
                         {"start_epoch", start_epoch},
                         {"epochs", bench.job.Int("train.epochs")},
                         {"parameters", bench.parameters.count()},
                         {"train_examples", bench.dataset.train_examples},
                         {"test_examples", bench.dataset.test_examples()},
                         {"data_sha256", DatasetSha256(bench.dataset)}});
}

void CheckAnalyses(const spec::JobDocument& document) {
  for (const spec::Analysis& analysis : document.analyses) {
    FindAnalysis(analysis).check(analysis, document.job);
  }
}

void RunAnalyses(const std::vector<spec::Analysis>& analyses, const Arguments& arguments,
                 const Workbench& bench, EventStream* events) {
  for (std::size_t i = 0; i < analyses.size(); ++i) {
    RunAnalysis(analyses[i], ResultName(i, analyses[i]), arguments, bench, events);
  }
}

}  // namespace pelab::trainer
