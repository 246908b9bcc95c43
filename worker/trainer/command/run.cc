// The run command: trains one job, or several that differ only in their seed, from documents to
// kept weights, and writes their events.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/hello.h"
#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/packing.h"
#include "worker/trainer/command/weights.h"
#include "worker/trainer/command/workbench.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

using Clock = std::chrono::steady_clock;

// Runs `step` for the job. An exception, except for a stop, fails this job only.
template <typename Step>
void ForJob(JobRun* job, const Step& step) {
  if (!job->open()) return;
  try {
    step();
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    job->Fail(CurrentFailure());
  }
}

// Trains jobs that start at the same epoch as one batch.
class JointTraining {
 public:
  JointTraining(const Arguments& arguments, const Packing& packing, std::vector<JobRun*> jobs,
                std::int64_t start)
      : arguments_(arguments),
        jobs_(std::move(jobs)),
        bench_(PackedBench(jobs_, packing.width, at::Device(arguments.device))),
        trainer_(bench_.job, &bench_.decoder, &bench_.parameters, &bench_.data,
                 {*arguments.micro_batch, arguments.cuda_graphs}),
        start_(start) {
    for (JobRun* job : jobs_) {
      checkpoints_.emplace_back(arguments, ExecutionText(arguments, packing, job), job);
      EmitHello(arguments, packing, bench_, start, job);
    }
  }

  void Restore(std::size_t member, const Checkpoint& checkpoint) {
    trainer_.Restore(checkpoint, static_cast<std::int64_t>(member));
  }

  void Run() {
    const std::int64_t epochs = bench_.job.Int("train.epochs");
    try {
      for (std::int64_t epoch = start_; epoch < epochs && SomeOpen(); ++epoch) RunEpoch(epoch);
      for (std::size_t m = 0; m < jobs_.size(); ++m) ForJob(jobs_[m], [&] { Finish(m); });
    } catch (const Stopped&) {
      for (std::size_t m = 0; m < jobs_.size(); ++m) {
        ForJob(jobs_[m], [&] { checkpoints_[m].Write(); });
      }
      throw;
    }
  }

 private:
  bool SomeOpen() const {
    return std::any_of(jobs_.begin(), jobs_.end(), [](const JobRun* job) { return job->open(); });
  }

  void RunEpoch(std::int64_t epoch) {
    const std::vector<EpochResult> results = trainer_.RunEpoch(epoch);
    for (std::size_t m = 0; m < jobs_.size(); ++m) {
      ForJob(jobs_[m], [&] {
        RequireFinite(results[m]);
        jobs_[m]->events().Emit("epoch", ToJson(results[m]));
        checkpoints_[m].Boundary(trainer_.Snapshot(epoch + 1, static_cast<std::int64_t>(m)));
      });
    }
  }

  void Finish(std::size_t m) {
    JobRun& job = *jobs_[m];
    const auto member = static_cast<std::int64_t>(m);
    if (!job.document().analyses.empty()) Analyze(&job, member);
    const FileInfo weights =
        WriteWeights(job.files().workdir, job.spec_json(), bench_.parameters, member);
    job.Done({{"weights", FileJson(weights)}, {"wall_seconds", SecondsSince(began_)}});
  }

  // Analyses work on models of one member, so this copies the member into its own model if
  // necessary.
  void Analyze(JobRun* job, std::int64_t member) {
    const auto run = [&](const Workbench& bench) {
      RunAnalyses(job->document().analyses, job->files().workdir, bench, &job->events());
    };
    if (bench_.parameters.members() == 1) return run(bench_);
    Workbench own = PackedBench({job}, 1, at::Device(arguments_.device));
    own.parameters.PutMember(bench_.parameters.TakeMember(bench_.parameters.flat(), member), 0,
                             own.parameters.flat());
    own.parameters.Round();
    run(own);
  }

  const Clock::time_point began_ = Clock::now();
  const Arguments& arguments_;
  std::vector<JobRun*> jobs_;
  Workbench bench_;
  Trainer trainer_;
  std::int64_t start_;
  std::vector<Checkpoints> checkpoints_;
};

// After interruptions, jobs may resume from different epochs. Jobs of the same start epoch are
// trained together, one group after another, the most advanced first.
void TrainTogether(const Arguments& arguments, const Packing& packing,
                   const std::vector<JobRun*>& jobs) {
  struct Starting {
    std::vector<JobRun*> jobs;
    std::vector<std::optional<Checkpoint>> from;
  };
  const std::int64_t parameters = CountParameters(jobs.front()->job(), jobs.front()->dataset());
  std::map<std::int64_t, Starting, std::greater<>> by_epoch;
  for (JobRun* job : jobs) {
    std::optional<Checkpoint> from =
        CheckpointToTakeUp(arguments, *job, ExecutionText(arguments, packing, job), parameters);
    Starting& group = by_epoch[from ? from->epoch : 0];
    group.jobs.push_back(job);
    group.from.push_back(std::move(from));
  }
  for (const auto& [epoch, group] : by_epoch) {
    JointTraining training(arguments, packing, group.jobs, epoch);
    for (std::size_t m = 0; m < group.from.size(); ++m) {
      if (group.from[m]) training.Restore(m, *group.from[m]);
    }
    training.Run();
  }
}

// Sets the micro-batch for these jobs, if the arguments leave it open, to the value that each would
// have alone.
Arguments Settled(Arguments arguments, JobRun* job) {
  if (!arguments.micro_batch) {
    arguments.micro_batch = ChooseMicroBatch(
        ModelConfigFrom(job->job(), LabelSpaceOf(job->job(), job->dataset()).classes),
        job->dataset().length, job->job().Int("train.batch_size"), at::Device(arguments.device));
  }
  return arguments;
}

}  // namespace

void Run(const Arguments& given, JobLedger* ledger) {
  std::vector<std::unique_ptr<JobRun>> owned;
  std::vector<JobRun*> jobs;
  for (const JobFiles& files : given.jobs) {
    try {
      jobs.push_back(owned.emplace_back(std::make_unique<JobRun>(files, ledger)).get());
    } catch (const std::exception&) {
      const Failure failure = CurrentFailure();
      ReportToPerson(failure);
      ledger->Fail(ledger->newest, failure);
    }
  }
  if (jobs.empty()) return;
  PrepareProcess(given);
  const Arguments arguments = Settled(given, jobs.front());
  const Packing packing = ChoosePacking(arguments, jobs);
  if (packing.width > 1) return TrainTogether(arguments, packing, jobs);
  for (JobRun* job : jobs) {
    ForJob(job, [&] { TrainTogether(arguments, packing, {job}); });
  }
}

}  // namespace pelab::trainer
