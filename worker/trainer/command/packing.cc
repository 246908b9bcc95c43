#include "worker/trainer/command/packing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/experiment/configuration.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

// How long to measure. On CUDA the first steps run without a graph and one captures it. On a CPU
// steps are long, so a few show their cost.
struct Looks {
  std::int64_t warm_up, steps;
  int rounds;
};
Looks LooksOn(at::Device device) { return device.is_cpu() ? Looks{1, 2, 2} : Looks{5, 8, 3}; }

// Packing must be at least 2 % faster, so that noise does not decide.
constexpr double kWorthIt = 0.98;

void RequireOneConfiguration(const std::vector<JobRun*>& jobs) {
  const JobRun& first = *jobs.front();
  const std::string configuration = experiment::TemplateOf(first.spec_json(), first.job().seed);
  for (const JobRun* other : jobs) {
    if (experiment::TemplateOf(other->spec_json(), other->job().seed) == configuration) continue;
    throw TrainerError(ErrorKind::kBadSpec,
                       other->files().spec + ": it differs from " + first.files().spec +
                           " in more than the seed; allowed together: jobs of one configuration");
  }
}

// On a CPU: whether the packed batch fits into the memory limit of one job's batch
// (train/micro_batch.h).
bool HasRoom(const Arguments& arguments, JobRun* job, std::int64_t width) {
  const at::Device device(arguments.device);
  if (!device.is_cpu()) return true;
  if (arguments.micro_batch.value_or(0) != 0) return false;
  const LabelSpace labels = LabelSpaceOf(job->job(), job->dataset());
  return ChooseMicroBatch(ModelConfigFrom(job->job(), labels.classes), job->dataset().length,
                          job->job().Int("train.batch_size") * width, device) == 0;
}

// Measures the seconds per step of the whole batch: the least of several rounds.
class StepClock {
 public:
  StepClock(const Arguments& arguments, const std::vector<JobRun*>& jobs, std::int64_t width)
      : bench_(PackedBench(jobs, width, at::Device(arguments.device))),
        trainer_(bench_.job, &bench_.decoder, &bench_.parameters, &bench_.data,
                 {arguments.micro_batch.value_or(0), arguments.cuda_graphs}),
        batches_(trainer_.BatchesOf(0)) {
    Run(LooksOn(bench_.data.device()).warm_up);
  }
  void Round() {
    const std::int64_t steps = LooksOn(bench_.data.device()).steps;
    least_ = std::min(least_, Run(steps) / static_cast<double>(steps));
  }
  double least() const { return least_; }
  const Workbench& bench() const { return bench_; }

 private:
  double Run(std::int64_t steps) {
    const auto began = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < steps; ++i) {
      ThrowIfStopped();
      trainer_.RunStep(batches_, 0, step_++ % trainer_.steps());
    }
    trainer_.TakeFigures();  // waits for the device
    return SecondsSince(began);
  }

  Workbench bench_;
  Trainer trainer_;
  EpochBatches batches_;
  std::int64_t step_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

// Alternates between single and packed steps, so that other load on the host affects both.
StepSeconds Measure(const Arguments& arguments, const std::vector<JobRun*>& jobs,
                    std::int64_t width) {
  StepClock alone(arguments, {jobs.front()}, 1);
  alone.Round();
  StepSeconds seconds{alone.least(), std::numeric_limits<double>::infinity()};
  try {
    StepClock packed(arguments, jobs, width);
    for (int i = 0; i < LooksOn(at::Device(arguments.device)).rounds; ++i) {
      packed.Round();
      alone.Round();
    }
    seconds = {alone.least(), packed.least() / static_cast<double>(jobs.size())};
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    if (CurrentFailure().kind != ErrorKind::kOutOfMemory) throw;
  }
  return seconds;
}

}  // namespace

Workbench PackedBench(const std::vector<JobRun*>& jobs, std::int64_t width, at::Device device) {
  std::vector<const experiment::Job*> members;
  std::vector<const Dataset*> data;
  for (std::int64_t m = 0; m < width; ++m) {
    JobRun& job = *jobs[m < static_cast<std::int64_t>(jobs.size()) ? m : 0];
    members.push_back(&job.job());
    data.push_back(&job.dataset());
  }
  return Workbench(members, data, device);
}

bool IsTheSameAlone(const Arguments& arguments, JobRun* job) {
  const ModelConfig config =
      ModelConfigFrom(job->job(), LabelSpaceOf(job->job(), job->dataset()).classes);
  return at::Device(arguments.device).is_cpu() &&
         job->job().Choice("train.precision") == "float32" &&
         (config.reads_padding() || !job->dataset().HasPadding());
}

Packing ChoosePacking(const Arguments& arguments, const std::vector<JobRun*>& jobs) {
  RequireOneConfiguration(jobs);
  const auto count = static_cast<std::int64_t>(jobs.size());
  if (arguments.packing.way == PackingWay::kOff) return {};
  if (arguments.packing.way == PackingWay::kOn) {
    // Copies of the first job are not needed if results do not depend on the number of members.
    const bool alone = IsTheSameAlone(arguments, jobs.front());
    return {alone ? count : std::max(count, arguments.packing.width), std::nullopt};
  }
  if (count == 1 || !HasRoom(arguments, jobs.front(), count)) return {};
  const StepSeconds seconds = Measure(arguments, jobs, count);
  return {seconds.packed < kWorthIt * seconds.alone ? count : 1, seconds};
}

}  // namespace pelab::trainer
