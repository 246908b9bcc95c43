// Sweep documents on their way into the coordinator.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/rpc/status.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

using Overrides = google::protobuf::RepeatedPtrField<v1::Override>;
constexpr int kMaxViolations = 100;

v1::Violation ToProto(const spec::Violation& violation) {
  v1::Violation out;
  out.set_line(violation.line);
  out.set_column(violation.column);
  out.set_path(violation.path);
  out.set_value(violation.value);
  out.set_allowed(violation.allowed);
  out.set_message(violation.message);
  return out;
}

}  // namespace

absl::StatusOr<spec::Sweep> ParseDocument(const std::string& document, const std::string&,
                                          const Overrides& overrides) {
  v1::Violations violations;
  if (document.size() > spec::kMaxDocumentBytes) {
    v1::Violation* violation = violations.add_violations();
    violation->set_value(absl::StrCat(document.size(), " bytes"));
    violation->set_allowed(absl::StrCat("at most ", spec::kMaxDocumentBytes, " bytes"));
    violation->set_message(absl::StrCat("the document has ", document.size(),
                                        " bytes; allowed: at most ", spec::kMaxDocumentBytes));
    return rpc::ViolationsError(violations);
  }
  std::vector<spec::Override> applied;
  for (const v1::Override& override : overrides) {
    applied.push_back({override.field(), override.value()});
  }
  spec::SweepResult result = spec::ParseSweep(document, applied);
  if (result.sweep) return *std::move(result.sweep);
  for (const spec::Violation& violation : result.violations) {
    if (violations.violations_size() == kMaxViolations) break;
    *violations.add_violations() = ToProto(violation);
  }
  return rpc::ViolationsError(violations);
}

std::string OverridesToJson(const Overrides& overrides) {
  nlohmann::json array = nlohmann::json::array();
  for (const v1::Override& override : overrides) {
    array.push_back({{"field", override.field()}, {"value", override.value()}});
  }
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<spec::Override> OverridesFromJson(const std::string& json) {
  std::vector<spec::Override> overrides;
  const auto array = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!array.is_array()) return overrides;
  for (const auto& item : array) {
    overrides.push_back({item.value("field", ""), item.value("value", "")});
  }
  return overrides;
}

}  // namespace pelab::service
