// pelab.v1.Allocations: the queues in which pelab-scale starts workers, what it reports of them,
// and workers whose allocation is over.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "pelab/v1/allocations.grpc.pb.h"
#include "server/access/gate.h"
#include "server/metrics/queue_figures.h"
#include "server/sched/scheduler.h"
#include "server/store/journal.h"

namespace pelab::service {

// Thread-safe. Queues are rows of the database, and here a copy of them; reported allocations are
// in memory alone.
class AllocationsService final : public v1::Allocations::Service {
 public:
  // All of these must outlive the service.
  struct Parts {
    const Clock& clock;
    store::Journal& journal;
    access::Gate& gate;
    sched::Executor& executor;
    sched::Scheduler& scheduler;
  };
  explicit AllocationsService(const Parts& parts) : parts_(parts) {}

  // The queues that are stored. To be called before there are calls.
  void Load(const std::vector<store::StoredQueue>& queues);
  // For metrics, by name.
  std::vector<metrics::QueueFigures> Figures();

  grpc::Status PutQueue(grpc::ServerContext* context, const v1::PutQueueRequest* request,
                        v1::QueueRow* response) override;
  grpc::Status RemoveQueue(grpc::ServerContext* context, const v1::RemoveQueueRequest* request,
                           v1::QueueRow* response) override;
  grpc::Status PauseQueue(grpc::ServerContext* context, const v1::PauseQueueRequest* request,
                          v1::QueueRow* response) override;
  grpc::Status ResumeQueue(grpc::ServerContext* context, const v1::ResumeQueueRequest* request,
                           v1::QueueRow* response) override;
  grpc::Status ListQueues(grpc::ServerContext* context, const v1::ListQueuesRequest* request,
                          v1::ListQueuesResponse* response) override;
  grpc::Status ReportQueues(grpc::ServerContext* context, const v1::ReportQueuesRequest* request,
                            v1::ListQueuesResponse* response) override;
  grpc::Status WorkerGone(grpc::ServerContext* context, const v1::WorkerGoneRequest* request,
                          v1::WorkerGoneResponse* response) override;

 private:
  struct Known {
    store::StoredQueue queue;
    std::int64_t reported_at = 0;  // 0: not since the start
    std::vector<v1::Allocation> allocations;
  };

  absl::Status DoPut(const access::Caller& caller, const v1::PutQueueRequest& request,
                     v1::QueueRow& response);
  absl::Status DoPause(const access::Caller& caller, const v1::PauseQueueRequest& request,
                       v1::QueueRow& response);
  absl::Status DoReport(const access::Caller& caller, const v1::QueueReport& report);
  absl::Status DoGone(const access::Caller& caller, const v1::WorkerGoneRequest& request,
                      v1::WorkerGoneResponse& response);
  // Stores a change of a queue, and who made it, and fills `response` with the queue as it is then.
  absl::Status Store(store::Write write, const access::Caller& caller, absl::string_view method,
                     const std::string& name, v1::QueueRow& response);
  // Runs on the writer thread, so that the copy changes in the order of the commits.
  void TakeStored(const store::QueueStored& stored);
  // Keeps a report. Returns the queue that it is of; nullopt: there is none.
  std::optional<store::StoredQueue> Keep(const v1::QueueReport& report);
  std::int64_t Now() const { return absl::ToUnixMillis(parts_.clock.Wall()); }

  const Parts parts_;
  Mutex mutex_;
  std::map<std::string, Known> queues_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace pelab::service
