#include "tests/bench/load/floods/honest.h"

#include <utility>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kEventInterval = absl::Milliseconds(200);
constexpr absl::Duration kQuestionInterval = absl::Milliseconds(100);
constexpr absl::Duration kQuestionTime = absl::Seconds(10);  // then it is asked again
constexpr absl::Duration kAssignmentTime = absl::Minutes(1);
constexpr absl::Duration kReconnectPause = absl::Milliseconds(100);  // the first one of a daemon
constexpr absl::Duration kReconnectTime = absl::Minutes(1);
constexpr int kPageOfReader = 50;

// A call that keeps itself until it is answered.
template <typename Request, typename Response>
struct Asked {
  grpc::ClientContext context;
  Request request;
  Response response;
};

template <typename Request, typename Response>
std::shared_ptr<Asked<Request, Response>> MakeQuestion() {
  auto question = std::make_shared<Asked<Request, Response>>();
  question->request.mutable_page()->set_limit(kPageOfReader);
  question->context.set_deadline(absl::ToChronoTime(absl::Now() + kQuestionTime));
  return question;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HonestWorker>> HonestWorker::Start(const std::string& address) {
  std::unique_ptr<HonestWorker> worker(new HonestWorker(address));
  PELAB_RETURN_IF_ERROR(worker->Connect());
  const bool assigned =
      Await(kAssignmentTime, [&] { return worker->fleet_->counters().assigned.load() > 0; });
  if (!assigned) return absl::DeadlineExceededError("the honest worker got no job");
  return worker;
}

absl::Status HonestWorker::Connect() {
  fleet_ = std::make_unique<Fleet>(FleetOptions{.address = address_, .name = "honest"},
                                   [](int) { return kEventInterval; });
  return fleet_->Start();
}

Latencies HonestWorker::TakeOfSession() {
  Latencies all = fleet_->TakeLatencies();
  all.Merge(fleet_->TakeBeats());
  return all;
}

Latencies HonestWorker::Take() {
  Latencies all = std::exchange(earlier_, {});
  all.Merge(TakeOfSession());
  return all;
}

bool HonestWorker::MendSession() {
  if (fleet_->counters().broken.load() == 0) return false;
  const std::int64_t began = Now();
  const Latencies unanswered = fleet_->Unanswered();
  earlier_.Merge(TakeOfSession());
  // A session may end before its welcome too. Heartbeats and events without an answer are measured.
  const absl::Time end = absl::Now() + kReconnectTime;
  while (absl::IsUnavailable(Connect()) && absl::Now() < end) absl::SleepFor(kReconnectPause);
  const double took = static_cast<double>(Now() - began) / 1e6;
  earlier_.Add(took);  // something that was due when the session broke
  earlier_.Merge(unanswered.Later(took));
  return true;
}

absl::StatusOr<std::unique_ptr<HonestReader>> HonestReader::Start(const std::string& address) {
  PELAB_ASSIGN_OR_RETURN(const rpc::Address parsed, rpc::ParseAddress(address));
  PELAB_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(parsed, {}));
  return std::unique_ptr<HonestReader>(new HonestReader(channel));
}

HonestReader::HonestReader(const std::shared_ptr<grpc::Channel>& channel)
    : sweeps_(v1::Sweeps::NewStub(channel)),
      results_(v1::Results::NewStub(channel)),
      thread_([this] { Run(); }) {}

HonestReader::~HonestReader() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
  MutexLock lock(&mutex_);
  mutex_.Await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return under_way_ == 0; });
}

void HonestReader::Run() {
  for (std::int64_t due = Now();; due += absl::ToInt64Nanoseconds(kQuestionInterval)) {
    absl::SleepFor(absl::Nanoseconds(due - Now()));
    std::vector<Due> questions = {{due, Question::kSweeps}, {due, Question::kJobs}};
    {
      MutexLock lock(&mutex_);
      if (ending_) return;
      waiting_.insert(questions.begin(), questions.end());
      questions.insert(questions.end(), ask_again_.begin(), ask_again_.end());
      ask_again_.clear();
      under_way_ += static_cast<int>(questions.size());
    }
    for (const Due& question : questions) Ask(question);
  }
}

void HonestReader::Ask(const Due& due) {
  if (due.question == Question::kSweeps) {
    const auto call = MakeQuestion<v1::ListSweepsRequest, v1::ListSweepsResponse>();
    sweeps_->async()->ListSweeps(
        &call->context, &call->request, &call->response,
        [this, due, call](const grpc::Status& status) { Answered(due, status); });
  } else {
    const auto call = MakeQuestion<v1::ListJobsRequest, v1::ListJobsResponse>();
    results_->async()->ListJobs(
        &call->context, &call->request, &call->response,
        [this, due, call](const grpc::Status& status) { Answered(due, status); });
  }
}

void HonestReader::Answered(const Due& due, const grpc::Status& status) {
  MutexLock lock(&mutex_);
  --under_way_;
  if (!status.ok()) {
    ++errors_;
    ask_again_.push_back(due);
    return;
  }
  latencies_.Add(static_cast<double>(Now() - due.due) / 1e6);
  waiting_.erase(waiting_.find(due));
}

Latencies HonestReader::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(latencies_, {});
}

Latencies HonestReader::Unanswered() {
  MutexLock lock(&mutex_);
  Latencies all;
  for (const Due& due : waiting_) all.Add(static_cast<double>(Now() - due.due) / 1e6);
  return all;
}

std::int64_t HonestReader::TakeErrors() {
  MutexLock lock(&mutex_);
  return std::exchange(errors_, 0);
}

}  // namespace pelab::load
