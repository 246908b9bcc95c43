#include "worker/scale/throttle.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace pelab::scale {
namespace {

constexpr int kMostRefusals = 10;
constexpr int kMostSilent = 3;
const absl::Duration kPauses[] = {absl::ZeroDuration(), absl::Minutes(1), absl::Minutes(15),
                                  absl::Minutes(30), absl::Hours(1)};

}  // namespace

void Throttle::Refused(const std::string& why, absl::Duration now) {
  const auto step = std::min<std::size_t>(refusals_, std::size(kPauses) - 1);
  wait_until_ = now + kPauses[step];
  refusal_ = why;
  if (++refusals_ >= kMostRefusals) {
    pause_ = absl::StrCat(refusals_, " submissions in a row were refused, the last: ", why);
  }
}

void Throttle::Accepted() {
  refusals_ = 0;
  wait_until_ = -absl::InfiniteDuration();
}

void Throttle::NeverSaidHello(const std::string& id, const std::string& state) {
  if (++silent_ < kMostSilent) return;
  pause_ =
      absl::StrCat("the workers of ", silent_,
                   " allocations in a row never connected to the coordinator, the last of ", id,
                   state.empty() ? "" : absl::StrCat(" (", state, ")"), "; its output says why");
}

std::string Throttle::WhyNot(absl::Duration now) const {
  if (paused()) return absl::StrCat("paused: ", pause_);
  if (now >= wait_until_) return "";
  return absl::StrCat("refused: ", refusal_, "; tried again in ",
                      absl::FormatDuration(absl::Ceil(wait_until_ - now, absl::Seconds(1))));
}

}  // namespace pelab::scale
