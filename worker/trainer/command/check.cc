// The check command: tries an encoding on small random inputs and says what holds. Everything that
// a training relies on is tried once, so that a mistake shows in a second and not in a sweep.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/failure.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/pe/own_source.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

using experiment::Job;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kClasses = 8;
constexpr std::int64_t kExamples = 8;
constexpr double kRounding = 1e-4;      // that two 32-bit numbers near 1 may differ by
constexpr double kRelative = 0.02;      // between a gradient and its finite difference
constexpr double kNoInfluence = 1e-12;  // the largest gradient of such a parameter, to that of all
constexpr std::int64_t kEntries = 3;    // of each parameter whose gradient is checked

struct Model {
  explicit Model(const Job& job, at::ScalarType type = at::kFloat, Trial trial = Trial::kTried)
      : config(ModelConfigFrom(job, kClasses)), decoder(job, config, &parameters, trial) {
    parameters.Materialize(job.seed, at::kCPU, type);
  }
  ModelConfig config;
  ParameterSet parameters;
  Decoder decoder;
};

Job With(Job job, const std::string& field, const catalog::Value& value) {
  job.values[field] = value;
  return job;
}
Job Reading(const Job& job, const std::string& readout) {
  return With(job, "model.readout", readout);
}

at::Tensor RandomTokens(const Model& model, std::int64_t length) {
  return at::randint(catalog::kFirstWord, model.config.vocabulary, {kExamples, length}, at::kInt);
}

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }
bool IsFinite(const at::Tensor& x) { return x.isfinite().all().item<bool>(); }

// Sums the logits with fixed weights: one number whose gradients are those of all logits.
at::Tensor Summed(const Model& model, const at::Tensor& tokens) {
  const at::Tensor logits = model.decoder.Logits({tokens, {}}, nullptr);
  const at::Tensor weights = at::cos(at::arange(logits.numel(), logits.options()));
  return (logits * weights.view(logits.sizes())).sum();
}

at::Tensor Gradients(Model& model, const at::Tensor& tokens) {
  model.parameters.flat_gradient().zero_();
  Summed(model, tokens).backward();
  return model.parameters.flat_gradient().clone();
}

std::string Short(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}
std::string Percent(double share) {
  return share < 1 ? Short(100 * share) + " %" : "100 % or more";
}
std::string Milliseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", value);
  return text;
}

class Checks {
 public:
  explicit Checks(const Job& job) : job_(job) {}

  // Runs all checks. The first that the encoding itself fails ends them: what follows would fail
  // for the same reason.
  Json Run() {
    try {
      if (!Shapes()) return Found();
      Causality();
      Independence();
      Determinism();
      State();
      Gradients();
      Shift();
      Speed();
    } catch (const std::exception&) {
      Add("module", "failed", CurrentFailure().message);
    }
    return Found();
  }
  bool failed() const { return failed_; }

 private:
  Json Found() const {
    return {{"encoding", job_.HasField("pe.encoding") ? job_.Choice("pe.encoding") : job_.pe},
            {"parameters", parameters_},
            {"checks", rows_}};
  }
  void Add(const std::string& name, const std::string& status, const std::string& text) {
    failed_ = failed_ || status == "failed";
    rows_.push_back({{"name", name}, {"status", status}, {"text", text}});
  }
  void Judge(const std::string& name, bool holds, const std::string& good, const std::string& bad) {
    Add(name, holds ? "ok" : "failed", holds ? good : bad);
  }

  // Every length, and both read-outs (T' = T and T' = 1). Wrong shapes throw. False if some numbers
  // are not finite: then nothing else can be judged.
  bool Shapes() {
    const std::int64_t most = job_.Int("task.length");
    bool finite = true;
    for (const char* readout : {"mean", "last"}) {
      const Model model(Reading(job_, readout));
      for (const std::int64_t length : {most, most / 2, std::int64_t{1}}) {
        const at::NoGradGuard no_grad;
        finite =
            finite && IsFinite(model.decoder.Logits({RandomTokens(model, length), {}}, nullptr));
      }
      CountParameters(model);
    }
    Add("shapes", "ok", "lengths 1, " + std::to_string(most / 2) + " and " + std::to_string(most));
    Judge("finite", finite, "all logits are finite", finite ? "" : WhyNotFinite());
    return finite;
  }

