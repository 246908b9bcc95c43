// A file of spans (--trace-file).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "core/trace/span.h"

namespace pelab::trace {

// Appends spans to a file, one OTLP line each, on a thread of its own: Add never waits for the
// disk, Finish does. Several programs may write to one file. If the file was renamed or removed, as
// programs that rotate logs do, a new one is made. Spans are dropped, and a warning is logged, if
// they cannot be written or if too many wait. Signals of the process never go to the thread.
// Thread-safe, apart from Finish.
class SpanFile {
 public:
  static constexpr std::size_t kMostWaiting = 10'000;  // spans that are not written yet

  // Makes the file if there is none, readable by this user alone; its directory must exist.
  // `program`: "pelab-server". `instance`: which of several it is, such as a worker's id; may be
  // empty. An error names the file: it cannot be opened, or is no regular file.
  static absl::StatusOr<std::unique_ptr<SpanFile>> Open(const std::string& path,
                                                        const std::string& program,
                                                        const std::string& instance,
                                                        std::size_t most_waiting = kMostWaiting);
  ~SpanFile();  // like Finish
  SpanFile(const SpanFile&) = delete;
  SpanFile& operator=(const SpanFile&) = delete;

  void Add(Span span);
  // How many spans were dropped.
  std::uint64_t dropped() const;
  // Writes what waits and ends the thread; nothing may be added afterwards. Returns dropped().
  std::uint64_t Finish();

 private:
  SpanFile(std::string path, UniqueFd fd, Attributes resource, std::size_t most_waiting);
  void StartThread();
  void Run();
  // Takes the spans that wait, and how many were dropped before. False: these are the last.
  bool Take(std::vector<Span>& spans, std::uint64_t& dropped);
  absl::Status Write(const std::vector<Span>& spans);
  absl::Status FollowRotation();

  const std::string path_;
  const Attributes resource_;
  const std::size_t most_waiting_;
  UniqueFd fd_;  // used by the thread alone once it runs
  mutable Mutex mutex_;
  std::vector<Span> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace pelab::trace
