// Requests that take turns at something that only so many may do at once. Callers take turns, not
// requests: one who sends many requests delays their own.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"

namespace pelab {

// Thread-safe. It must outlive its turns.
class Turns {
 public:
  // A place. The destructor gives it to the request that is next.
  class Turn {
   public:
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    // For long work, now and then: if other requests wait, they go first. CANCELLED if the client
    // went away meanwhile; the turn is over then.
    absl::Status Yield();

   private:
    friend class Turns;
    Turn(Turns& turns, std::string caller, std::function<bool()> gone);

    Turns* turns_;  // null: the turn is over
    std::string caller_;
    std::function<bool()> gone_;
  };

  // `at_once` requests have turns; of all callers together, `waiting` more may wait for one.
  Turns(int at_once, std::size_t waiting) : free_(at_once), most_(waiting) {}

  // Waits for a turn. CANCELLED if `gone()` becomes true meanwhile. RESOURCE_EXHAUSTED if too many
  // wait: the last request of the caller who has the most waiting is refused.
  absl::StatusOr<Turn> Take(const std::string& caller, std::function<bool()> gone);

 private:
  enum class Answer { kNone, kTurn, kRefused };
  struct Waiting {
    std::string caller;
    std::deque<Answer*> answers;  // of the caller's requests, oldest first
  };

  absl::Status TooMany() const;
  absl::Status Await(Answer& answer, const std::function<bool()>& gone);
  void Join(const std::string& caller, Answer* answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const Answer* answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack();

  Mutex mutex_;
  int free_ ABSL_GUARDED_BY(mutex_);
  const std::size_t most_;
  std::size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Waiting> callers_ ABSL_GUARDED_BY(mutex_);  // in the order of their next turns
};

}  // namespace pelab
