#include "core/rpc/sweep_document.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/experiment/analysis.h"
#include "core/experiment/sweep_name.h"
#include "core/experiment/yaml_tree.h"
#include "core/rpc/status.h"

namespace pelab::rpc {
namespace {

constexpr int kMaxViolations = 100;

v1::Violation ToProto(const experiment::Violation& violation) {
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

absl::StatusOr<experiment::Sweep> ParseSweepDocument(
    const std::string& document,
    const google::protobuf::RepeatedPtrField<v1::Override>& overrides) {
  v1::Violations violations;
  if (document.size() > experiment::kMaxDocumentBytes) {
    v1::Violation* violation = violations.add_violations();
    violation->set_value(absl::StrCat(document.size(), " bytes"));
    violation->set_allowed(absl::StrCat("at most ", experiment::kMaxDocumentBytes, " bytes"));
    violation->set_message(absl::StrCat("the document has ", document.size(),
                                        " bytes; allowed: at most ",
                                        experiment::kMaxDocumentBytes));
    return ViolationsError(violations);
  }
  std::vector<experiment::Override> applied;
  for (const v1::Override& override : overrides) {
    applied.push_back({override.field(), override.value()});
  }
  experiment::SweepResult result = experiment::ParseSweep(document, applied);
  if (result.sweep) return *std::move(result.sweep);
  return ToStatus(result.violations);
}

std::map<std::string, std::string> ByField(
    const google::protobuf::RepeatedPtrField<v1::Override>& overrides) {
  std::map<std::string, std::string> values;
  for (const v1::Override& override : overrides) values[override.field()] = override.value();
  return values;
}

absl::Status ToStatus(const std::vector<experiment::Violation>& violations) {
  v1::Violations all;
  for (const experiment::Violation& violation : violations) {
    if (all.violations_size() == kMaxViolations) break;
    *all.add_violations() = ToProto(violation);
  }
  return ViolationsError(all);
}

absl::StatusOr<experiment::Sweep> ParseNewSweepDocument(
    const std::string& document,
    const google::protobuf::RepeatedPtrField<v1::Override>& overrides) {
  absl::StatusOr<experiment::Sweep> sweep = ParseSweepDocument(document, overrides);
  if (!sweep.ok() || !experiment::IsNumberName(sweep->name())) return sweep;
  v1::Violations violations;
  v1::Violation& violation = *violations.add_violations();
  violation.set_path("name");
  violation.set_value(sweep->name());
  violation.set_allowed(std::string(experiment::kNumberNameRule));
  violation.set_message(absl::StrCat("name must not be a number, as \"", sweep->name(),
                                     "\": sweeps have numbers, too, and `pelab cancel ",
                                     sweep->name(), "` would mean another one"));
  const bool overridden = std::any_of(overrides.begin(), overrides.end(),
                                      [](const auto& o) { return o.field() == "name"; });
  if (overridden) {
    violation.set_path("--set name");
    return ViolationsError(violations);
  }
  const experiment::YamlResult tree = experiment::ParseYaml(document, "document");
  if (tree.root == nullptr) return ViolationsError(violations);
  for (const experiment::YamlMember& member : tree.root->members) {
    if (member.key->text != "name") continue;
    violation.set_line(member.value->line);
    violation.set_column(member.value->column);
  }
  return ViolationsError(violations);
}

std::vector<v1::Analysis> AnalysesOf(const experiment::Sweep& sweep) {
  std::vector<v1::Analysis> analyses;
  for (const experiment::Analysis& analysis : sweep.analyses()) {
    v1::Analysis& added = analyses.emplace_back();
    added.set_name(analysis.name);
    added.set_version(analysis.version);
    added.set_parameters_json(experiment::CanonicalParameters(analysis));
  }
  return analyses;
}

}  // namespace pelab::rpc
