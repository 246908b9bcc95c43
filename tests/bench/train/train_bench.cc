// Our side of the training bench (steps.py, jobs.py, cells.py, gpu.py): training steps of a model,
// its evaluation and its head ablation.
//
//   train_bench [--protocol P] [--pe NAME] [--task NAME] [--batch N] [--steps N] [--warm-up N]
//               [--threads N] [--small] [--seed N] [--seeds K] [--device cpu|cuda:N]
//               [--precision float32|bf16] [--tf32] [--no-attention-dropout]
//               [--cuda-graphs on|off] [--evaluate N] [--ablate N] [--all-positions]
//   train_bench … --dump DIR
//   train_bench … [--epochs N] --print-job
//   train_bench … --whole --print-job
//   train_bench --spec JOB.json --dump DIR
//
// Writes one line of JSON: the seconds of each step after the warm-up, the number of trained
// parameters, and the peak memory (of the process; on CUDA, of its tensors). With --seeds K a step
// trains K seeds as one batch. On CUDA the device is synchronized only before the first and after
// the last step, and the seconds of each step are the mean of all.
//
// --evaluate N and --ablate N add the seconds of evaluating N test examples, and of ablating each
// head over N test examples, both with the starting weights. So that the other side can be checked,
// "evaluation" and "ablation" hold the number of scored examples, and the losses and numbers of
// correct examples: of the intact model, then without each head, layer by layer.
//
// --dump computes no step. It writes what the other side starts from and must agree with: the
// starting weights (weights.safetensors, with the spec in its metadata), the examples
// (data.safetensors: tokens, lengths, classes; training examples first), and the logits of the
// first batch without dropout (logits). The data depend on --batch, --steps, --warm-up, --evaluate
// and --ablate, so a dump needs the same values as the run that it is compared with.
//
// --print-job writes the job's document; with --whole that of the protocol's own job, with all its
// examples and epochs. --small is a model of two layers of width 64, on sequences of length 32, in
// place of the paper's size.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "core/safetensors/safetensors.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/config/blas_kernels.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/train/evaluate.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTestExamples = 64;  // at least; more if more are evaluated

struct Options {
  std::string protocol = "clean";
  std::string pe = "rope";
  std::string task = "distance";
  std::int64_t batch = 64;
  bool small = false;
  std::int64_t seed = 0;
  std::int64_t seeds = 1;
  std::int64_t steps = 3;
  std::int64_t warm_up = 1;
  std::int64_t evaluate = 0;
  std::int64_t ablate = 0;
  std::int64_t epochs = 1;
  int threads = 2;
  std::string device = "cpu";
  std::string precision = "float32";
  bool tf32 = false;
  bool no_attention_dropout = false;
  std::string cuda_graphs = "on";
  bool all_positions = false;
  std::optional<std::int64_t> micro_batch;
  std::string dump;
  bool print_job = false;
  bool whole = false;
  std::string spec;  // a job document, used instead of the named options
};

const catalog::Values kSmall = {
    {"task.length", std::int64_t{32}},       {"task.vocabulary", std::int64_t{64}},
    {"task.max_distance", std::int64_t{16}}, {"model.layers", std::int64_t{2}},
    {"model.heads", std::int64_t{4}},        {"model.d_model", std::int64_t{64}},
    {"model.d_ff", std::int64_t{128}},       {"model.max_len", std::int64_t{32}}};

