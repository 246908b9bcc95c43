#include "worker/agent/stall_watch.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kLeast = absl::Minutes(10);  // LibTorch and the data may be slow to load
constexpr int kPaces = 20;

// For example "12 min" or "45 s": whole units, rounded down.
std::string Words(absl::Duration time) {
  if (time >= absl::Minutes(2)) return absl::StrCat(time / absl::Minutes(1), " min");
  if (time >= absl::Seconds(2)) return absl::StrCat(time / absl::Seconds(1), " s");
  return absl::StrCat(time / absl::Milliseconds(1), " ms");
}

}  // namespace

StallWatch::StallWatch(std::optional<absl::Duration> timeout, absl::Duration now)
    : timeout_(timeout), last_event_(now), last_look_(now) {}

void StallWatch::OnEvent(const event::TrainerLine& line, absl::Duration now) {
  const absl::Duration took = now - last_event_;
  last_event_ = now;
  last_look_ = now;
  silence_ = absl::ZeroDuration();
  const auto* fact = std::get_if<event::FactLine>(&line);
  if (fact == nullptr) return;
  if (fact->event.has_started()) {
    said_hello_ = true;
  } else if (took > longest_) {
    longest_ = took;
    longest_name_ = fact->event.has_epoch() ? "epoch" : "analysis";
  }
}

absl::Duration StallWatch::Limit() const {
  if (timeout_.has_value()) return *timeout_;
  return said_hello_ ? std::max(kLeast, kPaces * longest_) : kLeast;
}

absl::Duration StallWatch::Tick() const {
  return std::clamp(Limit() / 20, absl::Milliseconds(20), absl::Seconds(5));
}

absl::StatusOr<absl::Duration> StallWatch::Look(absl::Duration now, bool listening) {
  if (Limit() == absl::InfiniteDuration()) return absl::InfiniteDuration();
  const absl::Duration elapsed = now - last_look_;
  last_look_ = now;
  // Look is called every tick. A gap of more than two ticks means that this process did not run.
  if (listening) silence_ += std::min(elapsed, 2 * Tick());
  if (silence_ < Limit()) return std::min(Tick(), Limit() - silence_);
  const std::string pace =
      !said_hello_ ? " since it was started, not even its hello"
      : longest_name_ != nullptr
          ? absl::StrCat(" (its longest ", longest_name_, " took ", Words(longest_), ")")
          : "";
  return absl::DeadlineExceededError(absl::StrCat("the trainer said nothing for ", Words(silence_),
                                                  pace, "; stopped by --attempt-timeout"));
}

}  // namespace pelab::agent
