#include "server/service/allocations_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/queues/settings.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/check_text.h"

namespace pelab::service {
namespace {

// pelab-scale reports every few seconds. An older report is no longer what is there.
constexpr absl::Duration kOldReport = absl::Minutes(5);

v1::QueueRow ToRow(const store::StoredQueue& queue) {
  v1::QueueRow row;
  row.set_name(queue.name);
  row.set_settings_json(queue.settings_json);
  row.set_paused_reason(queue.paused_reason);
  row.set_paused_at_ms(queue.paused_at);
  row.set_removing(queue.removing);
  return row;
}

v1::Allocation Printed(const v1::Allocation& given) {
  v1::Allocation allocation;
  allocation.set_id(Printable(given.id(), limits::kAllocationTextBytes));
  allocation.set_phase(Printable(given.phase(), limits::kAllocationTextBytes));
  allocation.set_state(Printable(given.state(), limits::kAllocationTextBytes));
  allocation.set_reason(Printable(given.reason(), limits::kAllocationTextBytes));
  return allocation;
}

bool HasWaiting(const v1::QueueReport& report) {
  return std::any_of(report.allocations().begin(), report.allocations().end(),
                     [](const v1::Allocation& one) { return one.phase() == "waiting"; });
}

absl::Status QueueRefused(store::QueueStored::Refusal refusal, const std::string& name) {
  switch (refusal) {
    case store::QueueStored::kNone:
      return absl::OkStatus();
    case store::QueueStored::kUnknown:
      return absl::NotFoundError(absl::StrCat("there is no queue \"", queues::ShownValue(name),
                                              "\"; `pelab alloc list` lists them"));
    case store::QueueStored::kTooMany:
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", limits::kQueues, " queues, and no more are allowed"));
  }
  return absl::InternalError("unknown refusal");
}

// Answers a call by `act`, which gets the caller.
template <typename Act>
grpc::Status AnswerTo(const access::Gate& gate, const grpc::ServerContext& context,
                      const Act& act) {
  const absl::StatusOr<access::Caller> caller = gate.CallerOf(context);
  return rpc::ToGrpc(caller.ok() ? act(*caller) : caller.status());
}

}  // namespace

void AllocationsService::Load(const std::vector<store::StoredQueue>& queues) {
  MutexLock lock(&mutex_);
  for (const store::StoredQueue& queue : queues) queues_[queue.name].queue = queue;
}

std::vector<metrics::QueueFigures> AllocationsService::Figures() {
  const std::int64_t oldest = Now() - absl::ToInt64Milliseconds(kOldReport);
  std::vector<metrics::QueueFigures> all;
  MutexLock lock(&mutex_);
  for (const auto& [name, known] : queues_) {
    metrics::QueueFigures& figures = all.emplace_back();
    figures.name = name;
    figures.paused = !known.queue.paused_reason.empty();
    if (known.reported_at == 0 || known.reported_at < oldest) continue;
    // A phase of which there is none has a sample too, so that its series does not end.
    figures.allocations = {{"waiting", 0}, {"starting", 0}, {"running", 0}, {"ending", 0}};
    for (const v1::Allocation& one : known.allocations) {
      const auto phase = figures.allocations->find(one.phase());
      if (phase != figures.allocations->end()) phase->second += 1;
    }
  }
  return all;
}

void AllocationsService::TakeStored(const store::QueueStored& stored) {
  if (stored.refusal != store::QueueStored::kNone) return;
  MutexLock lock(&mutex_);
  if (stored.removed) {
    queues_.erase(stored.queue.name);
  } else {
    queues_[stored.queue.name].queue = stored.queue;
  }
}

absl::Status AllocationsService::Store(store::Write write, const access::Caller& caller,
                                       absl::string_view method, const std::string& name,
                                       v1::QueueRow& response) {
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(
                             parts_.journal, std::move(write),
                             [this](const store::WriteResult& stored) {
                               TakeStored(std::get<store::QueueStored>(stored));
                             },
                             caller.Act(method, absl::StrCat("queue ", queues::ShownValue(name)))));
  const auto& stored = std::get<store::QueueStored>(result);
  PELAB_RETURN_IF_ERROR(QueueRefused(stored.refusal, name));
  response = ToRow(stored.queue);
  return absl::OkStatus();
}

absl::Status AllocationsService::DoPut(const access::Caller& caller,
                                       const v1::PutQueueRequest& request, v1::QueueRow& response) {
  PELAB_ASSIGN_OR_RETURN(const queues::Queue queue,
                         queues::ParseSettings(request.name(), request.settings_json()));
  return Store(store::PutQueue{queue.name, queues::SettingsJson(queue), Now()}, caller,
               "Allocations/PutQueue", queue.name, response);
}

absl::Status AllocationsService::DoPause(const access::Caller& caller,
                                         const v1::PauseQueueRequest& request,
                                         v1::QueueRow& response) {
  if (request.reason().empty()) {
    return absl::InvalidArgumentError("a pause needs a reason, which others will read");
  }
  PELAB_RETURN_IF_ERROR(
      CheckText("the reason of the pause", request.reason(), limits::kPauseReasonBytes));
  return Store(store::PauseQueue{.name = request.name(), .reason = request.reason(), .now = Now()},
               caller, "Allocations/PauseQueue", request.name(), response);
}

grpc::Status AllocationsService::PutQueue(grpc::ServerContext* context,
                                          const v1::PutQueueRequest* request,
                                          v1::QueueRow* response) {
  return AnswerTo(parts_.gate, *context,
                  [&](const access::Caller& caller) { return DoPut(caller, *request, *response); });
}

