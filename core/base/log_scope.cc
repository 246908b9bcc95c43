#include "core/base/log_scope.h"

#include <mutex>
#include <utility>

namespace pelab {
namespace {

struct ProcessIds {
  std::mutex mutex;
  LogIds ids;  // guarded by `mutex`
};
ProcessIds& OfProcess() {
  static ProcessIds& process = *new ProcessIds();
  return process;
}
LogIds& IdsOfThread() {
  thread_local LogIds ids;
  return ids;
}

void Take(std::string& value, std::string inner) {
  if (!inner.empty()) value = std::move(inner);
}
void Take(std::int64_t& value, std::int64_t inner) {
  if (inner != 0) value = inner;
}

void Overlay(LogIds& now, LogIds inner) {
  Take(now.trace_id, std::move(inner.trace_id));
  Take(now.span_id, std::move(inner.span_id));
  Take(now.principal, std::move(inner.principal));
  Take(now.sweep_id, inner.sweep_id);
  Take(now.job_id, inner.job_id);
  Take(now.attempt_id, inner.attempt_id);
  Take(now.worker_id, std::move(inner.worker_id));
}

}  // namespace

void SetLogIdsOfProcess(LogIds ids) {
  const std::lock_guard<std::mutex> lock(OfProcess().mutex);
  OfProcess().ids = std::move(ids);
}

LogIds CurrentLogIds() {
  LogIds ids;
  {
    const std::lock_guard<std::mutex> lock(OfProcess().mutex);
    ids = OfProcess().ids;
  }
  Overlay(ids, IdsOfThread());
  return ids;
}

LogScope::LogScope(LogIds ids) : before_(IdsOfThread()) { Overlay(IdsOfThread(), std::move(ids)); }

LogScope::~LogScope() { IdsOfThread() = std::move(before_); }

}  // namespace pelab
