#include "server/notify/notifier.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::notify {
namespace {

constexpr std::size_t kMostNews = 10'000;  // that no thread has looked at yet

bool IsLive(const v1::Sweep& sweep) {
  return sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE;
}

// The number of each live sweep that has a failed job.
absl::StatusOr<std::set<std::int64_t>> LiveWithFailures(db::Reader& reader) {
  std::set<std::int64_t> sweeps;
  v1::ListSweepsRequest request;
  request.mutable_page()->set_limit(db::kMaxPage);
  do {
    PELAB_ASSIGN_OR_RETURN(const v1::ListSweepsResponse page, reader.ListSweeps(request));
    for (const v1::Sweep& sweep : page.sweeps()) {
      if (IsLive(sweep) && sweep.jobs().failed() > 0) sweeps.insert(sweep.sweep_id());
    }
    request.mutable_page()->set_after(page.next());
  } while (!request.page().after().empty());
  return sweeps;
}

absl::StatusOr<v1::JobRow> ReadJob(db::Reader& reader, std::int64_t job_id) {
  v1::ListJobsRequest request;
  request.mutable_filter()->add_jobs(Concat(job_id));
  request.set_specs_apart(true);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, reader.ListJobs(request));
  if (jobs.jobs_size() > 0) return jobs.jobs(0);
  return absl::NotFoundError(Concat("job ", job_id, " is not there any more"));
}

}  // namespace

Notifier::Notifier(const NotifySettings& settings, std::shared_ptr<rpc::TokenFile> secret,
                   const std::string& database, const Clock& clock)
    : host_(settings.address.host),
      clock_(clock),
      readers_(database),
      post_(settings.address, std::move(secret)),
      outbox_(clock, [] { return RandomUnit(); }) {}

Notifier::~Notifier() { Stop(); }

absl::StatusOr<std::shared_ptr<Notifier>> Notifier::Make(const NotifySettings& settings,
                                                         const std::string& database,
                                                         const Clock& clock) {
  if (!kHasTls && settings.address.host.starts_with("https:")) {
    return absl::InvalidArgumentError(
        "--notify https://… is not possible: httplib was built without OpenSSL");
  }
  std::shared_ptr<rpc::TokenFile> secret;
  if (!settings.secret_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(secret, rpc::TokenFile::Open(settings.secret_file));
  }
  return std::shared_ptr<Notifier>(new Notifier(settings, std::move(secret), database, clock));
}

absl::Status Notifier::Start() {
  PELAB_ASSIGN_OR_RETURN(auto reader, readers_.Take());
  PELAB_ASSIGN_OR_RETURN(told_, LiveWithFailures(*reader));
  spdlog::info("notifications go to {}", host_);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Notifier::BeginStop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  post_.Stop();
}

void Notifier::Stop() {
  BeginStop();
  if (thread_.joinable()) thread_.join();
}

Notifier::Figures Notifier::figures() const {
  return {.delivered = delivered_, .failed = failed_, .dropped = dropped_};
}

bool Notifier::HasRoom() {
  if (news_.size() < kMostNews) return true;
  ++dropped_;
  return false;
}

void Notifier::SweepsEnded(const std::vector<std::int64_t>& sweep_ids) {
  MutexLock lock(&mutex_);
  ending_.insert(ending_.end(), sweep_ids.begin(), sweep_ids.end());
}

// Failures and ends of one commit come to the thread together: a sweep that ends with its first
// failure has both.
void Notifier::Committed(const absl::StatusOr<std::vector<store::ApplyResult>>& results) {
  if (!results.ok()) return;
  MutexLock lock(&mutex_);
  for (const store::ApplyResult& result : *results) {
    if (!result.ok()) continue;
    const auto* event = std::get_if<store::EventStored>(&*result);
    if (event == nullptr || event->status != store::EventStored::kStored || !event->change)
      continue;
    if (event->change->state != state::JobState::kFailed) continue;
    if (HasRoom()) news_.failed_jobs.push_back(event->change->job_id);
  }
  for (const std::int64_t sweep_id : std::exchange(ending_, {})) {
    if (HasRoom()) news_.ended_sweeps.push_back(sweep_id);
  }
}

void Notifier::Quarantined(Quarantine quarantine) {
  MutexLock lock(&mutex_);
  if (HasRoom()) news_.quarantines.push_back(std::move(quarantine));
}

void Notifier::BudgetSpent(SpentBudget budget) {
  MutexLock lock(&mutex_);
  if (HasRoom()) news_.budgets.push_back(std::move(budget));
}

void Notifier::GpuSecondsSpent(SpentGpuSeconds spent) {
  MutexLock lock(&mutex_);
  if (HasRoom()) news_.gpu_budgets.push_back(std::move(spent));
}

