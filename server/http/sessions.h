// Decides who may change things over HTTP: clients that have the coordinator's token, and sessions
// that were opened with it. Sessions are kept in memory only, so a restart ends them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace pelab::http {

inline constexpr absl::Duration kSessionTime = absl::Hours(12);
inline constexpr std::size_t kMostSessions = 256;  // beyond that the oldest are closed

struct Session {
  std::string id;    // the browser's secret, in a cookie
  std::string csrf;  // sent along by this server's own pages; pages of other sites cannot know it
};

// Thread-safe.
class Sessions {
 public:
  Sessions(std::string token, const Clock& clock) : token_(std::move(token)), clock_(clock) {}

  // Whether `given` is the token, compared with SameSecret. Wrong tokens are counted in the log.
  bool IsToken(std::string_view given);
  Session Open();
  // nullopt if there is no session with that id, or if it has expired.
  std::optional<Session> Find(std::string_view id);
  void Close(std::string_view id);

 private:
  struct Kept {
    std::string csrf;
    absl::Duration ends;  // on the monotonic clock
  };

  const std::string token_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Kept, std::less<>> open_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t wrong_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Duration> said_ ABSL_GUARDED_BY(mutex_);  // when the log last mentioned them
};

// Whether both are equal. For equal lengths, the time does not depend on where they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace pelab::http
