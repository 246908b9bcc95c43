// Tokens that clients send. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace pelab::rpc {

// Whether both are equal. For equal lengths, the time does not depend on where they differ.
bool SameSecret(std::string_view a, std::string_view b);

// The token itself if it may be one: 16 to 4,096 printable characters without spaces. `source` is
// named in the error.
absl::StatusOr<std::string> CheckToken(std::string token, absl::string_view source);

// Reads a token file, which has the token as its only line.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// The token that a file holds now, for servers and clients. After the file is replaced, the old
// token stops working within a second, without a restart. If the new file holds no token, the old
// token stays and the log says so.
class TokenFile {
 public:
  // Errors are those of ReadTokenFile. Warns in the log if every user of this host can read it.
  static absl::StatusOr<std::shared_ptr<TokenFile>> Open(const std::string& path);

  // A token that is in no file and never changes.
  static std::shared_ptr<TokenFile> Fixed(std::string token);

  bool Is(std::string_view given);
  std::string Current();
  // How often the token has changed. Calls and sessions opened with an earlier token
  // end.
  std::uint64_t Version();

 private:
  TokenFile(std::string path, std::string mark, std::string token);
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;  // empty: there is no file
  Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  std::string mark_ ABSL_GUARDED_BY(mutex_);  // tells whether the file is another one
  absl::Time looked_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Counts refused tokens and logs their number: at the first one, and then at most every 10 s.
class WrongTokens {
 public:
  explicit WrongTokens(std::string where) : where_(std::move(where)) {}
  void Add();

 private:
  const std::string where_;  // "pages"
  Mutex mutex_;
  std::uint64_t wrong_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time said_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Warns in the log if every user of this host can read the file. It does not refuse it: where
// containers get their secrets as files, these often have that mode.
void WarnIfOthersCanRead(const std::string& path);

}  // namespace pelab::rpc
