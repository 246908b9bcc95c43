// Everybody who listens to events, served by one thread: where something was committed, what a topic
// tells is read once and the difference sent to all who listen to it, a few times a second at most.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/db/read/reader_pool.h"
#include "server/http/topics.h"

namespace pelab::http {

// What one listener has still to be sent. Thread-safe.
class EventStream {
 public:
  // The next text, waiting at most `timeout` for it: empty where nothing came, nullopt where nothing
  // will come any more.
  std::optional<std::string> Next(absl::Duration timeout);
  void Close();

 private:
  friend class EventHub;
  using Text = std::shared_ptr<const std::string>;

  explicit EventStream(std::string last_id) : last_id_(std::move(last_id)) {}
  // Who is too slow is closed; it comes again and gets everything.
  void Send(const Text& text);
  bool closed() const;

  const std::string last_id_;
  bool fresh_ = true;  // of the hub's thread
  mutable Mutex mutex_;
  std::deque<Text> waiting_ ABSL_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class EventHub {
 public:
  struct Options {
    std::size_t most_streams = 64;
    absl::Duration interval = absl::Milliseconds(400);
    // Also what no commit tells, such as leases, is read so often.
    absl::Duration at_least = absl::Seconds(5);
  };
  // All outlive the hub.
  EventHub(db::ReaderPool& readers, const Sources& sources, Options options);
  ~EventHub();  // as Stop

  // The first text is everything, unless `last_id` is the id of what there is. RESOURCE_EXHAUSTED
  // where too many listen, UNAVAILABLE once stopped.
  absl::StatusOr<std::shared_ptr<EventStream>> Open(const Topic& topic, const std::string& last_id);
  // Ends all streams.
  void Stop();

 private:
  using Streams = std::vector<std::shared_ptr<EventStream>>;
  struct Told {  // of the hub's thread
    Snapshot snapshot;
    std::string id;
  };

  void Run();
  // Waits until there is something to do; false to end.
  bool AwaitWork(absl::Duration pause);
  std::map<Topic, Streams> Listening();
  void Tell(const Topic& topic, const Streams& streams, bool changed);

  db::ReaderPool& readers_;
  const Sources& sources_;
  const Options options_;
  const std::string boot_;  // tells this coordinator's ids from an earlier one's
  std::uint64_t sequence_ = 0;
  std::map<Topic, Told> told_;
  Mutex mutex_;
  std::map<Topic, Streams> streams_ ABSL_GUARDED_BY(mutex_);
  bool added_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::http
