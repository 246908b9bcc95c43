// Our side of the training bench (steps.py, jobs.py): steps of one model on this machine's CPU.
//
//   train_bench [--protocol P] [--pe NAME] [--task NAME] [--batch N] [--steps N] [--threads N]
//   train_bench … --dump DIR
//   train_bench --spec JOB.json --dump DIR
//
// Writes one line of JSON: seconds of each step after the first (which warms up), how many parameters
// are trained, and the most memory the process has had. With --dump it computes no step: it writes the model's starting weights
// (weights.safetensors, its spec among the metadata), the examples (data.safetensors: tokens, lengths,
// classes; those to train with first) and the first batch's logits without dropout (logits), from
// which the other side starts and with which it must agree.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/model/blas_kernels.h"
#include "worker/trainer/protocol/safetensors.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace {

namespace spec = pelab::spec;
using namespace pelab::trainer;  // NOLINT(google-build-using-namespace): a program of one file
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestExamples = 64;  // nothing evaluates them here

struct Options {
  std::string protocol = "clean";
  std::string pe = "rope";
  std::string task = "distance";
  std::int64_t batch = 64;
  std::int64_t steps = 3;
  int threads = 2;
  std::optional<std::int64_t> micro_batch;
  std::string dump;
  std::string spec;  // a job's document, instead of the names
};

spec::Job JobOf(const Options& options) {
  if (!options.spec.empty()) return ReadJobDocument(options.spec).job;
  return spec::MakeJob(options.protocol, options.pe, options.task, /*seed=*/0,
                       {{"task.train_examples", options.batch * (options.steps + 1)},
                        {"task.test_examples", kTestExamples},
                        {"train.batch_size", options.batch},
                        {"train.epochs", std::int64_t{1}}});
}

TensorEntry Entry(const std::string& name, const at::Tensor& tensor) {
  const DType type = tensor.scalar_type() == at::kLong  ? DType::kI64
                     : tensor.scalar_type() == at::kInt ? DType::kI32
                                                        : DType::kF32;
  return {name,
          type,
          tensor.sizes().vec(),
          {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()}};
}

void Dump(const Workbench& bench, const Options& options) {
  const at::NoGradGuard no_grad;
  WriteWeights(options.dump, spec::ToCanonicalJson(bench.job), bench.parameters);
  const LabelledBatch all = bench.data.Range(0, bench.data.size());
  const LabelledBatch first = bench.data.Range(0, bench.job.Int("train.batch_size"));
  const at::Tensor logits = bench.decoder.Logits(first.inputs, nullptr).contiguous();
  const at::Tensor tokens = all.inputs.tokens.contiguous();
  const at::Tensor classes = all.classes.contiguous();
  SafetensorsFile file;
  file.metadata = {{"ignored_class", std::to_string(bench.data.ignored_class())},
                   {"train_examples", std::to_string(bench.data.train_examples())}};
  file.tensors = {Entry("tokens", tokens), Entry("classes", classes), Entry("logits", logits)};
  const at::Tensor lengths = all.inputs.lengths;
  if (lengths.defined()) file.tensors.push_back(Entry("lengths", lengths));
  WriteFileAtomically(options.dump, "data.safetensors", WriteSafetensors(file));
}

std::vector<double> TimeSteps(Workbench& bench, const Options& options) {
  const std::int64_t micro_batch = options.micro_batch.value_or(
      ChooseMicroBatch(bench.decoder.config(), bench.data.length(), options.batch, at::kCPU));
  Trainer trainer(bench.job, &bench.decoder, &bench.parameters, &bench.data, micro_batch);
  std::vector<double> seconds;
  for (std::int64_t step = 0; step <= options.steps; ++step) {
    const at::Tensor indices = at::arange(step * options.batch, (step + 1) * options.batch);
    const auto began = Clock::now();
    const Trainer::BatchFigures figures = trainer.RunStep(indices, step);
    (void)figures.loss.item();
    const std::chrono::duration<double> took = Clock::now() - began;
    if (step > 0) seconds.push_back(took.count());
  }
  return seconds;
}

// The most memory that the process has had.
std::int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("steps of a model at paper size");
  app.add_option("--protocol", options.protocol)->check(CLI::IsMember({"clean", "published"}));
  app.add_option("--pe", options.pe);
  app.add_option("--task", options.task);
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 4096));
  app.add_option("--steps", options.steps)->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--micro-batch", options.micro_batch, "0: the whole batch [default: as a trainer]")
      ->check(CLI::Range(0, 4096));
  app.add_option("--dump", options.dump)->check(CLI::ExistingDirectory);
  app.add_option("--spec", options.spec)->check(CLI::ExistingFile)->needs("--dump");
  CLI11_PARSE(app, argc, argv);
  RestartWithBestBlasKernels(argv);
  Arguments arguments;
  arguments.workdir = ".";
  arguments.device = "cpu";
  arguments.threads = options.threads;
  PrepareProcess(arguments);
  const spec::Job job = JobOf(options);
  Workbench bench(job, at::kCPU);
  if (!options.dump.empty()) {
    Dump(bench, options);
    return 0;
  }
  std::cout << nlohmann::json{{"parameters", bench.parameters.count()},
                              {"seconds", TimeSteps(bench, options)},
                              {"peak_bytes", PeakBytes()}}
            << "\n";
  return 0;
}