grpc::Status AllocationsService::RemoveQueue(grpc::ServerContext* context,
                                             const v1::RemoveQueueRequest* request,
                                             v1::QueueRow* response) {
  return AnswerTo(parts_.gate, *context, [&](const access::Caller& caller) {
    return Store(
        store::RemoveQueue{
            .name = request->name(), .mark = request->cancel_waiting(), .now = Now()},
        caller, "Allocations/RemoveQueue", request->name(), *response);
  });
}

grpc::Status AllocationsService::PauseQueue(grpc::ServerContext* context,
                                            const v1::PauseQueueRequest* request,
                                            v1::QueueRow* response) {
  return AnswerTo(parts_.gate, *context, [&](const access::Caller& caller) {
    return DoPause(caller, *request, *response);
  });
}

grpc::Status AllocationsService::ResumeQueue(grpc::ServerContext* context,
                                             const v1::ResumeQueueRequest* request,
                                             v1::QueueRow* response) {
  return AnswerTo(parts_.gate, *context, [&](const access::Caller& caller) {
    return Store(store::PauseQueue{.name = request->name(), .now = Now()}, caller,
                 "Allocations/ResumeQueue", request->name(), *response);
  });
}

grpc::Status AllocationsService::ListQueues(grpc::ServerContext*, const v1::ListQueuesRequest*,
                                            v1::ListQueuesResponse* response) {
  MutexLock lock(&mutex_);
  for (const auto& [name, known] : queues_) {
    v1::QueueRow& row = *response->add_queues() = ToRow(known.queue);
    row.set_reported_at_ms(known.reported_at);
    row.mutable_allocations()->Assign(known.allocations.begin(), known.allocations.end());
  }
  return grpc::Status::OK;
}

std::optional<store::StoredQueue> AllocationsService::Keep(const v1::QueueReport& report) {
  MutexLock lock(&mutex_);
  const auto found = queues_.find(report.name());
  if (found == queues_.end()) return std::nullopt;
  Known& known = found->second;
  known.allocations.clear();
  std::size_t room = limits::kReportedAllocations;
  for (const auto& [name, other] : queues_) room -= other.allocations.size();
  for (const v1::Allocation& one : report.allocations()) {
    if (known.allocations.size() >= room) break;
    known.allocations.push_back(Printed(one));
  }
  known.reported_at = Now();
  return known.queue;
}

absl::Status AllocationsService::DoReport(const access::Caller& caller,
                                          const v1::QueueReport& report) {
  const std::optional<store::StoredQueue> queue = Keep(report);
  if (!queue) return absl::OkStatus();
  v1::QueueRow unused;
  absl::Status status;
  if (!report.pause_reason().empty() && queue->paused_reason.empty()) {
    status = Store(
        store::PauseQueue{.name = queue->name,
                          .reason = Printable(report.pause_reason(), limits::kPauseReasonBytes),
                          .keep_reason = true,
                          .now = Now()},
        caller, "Allocations/ReportQueues", queue->name, unused);
  }
  if (status.ok() && queue->removing && !HasWaiting(report)) {
    status = Store(store::RemoveQueue{.name = queue->name, .only_marked = true, .now = Now()},
                   caller, "Allocations/ReportQueues", queue->name, unused);
  }
  // Somebody else has removed it meanwhile, or called its removal off.
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

grpc::Status AllocationsService::ReportQueues(grpc::ServerContext* context,
                                              const v1::ReportQueuesRequest* request,
                                              v1::ListQueuesResponse* response) {
  return AnswerTo(parts_.gate, *context, [&](const access::Caller& caller) -> absl::Status {
    for (const v1::QueueReport& report : request->queues()) {
      PELAB_RETURN_IF_ERROR(DoReport(caller, report));
    }
    MutexLock lock(&mutex_);
    for (const auto& [name, known] : queues_) *response->add_queues() = ToRow(known.queue);
    return absl::OkStatus();
  });
}

absl::Status AllocationsService::DoGone(const access::Caller& caller,
                                        const v1::WorkerGoneRequest& request,
                                        v1::WorkerGoneResponse& response) {
  if (request.worker().empty()) return absl::InvalidArgumentError("a worker must be named");
  const std::string why = Printable(request.reason(), limits::kPauseReasonBytes);
  using Answer = std::optional<int>;
  const Answer attempts = AskOn<Answer>(
      parts_.executor,
      [this, worker = request.worker(), why] {
        return Answer(parts_.scheduler.WorkerGone(worker, why));
      },
      std::nullopt);
  if (!attempts) return absl::UnavailableError("the scheduler is busy: try again later");
  response.set_attempts(*attempts);
  std::optional<store::RecordAct> act =
      caller.Act("Allocations/WorkerGone",
                 absl::StrCat("worker ", Printable(request.worker(), limits::kAuditTextBytes)));
  if (*attempts == 0 || !act) return absl::OkStatus();
  act->outcome = "OK";
  return AppendAndWait(parts_.journal, *std::move(act)).status();
}

grpc::Status AllocationsService::WorkerGone(grpc::ServerContext* context,
                                            const v1::WorkerGoneRequest* request,
                                            v1::WorkerGoneResponse* response) {
  return AnswerTo(parts_.gate, *context, [&](const access::Caller& caller) {
    return DoGone(caller, *request, *response);
  });
}

}  // namespace pelab::service
