#include "server/stored_sweep.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/experiment/analysis.h"
#include "core/rpc/sweep_document.h"

namespace pelab {
namespace {

using Overrides = google::protobuf::RepeatedPtrField<v1::Override>;

}  // namespace

absl::StatusOr<experiment::Sweep> RebuildSweep(const v1::Sweep& row) {
  auto sweep = rpc::ParseSweepDocument(row.document(), row.overrides());
  if (!sweep.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("sweep ", row.sweep_id(), " cannot be extended: this version refuses its ",
                     "document; submit it under another name with the further seeds"));
  }
  for (const std::string& seeds : row.extensions()) {
    experiment::Extension extension = experiment::ExtendAgain(*sweep, seeds);
    if (!extension.sweep) return absl::DataLossError(extension.problem);
    sweep = *std::move(extension.sweep);
  }
  return sweep;
}

std::string ResourcesJson(const experiment::Resources& resources) {
  return nlohmann::json{{"device", resources.device}, {"memory_bytes", resources.memory_bytes}}
      .dump();
}

std::string OverridesToJson(const Overrides& overrides) {
  nlohmann::json array = nlohmann::json::array();
  for (const v1::Override& override : overrides) {
    array.push_back({{"field", override.field()}, {"value", override.value()}});
  }
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<experiment::Override> OverridesFromJson(const std::string& json) {
  std::vector<experiment::Override> overrides;
  const auto array = ParseJson(json);
  if (!array.is_array()) return overrides;
  for (const auto& item : array) {
    if (!item.is_object()) continue;
    overrides.push_back({item.value("field", ""), item.value("value", "")});
  }
  return overrides;
}

absl::Status QueueIsFull(absl::string_view owner, std::int64_t queued, std::int64_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat(queued, " jobs of ", owner, " wait; with these it would be more than the ", most,
                   " that are allowed; an operator can raise this: pelab admin principal change ",
                   owner, " --max-queued N"));
}

}  // namespace pelab
