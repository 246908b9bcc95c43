#include "server/turns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/access/too_many_calls.h"
#include "core/base/status.h"

namespace pelab {
namespace {

constexpr absl::Duration kLookAtClient = absl::Milliseconds(200);

}  // namespace

Turns::Turn::Turn(Turns& turns, std::string caller, std::function<bool()> gone)
    : turns_(&turns), caller_(std::move(caller)), gone_(std::move(gone)) {}

Turns::Turn::Turn(Turn&& other) noexcept
    : turns_(std::exchange(other.turns_, nullptr)),
      caller_(std::move(other.caller_)),
      gone_(std::move(other.gone_)) {}

Turns::Turn::~Turn() {
  if (turns_ != nullptr) turns_->GiveBack();
}

absl::Status Turns::Turn::Yield() {
  if (turns_ == nullptr) return absl::CancelledError("the client is gone");
  Answer answer = Answer::kNone;
  {
    MutexLock lock(&turns_->mutex_);
    if (turns_->callers_.empty()) return absl::OkStatus();
    // A request that has begun is never refused, so a few more than `most_` may wait.
    turns_->Join(caller_, &answer);
    ++turns_->free_;
    turns_->Next();
  }
  absl::Status status = turns_->Await(answer, gone_);
  if (!status.ok()) turns_ = nullptr;
  return status;
}

absl::StatusOr<Turns::Turn> Turns::Take(const std::string& caller, std::function<bool()> gone) {
  Answer answer = Answer::kNone;
  {
    MutexLock lock(&mutex_);
    if (free_ == 0 && waiting_ >= most_ && !MakeRoom(caller)) return TooMany();
    Join(caller, &answer);
    if (free_ > 0) Next();
  }
  PELAB_RETURN_IF_ERROR(Await(answer, gone));
  return Turn(*this, caller, std::move(gone));
}

absl::Status Turns::TooMany() const {
  return absl::ResourceExhaustedError(absl::StrCat(
      access::kTooManyCalls, most_, " requests of this kind wait for others: try again later"));
}

// Waits until the request has its turn or is refused.
absl::Status Turns::Await(Answer& answer, const std::function<bool()>& gone) {
  MutexLock lock(&mutex_);
  const auto answered = [&answer] { return answer != Answer::kNone; };
  while (!mutex_.AwaitFor(answered, kLookAtClient)) {
    if (!gone()) continue;
    Forget(&answer);
    return absl::CancelledError("the client is gone");
  }
  return answer == Answer::kTurn ? absl::OkStatus() : TooMany();
}

// Puts a request behind the caller's others. A caller without any comes after all other callers.
void Turns::Join(const std::string& caller, Answer* answer) {
  auto found = std::find_if(callers_.begin(), callers_.end(),
                            [&](const Waiting& waiting) { return waiting.caller == caller; });
  if (found == callers_.end()) found = callers_.insert(callers_.end(), Waiting{caller, {}});
  found->answers.push_back(answer);
  ++waiting_;
}

// Refuses a request of the caller who has the most, if they have more than `caller` would.
bool Turns::MakeRoom(const std::string& caller) {
  std::size_t own = 1;
  auto most = callers_.begin();
  for (auto at = callers_.begin(); at != callers_.end(); ++at) {
    if (at->caller == caller) own += at->answers.size();
    if (at->answers.size() > most->answers.size()) most = at;
  }
  if (most == callers_.end() || most->answers.size() <= own) return false;
  Answer* const last = most->answers.back();
  *last = Answer::kRefused;
  Forget(last);
  return true;
}

void Turns::Forget(const Answer* answer) {
  for (auto at = callers_.begin(); at != callers_.end(); ++at) {
    const auto found = std::find(at->answers.begin(), at->answers.end(), answer);
    if (found == at->answers.end()) continue;
    at->answers.erase(found);
    if (at->answers.empty()) callers_.erase(at);
    --waiting_;
    return;
  }
}

// Gives a free place to the caller whose turn it is.
void Turns::Next() {
  if (callers_.empty()) return;
  Waiting waiting = std::move(callers_.front());
  callers_.pop_front();
  *waiting.answers.front() = Answer::kTurn;
  waiting.answers.pop_front();
  if (!waiting.answers.empty()) callers_.push_back(std::move(waiting));
  --waiting_;
  --free_;
}

void Turns::GiveBack() {
  MutexLock lock(&mutex_);
  ++free_;
  Next();
}

}  // namespace pelab
