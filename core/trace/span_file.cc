#include "core/trace/span_file.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"

namespace pelab::trace {
namespace {

constexpr unsigned kMode = S_IRUSR | S_IWUSR;
// Spans that come within this time are written together.
constexpr absl::Duration kTogether = absl::Milliseconds(200);

Attributes ResourceOf(const std::string& program, const std::string& instance) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  Attributes resource = {{"service.name", program},
                         {"service.version", VersionText()},
                         {"host.name", std::string(host)},
                         {"process.pid", std::int64_t{getpid()}}};
  if (!instance.empty()) resource.emplace_back("service.instance.id", instance);
  return resource;
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path) {
  // A pipe would be waited for until somebody reads it.
  PELAB_RETURN_IF_ERROR(CheckRegularFile(path, "a file of spans"));
  return OpenForAppend(path, kMode);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpanFile>> SpanFile::Open(const std::string& path,
                                                         const std::string& program,
                                                         const std::string& instance,
                                                         std::size_t most_waiting) {
  PELAB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path));
  return std::unique_ptr<SpanFile>(
      new SpanFile(path, std::move(fd), ResourceOf(program, instance), most_waiting));
}

SpanFile::SpanFile(std::string path, UniqueFd fd, Attributes resource, std::size_t most_waiting)
    : path_(std::move(path)),
      resource_(std::move(resource)),
      most_waiting_(most_waiting),
      fd_(std::move(fd)) {
  StartThread();
}

// A ShutdownSignal (core/base/shutdown.h) may be made later. It blocks signals only in the thread
// that makes it, and in those that this one starts.
void SpanFile::StartThread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SpanFile::~SpanFile() { Finish(); }

std::uint64_t SpanFile::Finish() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
  return dropped();
}

void SpanFile::Add(Span span) {
  MutexLock lock(&mutex_);
  if (waiting_.size() >= most_waiting_) {
    ++dropped_;
    return;
  }
  waiting_.push_back(std::move(span));
}

std::uint64_t SpanFile::dropped() const {
  MutexLock lock(&mutex_);
  return dropped_;
}

bool SpanFile::Take(std::vector<Span>& spans, std::uint64_t& dropped) {
  MutexLock lock(&mutex_);
  mutex_.Await([this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ || !waiting_.empty(); });
  mutex_.AwaitFor([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_; }, kTogether);
  spans = std::exchange(waiting_, {});
  dropped = dropped_;
  return !ending_;
}

void SpanFile::Run() {
  std::uint64_t known = 0;  // how many of the dropped ones are logged
  bool failing = false;
  bool more = true;
  while (more) {
    std::vector<Span> spans;
    std::uint64_t dropped = 0;
    more = Take(spans, dropped);
    if (dropped > known) {
      spdlog::warn("{} spans are dropped: {} does not take them fast enough", dropped - known,
                   path_);
    }
    const absl::Status written = Write(spans);
    if (!written.ok()) {
      if (!failing) spdlog::warn("spans are dropped: {}", std::string(written.message()));
      MutexLock lock(&mutex_);
      dropped_ += spans.size();
      dropped += spans.size();
    }
    known = dropped;
    failing = !written.ok();
  }
}

absl::Status SpanFile::Write(const std::vector<Span>& spans) {
  if (spans.empty()) return absl::OkStatus();
  PELAB_RETURN_IF_ERROR(FollowRotation());
  std::string lines;
  for (const Span& span : spans) absl::StrAppend(&lines, ToOtlpLine(span, resource_), "\n");
  const std::optional<std::uint64_t> before = BytesOf(fd_.get());
  // One call for all: appending is atomic, so that lines of several programs never mix.
  absl::Status written = WriteAll(fd_.get(), lines, path_);
  // The newline ends a line of which only a part was written.
  if (!written.ok() && BytesOf(fd_.get()) != before) WriteAll(fd_.get(), "\n", path_).IgnoreError();
  return written;
}

absl::Status SpanFile::FollowRotation() {
  struct stat open = {};
  struct stat named = {};
  const bool same = fstat(fd_.get(), &open) == 0 && stat(path_.c_str(), &named) == 0 &&
                    open.st_ino == named.st_ino && open.st_dev == named.st_dev;
  if (same) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(fd_, OpenFile(path_));
  return absl::OkStatus();
}

}  // namespace pelab::trace
