#include "server/http/events.h"

#include <algorithm>
#include <utility>

#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/strings.h"
#include "server/limits.h"

namespace pelab::http {
namespace {

// Pause after reading, as a multiple of the time that the reading took.
constexpr int kRest = 4;

}  // namespace

std::optional<std::string> EventStream::Next(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  mutex_.AwaitFor(
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !waiting_.empty(); },
      timeout);
  if (closed_) return std::nullopt;
  if (waiting_.empty()) return std::string();
  const Text text = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= text->size();
  return *text;
}

void EventStream::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
  waiting_.clear();
}

void EventStream::Send(const Text& text) {
  MutexLock lock(&mutex_);
  if (closed_) return;
  const bool full =
      waiting_.size() >= limits::kEventsWaiting ||
      (!waiting_.empty() && waiting_bytes_ + text->size() > limits::kEventsWaitingBytes);
  if (full) {
    closed_ = true;
    waiting_.clear();
    return;
  }
  waiting_bytes_ += text->size();
  waiting_.push_back(text);
}

bool EventStream::closed() const {
  MutexLock lock(&mutex_);
  return closed_;
}

EventHub::EventHub(db::ReaderPool& readers, const Sources& sources, Options options)
    : readers_(readers),
      sources_(sources),
      options_(options),
      boot_(Concat(RandomToken())),
      thread_([this] { Run(); }) {}

EventHub::~EventHub() { Stop(); }

absl::StatusOr<std::shared_ptr<EventStream>> EventHub::Open(const Topic& topic,
                                                            const std::string& last_id) {
  const std::shared_ptr<EventStream> stream(new EventStream(last_id));
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
  std::size_t open = 0;
  for (auto& [of, streams] : streams_) {
    std::erase_if(streams, [](const auto& one) { return one->closed(); });
    open += streams.size();
  }
  if (open >= options_.most_streams) {
    return absl::ResourceExhaustedError(
        Concat("too many pages listen to events; at most ", options_.most_streams));
  }
  streams_[topic].push_back(stream);
  added_ = true;
  return stream;
}

void EventHub::Stop() {
  std::map<Topic, Streams> streams;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    streams.swap(streams_);
  }
  for (const auto& [topic, open] : streams) {
    for (const auto& stream : open) stream->Close();
  }
  if (thread_.joinable()) thread_.join();
}

bool EventHub::AwaitWork(absl::Duration pause) {
  MutexLock lock(&mutex_);
  const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || added_; };
  if (streams_.empty()) {
    mutex_.Await(wake);
  } else {
    mutex_.AwaitFor(wake, pause);
  }
  added_ = false;
  return !stopping_;
}

std::map<Topic, EventHub::Streams> EventHub::Listening() {
  MutexLock lock(&mutex_);
  for (auto entry = streams_.begin(); entry != streams_.end();) {
    std::erase_if(entry->second, [](const auto& stream) { return stream->closed(); });
    entry = entry->second.empty() ? streams_.erase(entry) : std::next(entry);
  }
  return streams_;
}

void EventHub::Run() {
  std::uint64_t seen = 0;
  absl::Duration read_at = -absl::InfiniteDuration();
  absl::Duration not_before = -absl::InfiniteDuration();
  while (AwaitWork(options_.interval)) {
    const std::map<Topic, Streams> listening = Listening();
    std::erase_if(told_, [&](const auto& entry) { return listening.count(entry.first) == 0; });
    const absl::Duration now = sources_.clock.Monotonic();
    const std::uint64_t version = sources_.version();
    const bool due = version != seen || now - read_at >= options_.at_least;
    const bool changed = due && now >= not_before;
    for (const auto& [topic, streams] : listening) Tell(topic, streams, changed);
    if (!changed) continue;
    seen = version;
    read_at = now;
    // Large sweeps take long to read: leave most of the time to other work.
    const absl::Duration ended = sources_.clock.Monotonic();
    not_before = ended + kRest * (ended - now);
  }
}

void EventHub::Tell(const Topic& topic, const Streams& streams, bool changed) {
  const bool fresh = std::any_of(streams.begin(), streams.end(),
                                 [](const auto& stream) { return stream->fresh_; });
  if (!changed && !fresh) return;
  auto reader = readers_.Take();
  absl::StatusOr<Snapshot> now =
      reader.ok() ? Observe(topic, **reader, sources_) : absl::StatusOr<Snapshot>(reader.status());
  if (!now.ok()) {  // the page reconnects and gets the error as its answer
    spdlog::warn("events cannot be told: {}", std::string{now.status().message()});
    for (const auto& stream : streams) stream->Close();
    return;
  }
  Told& told = told_[topic];
  const std::string id = Concat(boot_, "-", sequence_ + 1);
  const auto difference =
      std::make_shared<const std::string>(EventsBetween(told.snapshot, *now, id));
  if (!difference->empty()) {
    ++sequence_;
    told.id = id;
  }
  EventStream::Text all;
  for (const auto& stream : streams) {
    if (!stream->fresh_) {
      if (!difference->empty()) stream->Send(difference);
      continue;
    }
    stream->fresh_ = false;
    if (stream->last_id_ == told.id) continue;
    if (!all) all = std::make_shared<const std::string>(EventsBetween({}, *now, told.id));
    stream->Send(all);
  }
  told.snapshot = *std::move(now);
}

}  // namespace pelab::http
