#include "core/results/variants.h"

#include <algorithm>
#include <set>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/catalog/catalog.h"
#include "core/render/json.h"

namespace pelab::results {
namespace {

using render::Json;

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The text of a parameter in a title; empty for a default that need not be mentioned.
std::string ParameterText(const std::string& name, const Json& value) {
  const std::string text = TextOf(value);
  if (name == "method") return text + " ablation";
  if (name == "hygiene") return text + " hygiene";
  if (name == "data") return text + " data";
  if (name == "target") return text == "head" ? "" : "target " + text;
  if (name == "max_examples") return text == "0" ? "" : Concat("first ", text, " examples");
  if (name == "steps") return text + " steps";
  if (name == "orders") return text + " random orders";
  return Concat(name, " ", text);
}

std::string MemberText(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Keeps the rows whose kind has this value for `name`.
absl::Status Keep(const char* name, const std::string& wanted, std::string AblationKind::*member,
                  std::vector<v1::AnalysisRow>& rows) {
  if (wanted.empty()) return absl::OkStatus();
  std::vector<std::string> stored;
  stored.reserve(rows.size());
  for (const v1::AnalysisRow& row : rows) stored.push_back(KindOf(row).*member);
  PELAB_RETURN_IF_ERROR(CheckChosen(name, wanted, stored));
  std::erase_if(rows, [&](const v1::AnalysisRow& row) { return KindOf(row).*member != wanted; });
  return absl::OkStatus();
}

}  // namespace

Variants VariantsOf(const std::vector<v1::AnalysisRow>& analyses) {
  Variants variants;
  for (const v1::AnalysisRow& row : analyses) {
    variants[row.analysis_id()] = {row.name(), row.version(), row.parameters_json()};
  }
  return variants;
}

std::string Describe(const Variant& variant) {
  const Json parameters = ParseJson<Json>(variant.parameters_json);
  if (!parameters.is_object()) return variant.parameters_json;
  std::vector<std::string> parts;
  if (parameters.contains("method")) parts.push_back(ParameterText("method", parameters["method"]));
  for (const auto& [name, value] : parameters.items()) {
    if (name == "method") continue;
    if (std::string text = ParameterText(name, value); !text.empty()) parts.push_back(text);
  }
  const catalog::Entry* entry = catalog::FindAnalysis(variant.name);
  if (entry == nullptr || entry->version != variant.version) {
    parts.push_back(Concat("version ", variant.version));
  }
  return Join(parts, ", ");
}

absl::Status CheckChosen(const std::string& name, const std::string& value,
                         const std::vector<std::string>& stored) {
  const std::set<std::string> known(stored.begin(), stored.end());
  if (known.empty() || known.count(value) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(name, ": no stored ablation has \"", value, "\"; stored: ", Join(known, ", ")));
}

AblationKind KindOf(const v1::AnalysisRow& row) {
  const Json parameters = ParseJson<Json>(row.parameters_json());
  return {MemberText(parameters, "method"), MemberText(parameters, "data")};
}

absl::Status Choose(const AblationChoice& choice, std::vector<v1::AnalysisRow>& rows) {
  PELAB_RETURN_IF_ERROR(Keep("method", choice.method, &AblationKind::method, rows));
  return Keep("data", choice.split, &AblationKind::data, rows);
}

}  // namespace pelab::results