experiment::Job JobOf(const Options& options, std::int64_t seed) {
  if (!options.spec.empty()) return ReadJobDocument(options.spec).job;
  const experiment::Job plain =
      experiment::MakeJob(options.protocol, options.pe, options.task, seed);
  if (options.whole) return plain;
  std::vector<std::string> sites =
      std::get<std::vector<std::string>>(plain.values.at("model.dropout_sites"));
  if (options.no_attention_dropout) std::erase(sites, "attention");
  catalog::Values values = options.small ? kSmall : catalog::Values();
  values["task.train_examples"] = options.batch * (options.steps + options.warm_up);
  values["task.test_examples"] = std::max({kTestExamples, options.evaluate, options.ablate});
  values["model.dropout_sites"] = sites;
  values["train.precision"] = options.precision;
  values["train.batch_size"] = options.batch;
  values["train.epochs"] = options.epochs;
  return experiment::MakeJob(options.protocol, options.pe, options.task, seed, values);
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
  WriteWeights(options.dump, experiment::ToCanonicalJson(bench.job), bench.parameters);
  const LabeledBatch all = bench.data.Range(0, bench.data.size());
  const LabeledBatch first = bench.data.Range(0, bench.job.Int("train.batch_size"));
  const at::Tensor logits =
      bench.decoder.Logits(first.inputs, nullptr).to(at::kFloat).cpu().contiguous();
  const at::Tensor tokens = all.inputs.tokens.cpu().contiguous();
  const at::Tensor classes = all.classes.cpu().contiguous();
  SafetensorsFile file;
  file.metadata = {{"ignored_class", std::to_string(bench.data.ignored_class())},
                   {"train_examples", std::to_string(bench.data.train_examples())}};
  file.tensors = {Entry("tokens", tokens), Entry("classes", classes), Entry("logits", logits)};
  const at::Tensor lengths = all.inputs.lengths.defined() ? all.inputs.lengths.cpu() : at::Tensor();
  if (lengths.defined()) file.tensors.push_back(Entry("lengths", lengths));
  WriteFileAtomically(options.dump, "data.safetensors", WriteSafetensors(file));
}

std::vector<double> TimeSteps(Workbench& bench, const Options& options) {
  const at::Device device = bench.data.device();
  const std::int64_t micro_batch = options.micro_batch.value_or(
      ChooseMicroBatch(bench.decoder.config(), bench.data.length(), options.batch, device));
  Trainer trainer(bench.job, &bench.decoder, &bench.parameters, &bench.data,
                  {micro_batch, options.cuda_graphs == "on", !options.all_positions});
  const EpochBatches batches = trainer.BatchesOf(0);
  const auto run = [&](std::int64_t step) { trainer.RunStep(batches, step, step); };
  for (std::int64_t step = 0; step < options.warm_up; ++step) run(step);
  (void)trainer.TakeFigures();
  std::vector<double> seconds;
  const auto all_began = Clock::now();
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto began = Clock::now();
    run(options.warm_up + step);
    if (!device.is_cpu()) continue;
    const std::chrono::duration<double> took = Clock::now() - began;
    seconds.push_back(took.count());
  }
  (void)trainer.TakeFigures();
  if (!device.is_cpu()) {
    const std::chrono::duration<double> took = Clock::now() - all_began;
    seconds.assign(static_cast<std::size_t>(options.steps),
                   took.count() / static_cast<double>(options.steps));
  }
  return seconds;
}

// Runs over the first `examples` test examples after a warm-up: a few examples on a CPU, all of
// them on a GPU.
template <typename Run>
auto TimeOnce(const Workbench& bench, std::int64_t examples, double* seconds, const Run& run) {
  const std::int64_t few = std::max<std::int64_t>(1, examples / 16);
  (void)run(bench.data.device().is_cpu() ? few : examples);
  const auto began = Clock::now();
  auto found = run(examples);
  *seconds = SecondsSince(began);  // the result is on the host, so no device is still computing
  return found;
}

void AddEvaluation(const Workbench& bench, std::int64_t examples, nlohmann::json* into) {
  const std::int64_t begin = bench.data.train_examples();
  double seconds = 0;
  const Score score = TimeOnce(bench, examples, &seconds, [&](std::int64_t count) {
    return Evaluate(bench.decoder, bench.data, begin, begin + count);
  });
  (*into)["evaluation_seconds"] = {seconds};
  (*into)["evaluation"] = {
      {"scored", score.total}, {"loss", {score.loss}}, {"correct", {score.correct}}};
}

void AddAblation(const Workbench& bench, std::int64_t examples, nlohmann::json* into) {
  HeadAblationOptions options;  // zeroes each head alone, over test examples
  double seconds = 0;
  const HeadAblationResult found = TimeOnce(bench, examples, &seconds, [&](std::int64_t count) {
    options.max_examples = count;
    return AblateHeads(bench.decoder, bench.data, bench.job.seed, options);
  });
  std::vector<double> loss = {found.intact.nll};
  std::vector<std::int64_t> correct = {found.intact.correct};
  for (const auto& layer : found.entries) {
    for (const std::optional<PairedScore>& head : layer) {
      loss.push_back(head.value().nll);
      correct.push_back(head.value().correct);
    }
  }
  (*into)["ablation_seconds"] = {seconds};
  (*into)["ablation"] = {{"scored", found.intact.total}, {"loss", loss}, {"correct", correct}};
}

