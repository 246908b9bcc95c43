// Serves all listeners of event streams on one thread. After a commit it reads each topic once and
// sends the difference to all of the topic's listeners, at most a few times a second.
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

// The texts that one listener has not been sent yet. Thread-safe.
class EventStream {
 public:
  // The next text, after waiting at most `timeout`. Empty if nothing came; nullopt if the stream is
  // closed.
  std::optional<std::string> Next(absl::Duration timeout);
  void Close();

 private:
  friend class EventHub;
  using Text = std::shared_ptr<const std::string>;

  explicit EventStream(std::string last_id) : last_id_(std::move(last_id)) {}
  // A listener that is too slow is closed. It reconnects and then gets everything.
  void Send(const Text& text);
  bool closed() const;

  const std::string last_id_;
  bool fresh_ = true;  // used by the hub's thread only
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
    // The topics are also read this often without a commit, because some facts change without one,
    // such as leases.
    absl::Duration at_least = absl::Seconds(5);
  };
  // All arguments must outlive the hub.
  EventHub(db::ReaderPool& readers, const Sources& sources, Options options);
  ~EventHub();  // like Stop

  // Adds a listener. Its first text describes the whole topic, unless `last_id` is the id of the
  // current state. RESOURCE_EXHAUSTED if too many listen, UNAVAILABLE after Stop.
  absl::StatusOr<std::shared_ptr<EventStream>> Open(const Topic& topic, const std::string& last_id);
  // Ends all streams, and the thread.
  void Stop();

 private:
  using Streams = std::vector<std::shared_ptr<EventStream>>;
  struct Told {  // used by the hub's thread only
    Snapshot snapshot;
    std::string id;
  };

  void Run();
  // Waits until there is something to do. False: the hub is stopping.
  bool AwaitWork(absl::Duration pause);
  std::map<Topic, Streams> Listening();
  void Tell(const Topic& topic, const Streams& streams, bool changed);

  db::ReaderPool& readers_;
  const Sources& sources_;
  const Options options_;
  const std::string boot_;  // distinguishes this coordinator's ids from those of an earlier one
  std::uint64_t sequence_ = 0;
  std::map<Topic, Told> told_;
  Mutex mutex_;
  std::map<Topic, Streams> streams_ ABSL_GUARDED_BY(mutex_);
  bool added_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::http
