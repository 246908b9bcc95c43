// Head ablation by fan-out against one pass a head, same model, same examples, alternating; and that both agree.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/model/blas_kernels.h"
#include "worker/trainer/model/torch_compat.h"

namespace {

namespace spec = pelab::spec;
using namespace pelab::trainer;  // NOLINT(google-build-using-namespace): a program of one file
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr std::int64_t kExamples = 4;

struct Timed {
  double seconds = 0;
  at::Tensor logits;
};

Timed Time(at::Tensor (*ablate)(const Decoder&, const Batch&, Hygiene), const Decoder& decoder,
           const Batch& batch) {
  const auto began = Clock::now();
  at::Tensor logits = ablate(decoder, batch, Hygiene::kClean);
  return {std::chrono::duration<double>(Clock::now() - began).count(), std::move(logits)};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Compare(const std::string& protocol) {
  const spec::Job job = spec::MakeJob(
      protocol, "rope", "distance", 0,
      {{"task.train_examples", std::int64_t{256}}, {"task.test_examples", std::int64_t{64}}});
  const Dataset data = MakeDataset(job);
  const LabelSpace labels = LabelSpaceOf(job, data);
  const DeviceData device_data(data, labels, at::kCPU);
  ParameterSet parameters;
  const Decoder decoder(job, ModelConfigFrom(job, labels.classes), &parameters);
  parameters.Materialize(0, at::kCPU, at::kFloat);
  const Batch batch = device_data.Range(0, kExamples).inputs;
  std::vector<double> fan_out;
  std::vector<double> naive;
  double difference = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Timed one = Time(AblatedLogits, decoder, batch);
    const Timed other = Time(AblatedLogitsNaive, decoder, batch);
    fan_out.push_back(one.seconds);
    naive.push_back(other.seconds);
    difference = std::max(difference, (one.logits - other.logits).abs().max().item().toDouble());
  }
  std::printf(
      "%-10s %lld examples, paper size: naive %.2f s, fan-out %.2f s, ratio %.2f, largest logit "
      "difference %.1e\n",
      protocol.c_str(), static_cast<long long>(kExamples), Median(naive), Median(fan_out),
      Median(naive) / Median(fan_out), difference);
}

}  // namespace

int main(int, char** argv) {
  RestartWithBestBlasKernels(argv);
  ConfigureDeterminism(2);
  for (const char* const protocol : {"clean", "published"}) Compare(protocol);
  return 0;
}