// The passes without gradients come first, so that both sides use the starting weights.
nlohmann::json Measure(Workbench& bench, const Options& options) {
  nlohmann::json found = {{"parameters", bench.parameters.count()}};
  if (options.evaluate > 0) AddEvaluation(bench, options.evaluate, &found);
  if (options.ablate > 0) AddAblation(bench, options.ablate, &found);
  found["seconds"] = TimeSteps(bench, options);
  found["peak_bytes"] = PeakBytes(options.device);
  return found;
}

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("--protocol", options.protocol)->check(CLI::IsMember({"clean", "published"}));
  app.add_option("--pe", options.pe);
  app.add_option("--task", options.task);
  app.add_option("--batch", options.batch)->check(CLI::Range(1, 4096));
  app.add_flag("--small", options.small);
  CLI::Option* const print_job = app.add_flag("--print-job", options.print_job);
  app.add_flag("--whole", options.whole, "the protocol's own examples, batch and epochs")
      ->needs(print_job);
  app.add_option("--seed", options.seed)->check(CLI::NonNegativeNumber);
  CLI::Option* const seeds = app.add_option("--seeds", options.seeds)->check(CLI::Range(1, 64));
  for (const auto& [name, examples] :
       {std::pair("--evaluate", &options.evaluate), std::pair("--ablate", &options.ablate)}) {
    app.add_option(name, *examples, "test examples")->check(CLI::Range(1, 100000))->excludes(seeds);
  }
  app.add_option("--steps", options.steps)->check(CLI::Range(1, 1000));
  app.add_option("--epochs", options.epochs, "of the job that --print-job writes")
      ->check(CLI::Range(1, 1000));
  app.add_option("--warm-up", options.warm_up)->check(CLI::Range(0, 1000));
  app.add_option("--device", options.device);
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"float32", "bf16"}));
  app.add_flag("--tf32", options.tf32, "products of float32 in TF32");
  app.add_flag("--no-attention-dropout", options.no_attention_dropout);
  app.add_option("--cuda-graphs", options.cuda_graphs)->check(CLI::IsMember({"on", "off"}));
  app.add_flag("--all-positions", options.all_positions, "padding that nobody reads too");
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--micro-batch", options.micro_batch, "0: the whole batch [default: as a trainer]")
      ->check(CLI::Range(0, 4096));
  app.add_option("--dump", options.dump)->check(CLI::ExistingDirectory);
  app.add_option("--spec", options.spec)->check(CLI::ExistingFile)->needs("--dump");
}

void Run(const Options& options) {
  Arguments arguments;
  arguments.jobs = {{options.spec, "."}};
  arguments.device = options.device;
  arguments.threads = options.threads;
  PrepareProcess(arguments);
  std::vector<experiment::Job> jobs;
  for (std::int64_t i = 0; i < options.seeds; ++i) jobs.push_back(JobOf(options, options.seed + i));
  if (options.print_job) {
    std::cout << "{\"job\": \"" << options.seed
              << "\", \"spec\": " << experiment::ToCanonicalJson(jobs[0])
              << ", \"analyses\": []}\n";
    return;
  }
  std::vector<Dataset> data;
  for (const experiment::Job& job : jobs) data.push_back(MakeDataset(job));
  std::vector<const experiment::Job*> members;
  std::vector<const Dataset*> sets;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    members.push_back(&jobs[i]);
    sets.push_back(&data[i]);
  }
  if (options.tf32) at::globalContext().setAllowTF32CuBLAS(true);
  Workbench bench(members, sets, at::Device(options.device));
  if (!options.dump.empty()) {
    Dump(bench, options);
    return;
  }
  std::cout << Measure(bench, options) << "\n";
}

}  // namespace

int BenchMain(int argc, char** argv) {
  Options options;
  CLI::App app("steps of a model at paper size");
  AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  RestartWithBestBlasKernels(argv);
  try {
    Run(options);
  } catch (const std::exception& error) {
    std::cerr << "train_bench: " << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace pelab::trainer

int main(int argc, char** argv) { return pelab::trainer::BenchMain(argc, argv); }
