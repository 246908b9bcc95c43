// Decides who may change things over HTTP: clients that have the coordinator's token, and sessions
// that were opened with it. Sessions are kept in memory only, so a restart ends them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/rpc/secrets.h"

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
  Sessions(std::shared_ptr<rpc::TokenFile> token, const Clock& clock)
      : token_(std::move(token)), clock_(clock) {}

  // Whether `given` is the token, compared with SameSecret. Wrong tokens are counted in the log.
  bool IsToken(std::string_view given);
  Session Open();
  // nullopt if there is no session with that id, if it has expired, or if it was opened with an
  // earlier token.
  std::optional<Session> Find(std::string_view id);
  void Close(std::string_view id);

 private:
  struct Kept {
    std::string csrf;
    absl::Duration ends;        // on the monotonic clock
    std::uint64_t version = 0;  // of the token
  };

  const std::shared_ptr<rpc::TokenFile> token_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Kept, std::less<>> open_ ABSL_GUARDED_BY(mutex_);
  rpc::WrongTokens wrong_{"pages"};
};

}  // namespace pelab::http
