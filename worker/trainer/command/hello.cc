#include "worker/trainer/command/hello.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/build_info.h"
#include "worker/trainer/parameters/torch_compat.h"

namespace pelab::trainer {
namespace {

// The number of members if the job's results depend on it, else 1.
std::int64_t CountingWidth(const Arguments& arguments, const Packing& packing, JobRun* job) {
  return IsTheSameAlone(arguments, job) ? 1 : packing.width;
}

nlohmann::ordered_json Seconds(double seconds) {
  return std::isfinite(seconds) ? nlohmann::ordered_json(seconds) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string ExecutionText(const Arguments& arguments, const Packing& packing, JobRun* job) {
  return "threads " + std::to_string(arguments.threads) + ", micro-batch " +
         std::to_string(arguments.micro_batch.value_or(0)) + ", packing " +
         std::to_string(CountingWidth(arguments, packing, job)) +
         (arguments.plain ? ", plain operations" : "");
}

void EmitHello(const Arguments& arguments, const Packing& packing, const Workbench& bench,
               std::int64_t start_epoch, JobRun* job) {
  const Dataset& data = job->dataset();
  nlohmann::ordered_json hello = {{"protocol", 1},
                                  {"trainer", PELAB_VERSION},
                                  {"libtorch", LibTorchVersion()},
                                  {"device", arguments.device},
                                  {"device_name", DeviceName(arguments.device)},
                                  {"threads", arguments.threads},
                                  {"micro_batch", arguments.micro_batch.value_or(0)},
                                  {"packing", CountingWidth(arguments, packing, job)},
                                  {"start_epoch", start_epoch},
                                  {"epochs", bench.job.Int("train.epochs")},
                                  {"parameters", bench.parameters.count()},
                                  {"train_examples", data.train_examples},
                                  {"test_examples", data.test_examples()},
                                  {"data_sha256", DatasetSha256(data)}};
  if (!BuildCommit().empty()) {
    hello["commit"] = BuildCommit();
    hello["dirty"] = BuildIsDirty();
  }
  // Which container image it runs in; whoever starts the container knows.
  if (const char* image = std::getenv("PELAB_IMAGE"); image != nullptr && *image != '\0') {
    hello["image"] = image;
  }
  if (arguments.plain) hello["kernels"] = "plain";
  if (packing.width > 1) hello["members"] = packing.width;
  if (packing.measured) {
    hello["step_seconds"] = {{"alone", Seconds(packing.measured->alone)},
                             {"packed", Seconds(packing.measured->packed)}};
  }
  job->events().Emit("hello", hello);
}

}  // namespace pelab::trainer
