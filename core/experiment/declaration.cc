#include "core/experiment/declaration.h"

#include <utility>

#include "core/base/json_text.h"

namespace pelab::experiment {

DeclarationResult ParseDeclaration(std::string_view json) {
  const nlohmann::json parsed = ParseJsonOrNull(json);
  const auto kind = parsed.is_object() ? parsed.find("kind") : parsed.end();
  if (parsed.is_object() && kind != parsed.end() && *kind == "task") {
    OwnTaskResult task = ParseOwnTask(json);
    return {std::move(task.task), std::move(task.problem)};
  }
  OwnEncodingResult encoding = ParseOwnEncoding(json);
  return {std::move(encoding.encoding), std::move(encoding.problem)};
}

std::string ToJson(const Declaration& declaration) {
  return std::visit([](const auto& of) { return ToJson(of); }, declaration);
}

const std::string& Sha256Of(const Declaration& declaration) {
  return std::visit([](const auto& of) -> const std::string& { return of.sha256; }, declaration);
}

std::uint64_t BytesOf(const Declaration& declaration) {
  return std::visit([](const auto& of) { return of.bytes; }, declaration);
}

}  // namespace pelab::experiment
