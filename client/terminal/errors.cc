#include "client/terminal/errors.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "core/base/strings.h"
#include "core/render/json.h"
#include "core/render/text.h"
#include "core/rpc/status.h"
#include "pelab/v1/common.pb.h"

namespace pelab::client {
namespace {

// "table1.yaml:3:22: "; "pelab: --set: " for a violation that comes from the command line.
std::string Place(const v1::Violation& violation, const std::string& file_name) {
  if (violation.line() <= 0 && violation.path().starts_with("--set")) return "pelab: --set: ";
  if (violation.line() <= 0) return Concat(file_name, ": ");
  return Concat(file_name, ":", violation.line(), ":", violation.column(), ": ");
}

std::string CodeName(absl::StatusCode code) {
  return absl::AsciiStrToLower(absl::StatusCodeToString(code));
}

render::Json ErrorJson(const absl::Status& status, const std::optional<v1::Violations>& violations,
                       const std::string& file_name) {
  render::Json error = {{"code", CodeName(status.code())},
                        {"exit_code", ExitCodeOf(status)},
                        {"message", std::string(status.message())}};
  if (violations) {
    error["file"] = file_name;
    error["violations"] = render::Json::array();
    for (const v1::Violation& v : violations->violations()) {
      error["violations"].push_back({{"line", v.line()},
                                     {"column", v.column()},
                                     {"path", v.path()},
                                     {"value", v.value()},
                                     {"allowed", v.allowed()},
                                     {"message", v.message()}});
    }
  }
  return {{"error", error}};
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
      return kExitNoCoordinator;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailed;
  }
}

std::string ErrorMember(const absl::Status& status) {
  return render::ToJson(ErrorJson(status, std::nullopt, "")).substr(2);
}

int ReportError(const Context& context, const absl::Status& status, const std::string& file_name) {
  const std::optional<v1::Violations> violations = rpc::GetViolations(status);
  if (context.output() == Output::kJson) {
    context.out(render::ToJson(ErrorJson(status, violations, file_name)));
  } else if (violations && violations->violations_size() > 0) {
    for (const v1::Violation& v : violations->violations()) {
      context.err(render::Escape(Place(v, file_name) + v.message()) + "\n");
    }
  } else {
    context.err(Concat("pelab: ", render::Escape(std::string(status.message())), "\n"));
  }
  return ExitCodeOf(status);
}

}  // namespace pelab::client
