// The matchers IsOk() and StatusIs(code, matcher of the message) for absl::Status and
// absl::StatusOr.
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return testing::ExplainMatchResult(code, status.code(), result_listener) &&
         testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace pelab
