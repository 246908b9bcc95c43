// Helpers around absl::Status. Messages are in lower case and say what failed, with which value,
// and which values are allowed.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Returns from the function with the status of `expression` unless it is OK.
#define PELAB_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                     \
    if (absl::Status pelab_status = (expression); !pelab_status.ok()) return pelab_status; \
  } while (false)

#define PELAB_CONCAT_INNER(a, b) a##b
#define PELAB_CONCAT(a, b) PELAB_CONCAT_INNER(a, b)

// PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLimit)). If the target has a comma
// outside parentheses, declare the variable before and assign to it.
#define PELAB_ASSIGN_OR_RETURN(target, expression) \
  PELAB_ASSIGN_OR_RETURN_INNER(PELAB_CONCAT(pelab_result_, __LINE__), target, expression)
// NOLINTBEGIN(bugprone-macro-parentheses): a target may be a declaration
#define PELAB_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return std::move(result).status();           \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

namespace pelab {

// "cannot open jobs.yaml: no such file or directory", with the status code that fits `error_number`
// (ENOENT: NOT_FOUND, EACCES: PERMISSION_DENIED, ENOSPC: RESOURCE_EXHAUSTED, …).
absl::Status ErrnoStatus(int error_number, absl::string_view what);

// The same code and payloads, with "prefix: " before the message.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix);

}  // namespace pelab