bool Notifier::Take(absl::Duration wait, News& news) {
  MutexLock lock(&mutex_);
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || news_.size() > 0;
  };
  mutex_.AwaitFor(wanted, wait);
  news = std::exchange(news_, {});
  return !stopping_;
}

void Notifier::Run() {
  News news;
  while (Take(outbox_.Wait(), news)) {
    if (const absl::Status status = Describe(news); !status.ok()) {
      spdlog::warn("notifications are lost, because the database cannot be read: {}",
                   std::string(status.message()));
    }
    if (outbox_.Wait() == absl::ZeroDuration()) Deliver();
  }
  const std::size_t lost = outbox_.size() + news.size();
  if (lost > 0) spdlog::warn("{} notifications are not delivered: the coordinator ends", lost);
}

void Notifier::Add(Message message) {
  if (outbox_.Add(std::move(message))) return;
  if (dropped_++ == 0) {
    spdlog::error("notifications are dropped: {} wait for {} already", kMostWaiting, host_);
  }
}

absl::Status Notifier::Describe(const News& news) {
  if (news.size() == 0) return absl::OkStatus();
  const absl::Time now = clock_.Wall();
  for (const Quarantine& quarantine : news.quarantines) Add(WorkerQuarantined(quarantine, now));
  for (const SpentGpuSeconds& spent : news.gpu_budgets) Add(notify::GpuSecondsSpent(spent, now));
  PELAB_ASSIGN_OR_RETURN(auto reader, readers_.Take());
  for (const SpentBudget& budget : news.budgets) {
    PELAB_RETURN_IF_ERROR(DescribeBudget(budget, *reader));
  }
  for (const std::int64_t job_id : news.failed_jobs) {
    PELAB_RETURN_IF_ERROR(DescribeFailure(job_id, news, *reader));
  }
  for (const std::int64_t sweep_id : news.ended_sweeps) {
    told_.erase(sweep_id);
    const absl::StatusOr<v1::Sweep> sweep = reader->GetSweep(Concat(sweep_id));
    if (absl::IsNotFound(sweep.status())) continue;  // deleted meanwhile
    PELAB_RETURN_IF_ERROR(sweep.status());
    if (!IsLive(*sweep)) Add(SweepEnded(*sweep, now));  // otherwise it was reopened meanwhile
  }
  return absl::OkStatus();
}

absl::Status Notifier::DescribeBudget(const SpentBudget& budget, db::Reader& reader) {
  if (budget.sweep_id) {
    const absl::StatusOr<v1::Sweep> sweep = reader.GetSweep(Concat(*budget.sweep_id));
    if (sweep.ok()) Add(notify::BudgetSpent(budget, &*sweep, clock_.Wall()));
    if (!absl::IsNotFound(sweep.status())) return sweep.status();
  }
  Add(notify::BudgetSpent(budget, /*sweep=*/nullptr, clock_.Wall()));
  return absl::OkStatus();
}

absl::Status Notifier::DescribeFailure(std::int64_t job_id, const News& news, db::Reader& reader) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<v1::Sweep> sweeps,
                         reader.SweepsOfJob(job_id, /*claimed=*/true));
  for (const v1::Sweep& named : sweeps) {
    const std::int64_t sweep_id = named.sweep_id();
    if (told_.contains(sweep_id)) continue;
    const absl::StatusOr<v1::Sweep> sweep = reader.GetSweep(Concat(sweep_id));
    if (absl::IsNotFound(sweep.status())) continue;
    PELAB_RETURN_IF_ERROR(sweep.status());
    const bool ends = std::find(news.ended_sweeps.begin(), news.ended_sweeps.end(), sweep_id) !=
                      news.ended_sweeps.end();
    if (!IsLive(*sweep) && !ends) continue;  // it ended before, and another sweep ran its job
    const absl::StatusOr<v1::JobRow> job = ReadJob(reader, job_id);
    if (absl::IsNotFound(job.status())) return absl::OkStatus();
    PELAB_RETURN_IF_ERROR(job.status());
    told_.insert(sweep_id);
    Add(JobFailed(*sweep, *job, clock_.Wall()));
  }
  return absl::OkStatus();
}

void Notifier::Deliver() {
  const Message& message = outbox_.First();
  const absl::Status status = post_.Post(message.body);
  if (status.ok()) {
    spdlog::info("notified {}: {}", host_, message.what);
    outbox_.Delivered();
    ++delivered_;
    return;
  }
  const std::string what = message.what;
  const bool first = outbox_.tries() == 0;
  if (outbox_.Failed()) {
    if (first) {
      spdlog::warn("cannot deliver {}: {}; {} tries are left", what, std::string(status.message()),
                   kTries - 1);
    }
    return;
  }
  ++failed_;
  spdlog::error("{} is not delivered: {} (after {} tries)", what, std::string(status.message()),
                kTries);
}

}  // namespace pelab::notify
