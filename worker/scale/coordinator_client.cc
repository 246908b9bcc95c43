#include "worker/scale/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/queues/settings.h"
#include "core/rpc/call_span.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "pelab/v1/allocations.grpc.pb.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"

namespace pelab::scale {
namespace {

constexpr std::chrono::seconds kCallPatience(20);

v1::QueueReport ToProto(const QueueReport& report) {
  v1::QueueReport out;
  out.set_name(report.queue);
  out.set_pause_reason(report.pause);
  for (const auto& [id, allocation] : report.allocations->all()) {
    v1::Allocation& one = *out.add_allocations();
    one.set_id(id);
    one.set_phase(NameOf(allocation.phase));
    one.set_state(allocation.state);
    one.set_reason(allocation.reason);
  }
  return out;
}

class CoordinatorClient final : public Coordinator {
 public:
  CoordinatorClient(const std::shared_ptr<grpc::Channel>& channel, trace::SpanFile* spans)
      : spans_(spans),
        fleet_(v1::Fleet::NewStub(channel)),
        results_(v1::Results::NewStub(channel)),
        allocations_(v1::Allocations::NewStub(channel)) {}

  absl::StatusOr<Demand> DemandFor(const Queue& queue) override {
    v1::DemandRequest request;
    request.set_device_kind(queue.device);
    request.set_memory_bytes(queue.memory_bytes);
    v1::DemandResponse response;
    PELAB_RETURN_IF_ERROR(Call(*fleet_, &v1::Fleet::Stub::Demand, request, response));
    return Demand{response.waiting_jobs(), response.free_slots()};
  }

  absl::StatusOr<Workers> ListWorkers() override {
    Workers workers;
    v1::ListWorkersRequest request;
    do {
      v1::ListWorkersResponse page;
      PELAB_RETURN_IF_ERROR(Call(*results_, &v1::Results::Stub::ListWorkers, request, page));
      for (const v1::WorkerRow& worker : page.workers()) {
        const bool lives = worker.state() != "offline" || worker.has_lease_left_ms();
        workers[worker.name()] = workers[worker.name()] || lives;
      }
      request.mutable_page()->set_after(page.next());
    } while (!request.page().after().empty());
    return workers;
  }

  absl::StatusOr<std::vector<GivenQueue>> Report(const std::vector<QueueReport>& reports,
                                                 const std::optional<TraceContext>& span) override {
    v1::ReportQueuesRequest request;
    for (const QueueReport& report : reports) *request.add_queues() = ToProto(report);
    v1::ListQueuesResponse response;
    PELAB_RETURN_IF_ERROR(
        TracedCall("ReportQueues", span, &v1::Allocations::Stub::ReportQueues, request, response));
    std::vector<GivenQueue> given;
    std::string refused;
    for (const v1::QueueRow& row : response.queues()) {
      absl::StatusOr<Queue> queue = queues::ParseSettings(row.name(), row.settings_json());
      if (queue.ok()) {
        given.push_back({*std::move(queue), row.paused_reason(), row.removing()});
      } else {
        refused = std::string(queue.status().message());
      }
    }
    // One of another version. Said once, not at every report.
    if (!refused.empty() && refused != refused_) spdlog::error("left out: {}", refused);
    refused_ = refused;
    return given;
  }

  absl::StatusOr<int> WorkerGone(const std::string& worker, const std::string& why,
                                 const std::optional<TraceContext>& span) override {
    v1::WorkerGoneRequest request;
    request.set_worker(worker);
    request.set_reason(why);
    v1::WorkerGoneResponse response;
    PELAB_RETURN_IF_ERROR(
        TracedCall("WorkerGone", span, &v1::Allocations::Stub::WorkerGone, request, response));
    return response.attempts();
  }

 private:
  template <typename Stub, typename Method, typename Request, typename Response>
  static absl::Status Call(Stub& stub, Method method, const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallPatience);
    return rpc::FromGrpc((stub.*method)(&context, request, &response));
  }

  // A call of the service Allocations, as a span below `above`.
  template <typename Method, typename Request, typename Response>
  absl::Status TracedCall(const char* name, const std::optional<TraceContext>& above, Method method,
                          const Request& request, Response& response) {
    if (!above) return Call(*allocations_, method, request, response);
    trace::Span span = rpc::BeginCall(Concat("/pelab.v1.Allocations/", name), trace::Kind::kClient);
    span.context = ChildOf(*above);
    span.parent_span_id = above->span_id;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallPatience);
    context.AddMetadata(kTraceparentKey, Traceparent(span.context));
    const grpc::Status status = (allocations_.get()->*method)(&context, request, &response);
    rpc::EndCall(status, span);
    if (spans_ != nullptr) spans_->Add(std::move(span));
    return rpc::FromGrpc(status);
  }

  trace::SpanFile* const spans_;  // null: nothing is recorded
  const std::unique_ptr<v1::Fleet::Stub> fleet_;
  const std::unique_ptr<v1::Results::Stub> results_;
  const std::unique_ptr<v1::Allocations::Stub> allocations_;
  std::string refused_;  // why a queue was left out of the last answer
};

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> MakeCoordinator(const rpc::Address& address,
                                                             const rpc::ClientSecurity& security,
                                                             trace::SpanFile* spans) {
  PELAB_ASSIGN_OR_RETURN(auto channel, rpc::CreateChannel(address, security));
  return std::make_unique<CoordinatorClient>(channel, spans);
}

}  // namespace pelab::scale
