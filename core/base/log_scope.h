// Ids that are added to a thread's log lines: those in JSON (core/base/logging.h) have the ids that
// are in force where the line is written. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace pelab {

// Empty and 0: not set.
struct LogIds {
  std::string trace_id;
  std::string span_id;
  std::string principal;
  std::int64_t sweep_id = 0;
  std::int64_t job_id = 0;
  std::int64_t attempt_id = 0;
  std::string worker_id;
};

// Sets the ids that every thread's lines have unless a scope sets others.
void SetLogIdsOfProcess(LogIds ids);

// The ids in force on this thread.
LogIds CurrentLogIds();

// While it lives, this thread's log lines have these ids, beside those of the scopes around it. If
// two scopes set the same id, the inner one wins. Destroy a scope on the thread that made it, in
// reverse order.
class LogScope {
 public:
  explicit LogScope(LogIds ids);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  LogIds before_;
};

}  // namespace pelab
