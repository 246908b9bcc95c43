// The file of --token-out.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab::client {

// A new file for a token, readable by its owner alone. It is made before the coordinator is asked,
// so that no token is made that has no place; it is removed again if no token was written. Not
// thread-safe.
class TokenOut {
 public:
  // Null if `path` is empty. ALREADY_EXISTS if anything is there; the message names the flag.
  static absl::StatusOr<std::unique_ptr<TokenOut>> Create(const std::string& path);
  ~TokenOut();
  TokenOut(const TokenOut&) = delete;

  const std::string& path() const { return path_; }
  // Writes and syncs the token, on a line of its own.
  absl::Status Write(const std::string& token);

 private:
  TokenOut(std::string path, UniqueFd fd);

  const std::string path_;
  UniqueFd fd_;
  bool written_ = false;
};

}  // namespace pelab::client
