#include "worker/agent/trainer_run.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/rpc/token_variable.h"
#include "worker/agent/strays.h"

namespace pelab::agent {
namespace {

constexpr int kTrainerParentFd = 3;
// How long to try to fetch a checkpoint while the coordinator is away: it may hold hours of
// training.
constexpr absl::Duration kFetchPatience = absl::Minutes(10);

using Arguments = std::vector<std::string>;

bool IsStopped(const Attempt& attempt) { return attempt.stop_reason() != StopReason::kNone; }

v1::Finished FailedBy(state::ErrorKind kind, const absl::Status& status) {
  return Failed(kind, {status.message().data(), status.message().size()});
}

// A later attempt uses the settings of the job's first attempt, whatever this host's options are.
int ThreadsOf(const AttemptContext& context, const v1::Assignment& assignment) {
  return assignment.has_execution() ? assignment.execution().threads() : context.threads;
}
std::string MicroBatchOf(const AttemptContext& context, const v1::Assignment& assignment) {
  if (assignment.has_execution()) return absl::StrCat(assignment.execution().micro_batch());
  return context.micro_batch ? absl::StrCat(*context.micro_batch) : "auto";
}
Arguments PackingOf(const v1::Assignment& assignment, std::size_t jobs) {
  if (!assignment.has_execution()) return jobs > 1 ? Arguments{"--packing", "auto"} : Arguments{};
  const int packing = assignment.execution().packing();
  return {"--packing", packing > 1 ? absl::StrCat(packing) : "off"};
}

// Adds the arguments of one of the trainer's jobs.
void AddJob(const AttemptContext& context, const v1::Assignment& assignment,
            const std::string& job_dir, Arguments* arguments) {
  arguments->insert(
      arguments->end(),
      {"--spec", absl::StrCat(context.work_dir->AttemptDir(assignment.attempt_id()), "/job.json"),
       "--workdir", job_dir});
  if (assignment.has_weights()) {
    arguments->insert(arguments->end(), {"--weights", WeightsPath(context, assignment)});
  } else {
    arguments->insert(arguments->end(),
                      {"--max-start-epoch", absl::StrCat(assignment.max_start_epoch())});
  }
}

// Adds the arguments that all jobs share, taken from the `first`.
void AddTraining(const AttemptContext& context, const v1::Assignment& first, std::size_t jobs,
                 Arguments* arguments) {
  const CheckpointCadence& every = context.checkpoint_every;
  const Arguments packing = PackingOf(first, jobs);
  arguments->insert(arguments->end(), {"--micro-batch", MicroBatchOf(context, first), "--resume"});
  arguments->insert(arguments->end(), packing.begin(), packing.end());
  if (every.epochs > 0) {
    arguments->insert(arguments->end(), {"--checkpoint-epochs", absl::StrCat(every.epochs)});
  } else {
    arguments->insert(arguments->end(),
                      {"--checkpoint-seconds", absl::StrCat(absl::ToDoubleSeconds(every.time))});
  }
}

}  // namespace

TrainerRun::TrainerRun(const AttemptContext* context, std::optional<SlotPlan> plan, Members members)
    : context_(context),
      plan_(std::move(plan)),
      members_(std::move(members)),
      trainer_id_(MakeTrainerId(context->work_dir->worker_id())) {}

TrainerRun::~TrainerRun() {
  if (thread_.joinable()) thread_.join();
}

void TrainerRun::Start() {
  for (const auto& member : members_) member->Enter(plan_.has_value() ? plan_->slot.slot() : -1);
  thread_ = std::thread([this] { Run(); });
}

// Stopping ----------------------------------------------------------------------------------------

void TrainerRun::Stop(Attempt& member, StopReason reason, absl::Duration grace) {
  member.Stop(reason, grace);
  Obey();
  context_->reservations->Poke();
}

void TrainerRun::Obey() {
  MutexLock lock(&mutex_);
  const auto needs_trainer = [](const auto& member) {
    return !member->settled() && member->stop_reason() < StopReason::kCancel;
  };
  const bool needed = std::any_of(members_.begin(), members_.end(), needs_trainer);
  bool stop = true;
  absl::Duration grace = absl::InfiniteDuration();
  for (const auto& member : members_) {
    if (member->settled()) continue;
    if (needed && !needs_trainer(member)) {
      dismissed_grace_ = std::min(dismissed_grace_, member->grace());
      member->SettleStopped();
      continue;
    }
    stop = stop && IsStopped(*member);
    grace = std::min(grace, member->grace());
  }
  if (process_ == nullptr || !stop) return;
  // If all members are settled, the trainer ends by itself, unless it still works on a cancelled
  // job.
  if (grace == absl::InfiniteDuration()) grace = dismissed_grace_;
  if (grace != absl::InfiniteDuration()) process_->Stop(grace);
}

// Running -----------------------------------------------------------------------------------------

void TrainerRun::Run() {
  if (plan_.has_value()) {
    RunOnSlot();
  } else {
    for (const auto& member : members_) {
      member->SettleAs(
          Failed(state::ErrorKind::kInternal,
                 absl::StrCat("this worker has no slot ", member->assignment().slot())));
    }
  }
  for (const auto& member : members_) member->AwaitEnd();
  for (const auto& member : members_) member->Leave();
}

void TrainerRun::RunOnSlot() {
  std::vector<std::string> taken;
  for (const auto& member : members_) {
    const absl::StatusOr<std::string> job_dir = context_->work_dir->JobDir(member->assignment());
    if (!job_dir.ok()) {
      member->SettleAs(FailedBy(state::ErrorKind::kInternal, job_dir.status()));
      continue;
    }
    taken.push_back(*job_dir);
    directories_[JobName(member->assignment())] = *job_dir;
  }
  const int slot = plan_->slot.slot();
  const bool acquired =
      context_->reservations->Acquire(slot, taken, [this] { return Going().empty(); });
  if (acquired) Train();
  for (const auto& member : members_) {
    if (!member->settled()) member->SettleStopped();
  }
  for (const auto& member : members_) member->AwaitEnd();
  if (acquired) context_->reservations->Release(slot, taken);
}

TrainerRun::Jobs TrainerRun::Going() const {
  Jobs going;
  for (const auto& member : members_) {
    if (!member->settled() && !IsStopped(*member)) going.push_back(member.get());
  }
  return going;
}

void TrainerRun::FetchAll() {
  const absl::Time until = absl::Now() + kFetchPatience;
  for (Attempt* job : Going()) {
    if (const absl::Status files = job->FetchFiles(); !files.ok()) {
      if (!IsStopped(*job)) job->SettleAs(FailedBy(state::ErrorKind::kIo, files));
      continue;
    }
    const absl::Status fetched =
        job->Fetch(directories_.at(JobName(job->assignment())), until - absl::Now());
    if (fetched.ok() || IsStopped(*job)) continue;
    job->SettleAs(Failed(state::ErrorKind::kIo,
                         absl::StrCat("cannot fetch its kept weights: ", fetched.message())));
  }
}

void TrainerRun::Train() {
  for (Attempt* job : Going()) job->SlotTaken(plan_->cuda_visible_devices);
  FetchAll();
  const Jobs jobs = Going();
  if (jobs.empty()) return;
  std::map<std::string, std::string> given;
  for (const Attempt* job : jobs) {
    given.insert(directories_.extract(JobName(job->assignment())));
  }
  directories_ = std::move(given);  // a line about any other job is an error
  absl::StatusOr<std::unique_ptr<TrainerProcess>> process = StartTrainer(jobs);
  if (!process.ok()) {
    for (Attempt* job : jobs) job->SettleAs(FailedBy(state::ErrorKind::kIo, process.status()));
    return;
  }
  for (const Attempt* job : jobs) {
    const LogScope scope(IdsOf(job->assignment()));
    spdlog::info("attempt {}: {} on {}, trainer {}", job->assignment().attempt_id(),
                 job->assignment().label(), plan_->slot.device(), (*process)->pid());
  }
  {
    MutexLock lock(&mutex_);
    process_ = process->get();
  }
  Obey();  // stops that came before process_ was set
  Watch(**process, jobs);
}

absl::StatusOr<std::unique_ptr<TrainerProcess>> TrainerRun::StartTrainer(const Jobs& jobs) {
  const v1::Assignment& first = jobs.front()->assignment();
  const int threads = ThreadsOf(*context_, first);
  SpawnOptions options;
  options.argv = {context_->trainer, first.has_weights() ? "analyze" : "run"};
  for (const Attempt* job : jobs) {
    const std::string& job_dir = directories_.at(JobName(job->assignment()));
    PELAB_RETURN_IF_ERROR(CreateDirectories(job_dir));
    AddJob(*context_, job->assignment(), job_dir, &options.argv);
  }
  options.argv.insert(options.argv.end(),
                      {"--device", plan_->trainer_device, "--threads", absl::StrCat(threads),
                       "--parent-fd", absl::StrCat(kTrainerParentFd)});
  if (first.files_size() > 0) {
    options.argv.insert(options.argv.end(), {"--files", context_->files->directory()});
  }
  if (!first.has_weights()) AddTraining(*context_, first, jobs.size(), &options.argv);
  options.env = {{"CUDA_VISIBLE_DEVICES", plan_->cuda_visible_devices},
                 {"OMP_NUM_THREADS", absl::StrCat(threads)},
                 {kTrainerIdVariable, trainer_id_}};
  // Programs that the trainer starts, such as a profiler, can continue the trace.
  if (!jobs.front()->traceparent().empty()) {
    options.env.emplace_back(kTraceparentVariable, jobs.front()->traceparent());
  }
  // Only the worker may know the coordinator's token: a trainer's environment can end up in its
  // crash reports.
  options.unset_env = {rpc::kTokenVariable, kTraceparentVariable};
  if (plan_->device_memory_bytes > 0) {
    options.env.emplace_back(kDeviceMemoryVariable, absl::StrCat(plan_->device_memory_bytes));
  }
  options.env.insert(options.env.end(), context_->environment.begin(), context_->environment.end());
  options.working_dir = directories_.at(JobName(first));
  options.fds = {{context_->parent_fd, kTrainerParentFd}};
  // LibTorch takes the number of threads from the environment while it is loaded.
  PreloadedTrainer* const preloaded = threads == context_->threads ? context_->preloaded : nullptr;
  return TrainerProcess::Start(std::move(options), preloaded);
}

void TrainerRun::Watch(TrainerProcess& process, const Jobs& jobs) {
  const bool any_packing = plan_->slot.device_kind() == "cpu";
  for (Attempt* job : jobs) {
    job->TrainerStarted(directories_.at(JobName(job->assignment())), any_packing);
  }
  StallWatch watch(context_->attempt_timeout, context_->clock->Monotonic());
  OutputHandler handler;
  handler.on_line = [&](absl::string_view line) { return OnLine(line, jobs, watch); };
  handler.watch = [&](bool listening) {
    return watch.Look(context_->clock->Monotonic(), listening);
  };
  handler.on_stderr = [&](absl::string_view bytes) {
    for (Attempt* job : jobs) {
      if (!job->settled()) job->OnStderr(bytes);
    }
  };
  handler.wants_output = [this] { return !context_->quota->full(); };
  absl::Status output;
  const ExitStatus exit = process.Run(handler, &output);
  {
    MutexLock lock(&mutex_);
    process_ = nullptr;
  }
  // The slot counts as free only when no process of this trainer holds memory any more.
  if (const std::size_t strays = KillStrays(trainer_id_, kStraysPatience); strays > 0) {
    const LogScope scope(IdsOf(jobs.front()->assignment()));
    spdlog::warn("ended {} processes that the trainer of {} had left behind", strays,
                 jobs.front()->assignment().label());
  }
  for (Attempt* job : jobs) job->SettleByTrainer(exit, output);
}

absl::Status TrainerRun::OnLine(absl::string_view line, const Jobs& jobs, StallWatch& watch) {
  PELAB_ASSIGN_OR_RETURN(event::JobLine parsed, event::ParseTrainerLine(line, directories_));
  watch.OnEvent(parsed.line, context_->clock->Monotonic());
  const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Attempt* candidate) {
    return JobName(candidate->assignment()) == parsed.job;
  });
  const bool done = std::holds_alternative<event::DoneLine>(parsed.line);
  const bool over = done || std::holds_alternative<event::ErrorLine>(parsed.line);
  PELAB_RETURN_IF_ERROR((*job)->OnLine(std::move(parsed.line)));
  if (!over || jobs.size() == 1) return absl::OkStatus();
  // A trainer with only this job would have exited with this status.
  (*job)->SettleByTrainer({.signaled = false, .code = done ? 0 : 1}, absl::OkStatus());
  Obey();
  return absl::OkStatus();
}

}  // namespace pelab::agent
