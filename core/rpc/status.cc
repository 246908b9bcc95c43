#include "core/rpc/status.h"

#include <grpcpp/support/status.h>

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"
#include "pelab/v1/common.pb.h"

namespace pelab::rpc {
namespace {

absl::string_view Url() { return kViolationsUrl; }

// HTTP/2 headers carry the message and the details; most peers accept 8 KiB of headers in total.
constexpr std::size_t kMaxDetailBytes = 4096;
constexpr std::size_t kMaxMessageText = 2048;

// The first violations that fit into kMaxDetailBytes.
std::string FittingDetails(const absl::Cord& payload) {
  std::string bytes(payload);
  if (bytes.size() <= kMaxDetailBytes) return bytes;
  v1::Violations all;
  v1::Violations some;
  if (!all.ParseFromString(bytes)) return {};
  for (const v1::Violation& violation : all.violations()) {
    *some.add_violations() = violation;
    if (some.ByteSizeLong() > kMaxDetailBytes) {
      some.mutable_violations()->RemoveLast();
      break;
    }
  }
  return some.SerializeAsString();
}

// Also makes the message UTF-8: clients copy it into JSON and into other messages.
std::string FittingMessage(absl::string_view message) {
  return Shorten({message.data(), message.size()}, kMaxMessageText);
}

}  // namespace

// Both enumerations have the same numbers by design (google.rpc.Code).
grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto payload = status.GetPayload(Url());
  return {static_cast<grpc::StatusCode>(status.code()), FittingMessage(status.message()),
          payload.has_value() ? FittingDetails(*payload) : std::string()};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT &&
      !status.error_details().empty()) {
    result.SetPayload(Url(), absl::Cord(status.error_details()));
  }
  return result;
}

absl::Status ViolationsError(const v1::Violations& violations) {
  std::string message;
  for (const v1::Violation& violation : violations.violations()) {
    absl::StrAppend(&message, message.empty() ? "" : "\n", violation.message());
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(Url(), absl::Cord(violations.SerializeAsString()));
  return status;
}

std::optional<v1::Violations> GetViolations(const absl::Status& status) {
  const auto payload = status.GetPayload(Url());
  v1::Violations violations;
  if (!payload.has_value() || !violations.ParseFromString(std::string(*payload)))
    return std::nullopt;
  if (violations.violations().empty()) return std::nullopt;
  return violations;
}

}  // namespace pelab::rpc