  // Names the first method that gives NaN or infinity. None does if the products of finite numbers
  // overflow, or if every key of a query is hidden by minus infinity.
  std::string WhyNotFinite() const {
    const std::string found = "some logits are not finite: ";
    try {
      const Model model(Reading(job_, "mean"), at::kFloat, Trial::kNamesMethods);
      const at::NoGradGuard no_grad;
      model.decoder.Logits({RandomTokens(model, job_.Int("task.length")), {}}, nullptr);
    } catch (const TrainerError&) {
      return found + CurrentFailure().message;
    }
    return found + "a method gives very large numbers, or minus infinity for every key of a query";
  }

  void CountParameters(const Model& model) {
    parameters_ = 0;
    for (const auto& named : model.parameters.NamedTensors()) {
      if (named.name.rfind("pe.", 0) == 0) parameters_ += named.tensor.numel();
    }
  }

  // The residual stream after every layer, (layers, B, T, D).
  static at::Tensor Streams(const Model& model, const at::Tensor& tokens) {
    const at::NoGradGuard no_grad;
    const Batch batch{tokens, {}};
    const at::Tensor input = model.decoder.Embed(batch);
    Residual x = input;
    std::vector<at::Tensor> streams;
    for (std::int64_t layer = 0; layer < model.config.layers; ++layer) {
      const auto projected = model.decoder.ProjectLayer(layer, x, input, batch);
      const at::Tensor heads = model.decoder.Heads(layer, projected, batch, nullptr);
      x = model.decoder.AfterFeedForward(
          layer, model.decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
      streams.push_back(x.x);
    }
    return at::stack(streams);
  }

  // Behind a causal mask, another token must not change what comes before it.
  void Causality() {
    const Model model(With(Reading(job_, "mean"), "model.mask", std::string("causal")));
    const std::int64_t length = job_.Int("task.length"), from = length / 2;
    const at::Tensor tokens = RandomTokens(model, length);
    at::Tensor other = tokens.clone();
    other.narrow(1, from, length - from)
        .copy_(RandomTokens(model, length).narrow(1, from, length - from));
    const at::Tensor change = Streams(model, tokens) - Streams(model, other);
    const double before = Largest(change.narrow(2, 0, from));
    Judge("causality", before < kRounding,
          "later tokens change nothing at earlier positions (model.mask: causal)",
          "with model.mask causal, later tokens change earlier positions by up to " +
              Short(before) + ": a method mixes positions, for instance by a mean over keys");
  }

  // In a training and in an ablation an example is with others in a batch: which ones must not
  // change its numbers.
  void Independence() {
    const Model model(Reading(job_, "mean"));
    const at::Tensor tokens = RandomTokens(model, job_.Int("task.length"));
    const at::Tensor other = at::cat({tokens.narrow(0, 0, 1), RandomTokens(model, tokens.size(1))});
    const auto first = [&](const at::Tensor& batch) {
      return Streams(model, batch).narrow(1, 0, 1);
    };
    const double change = Largest(first(tokens) - first(other));
    Judge("examples", change < kRounding, "the other examples of a batch change nothing",
          "an example's numbers change by up to " + Short(change) +
              " with the other examples of its batch: a method mixes examples, for instance by a "
              "mean over the first dimension");
  }

  void Determinism() {
    Model model(Reading(job_, "mean"));
    const at::Tensor tokens = RandomTokens(model, job_.Int("task.length"));
    const bool same = Gradients(model, tokens).equal(Gradients(model, tokens));
    Judge("determinism", same, "two runs give the same gradients, bit for bit",
          "two runs of the same inputs give different gradients");
  }

  // A training that goes on after an interruption has a new module with the kept parameters.
  void State() {
    Model used(Reading(job_, "mean"));
    const at::Tensor tokens = RandomTokens(used, job_.Int("task.length"));
    {
      const at::NoGradGuard no_grad;
      const at::Tensor flat = used.parameters.flat();
      flat.add_(0.01 * at::randn(flat.sizes(), flat.options()));
    }
    for (int i = 0; i < 3; ++i) Summed(used, tokens).backward();
    Model fresh(Reading(job_, "mean"));
    const at::NoGradGuard no_grad;
    fresh.parameters.flat().copy_(used.parameters.flat());
    Judge("resumption", Summed(used, tokens).equal(Summed(fresh, tokens)),
          "a new module with the kept parameters goes on with the same numbers",
          "a new module with the same parameters gives other numbers: a method changes the module, "
          "or the initial values depend on more than the seed");
  }

  // In double precision, where differences are exact enough. A module may compute in 32 bits only.
  void Gradients() {
    if (parameters_ == 0) return Add("gradients", "note", "the module has no parameters");
    try {
      CompareGradients();
    } catch (const TrainerError&) {
      Add("gradients", "note",
          "not compared with finite differences: the module does not take 64-bit tensors; "
          "x.to(self.weight.dtype) makes it take both");
    }
  }

  void CompareGradients() {
    Model model(Reading(job_, "mean"), at::kDouble);
    const at::Tensor tokens = RandomTokens(model, job_.Int("task.length"));
    const at::Tensor gradient = Gradients(model, tokens);
    double worst = 0;
    std::string where;
    std::string idle;
    for (const auto& named : model.parameters.NamedTensors()) {
      if (named.name.rfind("pe.", 0) != 0) continue;
      const at::Tensor values = named.tensor.flatten();
      const at::Tensor own = gradient.narrow(0, OffsetOf(model, named.tensor), values.numel());
      if (Largest(own) <= kNoInfluence * Largest(gradient))
        idle += (idle.empty() ? "" : ", ") + named.name;
      const double error = WorstDifference(model, tokens, values, own);
      if (error > worst) {
        worst = error;
        where = named.name;
      }
    }
    Judge("gradients", worst <= kRelative, "within " + Percent(worst) + " of finite differences",
          where + ": the gradient is " + Percent(worst) +
              " off the finite difference: a method detaches it or is not smooth");
    if (!idle.empty()) {
      Add("influence", "note", "no logit depends on " + idle + " at the initial values");
    }
  }

  static std::int64_t OffsetOf(const Model& model, const at::Tensor& tensor) {
    return tensor.storage_offset() - model.parameters.flat().storage_offset();
  }

  // The largest relative error over a few entries: those with the largest gradients, which differ
  // most from rounding.
  static double WorstDifference(const Model& model, const at::Tensor& tokens,
                                const at::Tensor& values, const at::Tensor& gradient) {
    const at::NoGradGuard no_grad;
    double worst = 0;
    const std::int64_t count = std::min(kEntries, values.numel());
    const at::Tensor largest = std::get<1>(gradient.abs().topk(count));
    for (std::int64_t i = 0; i < count; ++i) {
      at::Tensor entry = values.select(0, largest[i].item<std::int64_t>());
      const double at = entry.item<double>(), step = 1e-4 * (1 + std::abs(at));
      entry.fill_(at + step);
      const double above = Summed(model, tokens).item<double>();
      entry.fill_(at - step);
      const double below = Summed(model, tokens).item<double>();
      entry.fill_(at);
      const double found = (above - below) / (2 * step);
      const double given = gradient[largest[i]].item<double>();
      const double scale = std::max({std::abs(found), std::abs(given), 1e-4});
      worst = std::max(worst, std::abs(found - given) / scale);
    }
    return worst;
  }

  // With the same query and the same key everywhere, the weights of the attention show how the
  // encoding alone sees positions. The values mark the key: example j has a one at position j.
  void Shift() {
    const Model model(Reading(job_, "mean"));
    const std::int64_t length = job_.Int("task.length"), heads = model.config.heads;
    const std::int64_t size = model.config.head_dim();
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
    const auto everywhere = [&] {
      return at::randn({1, 1, heads, size}, options).expand({length, length, heads, size});
    };
    Decoder::KeysValues inputs{everywhere(), everywhere(), {}, {}, {}};
    inputs.value =
        at::eye(length, options).view({length, length, 1, 1}).expand({length, length, heads, size});
    const at::NoGradGuard no_grad;
    const Batch batch{RandomTokens(model, length).narrow(0, 0, 1).expand({length, length}), {}};
    double worst = 0;
    for (std::int64_t layer = 0; layer < model.config.layers; ++layer) {
      const at::Tensor out = model.decoder.Heads(layer, inputs, batch, nullptr) -
                             BiasOnly(model, layer, inputs, batch);
      worst = std::max(worst, ShiftOf(out.view({length, length, heads, size}).select(3, 0)));
    }
    const bool adds = job_.HasField("pe.methods") && job_.Has("pe.methods", "input_term");
    Add("shift", "note",
        adds                      ? "adds positions to the input"
        : worst < 100 * kRounding ? "the attention depends on distances alone"
                                  : "the attention depends on positions, not on distances alone (" +
                                        Percent(worst) + ")");
  }

  // Returns the output of the heads for values of zero, which is the bias of the values.
  static at::Tensor BiasOnly(const Model& model, std::int64_t layer, Decoder::KeysValues inputs,
                             const Batch& batch) {
    inputs.value = at::zeros_like(inputs.value);
    return model.decoder.Heads(layer, inputs, batch, nullptr);
  }

  // `weights` (keys, queries, heads). How much the weights of neighboring keys, relative to one
  // another, change when query and keys move on by one. Weights near zero say nothing.
  static double ShiftOf(const at::Tensor& weights) {
    const std::int64_t length = weights.size(0);
    const at::Tensor first = weights.narrow(0, 0, length - 1),
                     next = weights.narrow(0, 1, length - 1);
    const at::Tensor clear = (first.abs() > kRounding).logical_and(next.abs() > kRounding);
    const at::Tensor ratio = next / first;
    const auto here = [&](const at::Tensor& x) {
      return x.narrow(0, 0, length - 2).narrow(1, 0, length - 1);
    };
    const auto there = [&](const at::Tensor& x) {
      return x.narrow(0, 1, length - 2).narrow(1, 1, length - 1);
    };
    const at::Tensor change =
        (here(ratio) - there(ratio)).abs() / (here(ratio).abs() + there(ratio).abs() + kRounding);
    const at::Tensor both = here(clear).logical_and(there(clear));
    return at::where(both, change, at::zeros_like(change)).max().item<double>();
  }

  // Milliseconds of one forward and backward pass, the least of several.
  static double StepTime(Model& model, const at::Tensor& tokens) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto began = std::chrono::steady_clock::now();
      Gradients(model, tokens);
      least = std::min(least, 1e3 * SecondsSince(began));
    }
    return least;
  }
  static at::Tensor Gradients(Model& model, const at::Tensor& tokens) {
    return trainer::Gradients(model, tokens);
  }

  void Speed() {
    Job rope = experiment::MakeJob("clean", "rope", job_.task, job_.seed, job_.values);
    Model own(Reading(job_, "mean"), at::kFloat), other(Reading(rope, "mean"), at::kFloat);
    const at::Tensor tokens = RandomTokens(own, job_.Int("task.length")).repeat({8, 1});
    double mine = 1e9, theirs = 1e9;
    for (int i = 0; i < 3; ++i) {
      mine = std::min(mine, StepTime(own, tokens));
      theirs = std::min(theirs, StepTime(other, tokens));
    }
    char text[120];
    std::snprintf(text, sizeof text, "%s a step of 64 examples, %.2f times rope's %s",
                  Milliseconds(mine).c_str(), mine / theirs, Milliseconds(theirs).c_str());
    Add("speed", "note", text);
  }

  const Job& job_;
  Json rows_ = Json::array();
  std::int64_t parameters_ = 0;
  bool failed_ = false;
};

}  // namespace

bool CheckEncoding(const Arguments& arguments) {
  if (arguments.parent_fd >= 0) EndWithParent(arguments.parent_fd);
  const experiment::JobDocument document = ReadJobDocument(arguments.jobs.front().spec);
  ConfigureDeterminism(arguments.threads);
  UseFilesIn(arguments.files);
  at::manual_seed(0);
  Checks checks(document.job);
  std::cout << checks.Run().dump() << "\n";
  return !checks.failed();
}

}  // namespace pelab::trainer
