// Head ablation at paper size: the fan-out method against one whole pass per entry, with the same
// model and examples in one run. Checks that both give the same logits and the same results.
// ablation_bench [--sequences N]     default 256; takes about N x 1.5 s on two cores
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "worker/trainer/analysis/fan_out.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/config/blas_kernels.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/train/evaluate.h"

namespace {

namespace spec = pelab::spec;
using namespace pelab::trainer;  // NOLINT(google-build-using-namespace): a program of one file
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDataSeed = 0;
constexpr double kTie = 1e-4;  // a prediction may differ if its two largest logits are closer than
                               // this

// A model of paper size with random weights, and its data.
struct Subject {
  explicit Subject(const std::string& protocol, std::int64_t sequences)
      : job(experiment::MakeJob(
            protocol, "rope", "distance", 0,
            {{"task.train_examples", std::int64_t{256}}, {"task.test_examples", sequences}})),
        dataset(MakeDataset(job)),
        labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, at::kCPU),
        decoder(job, ModelConfigFrom(job, labels.classes), &parameters) {
    parameters.Materialize(0, at::kCPU, at::kFloat);
  }
  experiment::Job job;
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  ParameterSet parameters;
  Decoder decoder;
};

double SecondsSince(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

struct Timed {
  double seconds = 0;
  at::Tensor logits;  // (1 + 96, B, C): intact, then each head ablated
};

Timed RunNaive(const Decoder& decoder, const Batch& batch) {
  const auto began = Clock::now();
  const at::Tensor intact = decoder.Logits(batch, nullptr);
  const at::Tensor ablated = AblatedLogitsNaive(decoder, batch, {}).flatten(0, 1);
  return {SecondsSince(began), at::cat({intact.unsqueeze(0), ablated})};
}

Timed RunFanOut(const Decoder& decoder, const Batch& batch) {
  const auto began = Clock::now();
  at::Tensor intact;
  const at::Tensor ablated = AblatedLogits(decoder, batch, {}, &intact).flatten(0, 1);
  return {SecondsSince(began), at::cat({intact.unsqueeze(0), ablated})};
}

// The number of predictions that differ although the naive side's two largest logits are not tied.
std::int64_t Different(const at::Tensor& naive, const at::Tensor& fan_out) {
  const at::Tensor top = std::get<0>(naive.topk(2, -1));
  const at::Tensor decided = (top.select(-1, 0) - top.select(-1, 1)).ge(kTie);
  return naive.argmax(-1).ne(fan_out.argmax(-1)).logical_and(decided).sum().item().toLong();
}

bool Compare(const std::string& protocol, std::int64_t sequences) {
  const Subject subject(protocol, sequences);
  const at::NoGradGuard no_grad;
  const std::int64_t begin = subject.data.train_examples();
  const std::int64_t chunk =
      ChunkExamples(subject.decoder.config(), subject.data.length(), 1, at::kCPU);
  double naive_seconds = 0;
  double fan_out_seconds = 0;
  double difference = 0;
  std::int64_t different = 0;
  RunFanOut(subject.decoder, subject.data.Range(begin, begin + 1).inputs);  // warm-up
  for (std::int64_t at = begin; at < subject.data.size(); at += chunk) {
    const Batch batch = subject.data.Range(at, std::min(at + chunk, subject.data.size())).inputs;
    const Timed fan_out = RunFanOut(subject.decoder, batch);
    const Timed naive = RunNaive(subject.decoder, batch);
    fan_out_seconds += fan_out.seconds;
    naive_seconds += naive.seconds;
    difference =
        std::max(difference, (fan_out.logits - naive.logits).abs().max().item().toDouble());
    different += Different(naive.logits, fan_out.logits);
  }
  std::printf(
      "%-10s %lld sequences, paper size: naive %.1f s, fan-out %.1f s, ratio %.2f; largest logit "
      "difference %.1e, %lld predictions differ beyond ties\n",
      protocol.c_str(), static_cast<long long>(sequences), naive_seconds, fan_out_seconds,
      naive_seconds / fan_out_seconds, difference, static_cast<long long>(different));
  std::fflush(stdout);
  return difference <= kTie && different == 0;
}

// The value of --sequences; 0 if the arguments are wrong.
std::int64_t SequencesFrom(int argc, char** argv) {
  if (argc == 1) return 256;
  std::int64_t sequences = 0;
  if (argc == 3 && std::strcmp(argv[1], "--sequences") == 0) {
    const char* const end = argv[2] + std::strlen(argv[2]);
    const auto [stop, error] = std::from_chars(argv[2], end, sequences);
    if (error != std::errc() || stop != end || sequences < 1 || sequences > 30000) return 0;
  }
  return sequences;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t sequences = SequencesFrom(argc, argv);
  if (sequences == 0) {
    std::fprintf(stderr, "usage: ablation_bench [--sequences N]; N from 1 to 30000\n");
    return 2;
  }
  RestartWithBestBlasKernels(argv);
  ConfigureDeterminism(2);
  bool equal = true;
  for (const char* const protocol : {"clean", "published"}) {
    equal = Compare(protocol, sequences) && equal;
  }
  return equal ? 0 : 1;
}
