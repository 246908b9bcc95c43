#include "server/service/import_parts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/experiment/key.h"
#include "server/limits.h"
#include "server/service/convert.h"
#include "server/store/artifact_files.h"

namespace pelab::service {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxSeed = (std::int64_t{1} << 53) - 1;

absl::Status Bad(const v1::ImportedJob& job, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("job ", job.key().substr(0, 12), " ", what));
}

template <typename T>
std::optional<T> If(bool has, T value) {
  return has ? std::optional<T>(std::move(value)) : std::nullopt;
}

// The integer spec[part][name]; nullopt if it is missing or not an integer.
std::optional<std::int64_t> IntegerAt(const json& spec, const char* part, const char* name) {
  const auto member = spec.find(part);
  if (member == spec.end() || !member->is_object()) return std::nullopt;
  const auto value = member->find(name);
  if (value == member->end() || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}
std::string TextAt(const json& spec, const char* part, const char* name) {
  const auto member = spec.find(part);
  if (member == spec.end() || !member->is_object()) return "";
  const auto value = member->find(name);
  return value == member->end() || !value->is_string() ? "" : value->get<std::string>();
}

absl::StatusOr<store::NewCell> ToCell(const v1::ImportedJob& job) {
  if (experiment::KeyOf(job.spec_json()) != job.key()) return Bad(job, "has a spec of another key");
  const json spec = ParseJson<json>(job.spec_json());
  if (!spec.is_object()) {
    const std::string why = WhyNotBounded(job.spec_json());
    return Bad(job, why.empty() ? "has a spec that is not a JSON object"
                                : absl::StrCat("has a spec that ", why));
  }
  const auto seed = spec.find("seed");
  const auto epochs = IntegerAt(spec, "train", "epochs");
  store::NewCell cell{
      .key = job.key(),
      .pe_label = job.pe_label(),
      .protocol_label = job.protocol(),
      .seed = seed != spec.end() && seed->is_number_integer() ? seed->get<std::int64_t>() : -1,
      .spec_json = job.spec_json(),
      .requirement = {
          .pe = TextAt(spec, "pe", "name"),
          .pe_version = static_cast<int>(IntegerAt(spec, "pe", "version").value_or(0)),
          .task = TextAt(spec, "task", "name"),
          .task_version = static_cast<int>(IntegerAt(spec, "task", "version").value_or(0)),
          .device_kind = job.device_kind(),
          .memory_bytes = job.memory_bytes(),
          .analyses = {}}};
  if (cell.requirement.pe.empty() || cell.requirement.task.empty() || cell.seed < 0 ||
      cell.seed > kMaxSeed || !epochs || *epochs < 0 || *epochs > INT32_MAX) {
    return Bad(job, "has a spec without pe.name, task.name, seed or train.epochs");
  }
  cell.epochs = static_cast<int>(*epochs);
  const std::string& kind = cell.requirement.device_kind;
  if (cell.pe_label.empty() || cell.protocol_label.empty() ||
      (kind != "any" && kind != "gpu" && kind != "cpu")) {
    return Bad(job, "has no label, no protocol or an unknown kind of device");
  }
  return cell;
}

std::optional<state::Outcome> ToOutcome(v1::AttemptOutcome outcome) {
  switch (outcome) {
    case v1::ATTEMPT_OUTCOME_SUCCEEDED:
      return state::Outcome::kSucceeded;
    case v1::ATTEMPT_OUTCOME_FAILED:
      return state::Outcome::kFailed;
    case v1::ATTEMPT_OUTCOME_LOST:
      return state::Outcome::kLost;
    case v1::ATTEMPT_OUTCOME_PREEMPTED:
      return state::Outcome::kPreempted;
    case v1::ATTEMPT_OUTCOME_CANCELLED:
      return state::Outcome::kCancelled;
    case v1::ATTEMPT_OUTCOME_SUPERSEDED:
      return state::Outcome::kSuperseded;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<store::ImportJob> ToImportJob(const v1::ImportedJob& job) {
  PELAB_ASSIGN_OR_RETURN(store::NewCell cell, ToCell(job));
  // SQL looks into this column, so it must be valid JSON.
  if (job.has_execution_json() && !IsJsonObject(job.execution_json())) {
    return Bad(job, "has an execution that is not a JSON object");
  }
  store::ImportJob out{.cell = std::move(cell),
                       .device = If(job.has_device(), job.device()),
                       .wall_seconds = If(job.has_wall_seconds(), job.wall_seconds()),
                       .execution_json = If(job.has_execution_json(), job.execution_json()),
                       .created_at = job.created_at_ms(),
                       .ended_at = job.ended_at_ms()};
  for (const v1::ImportedAttempt& attempt : job.attempts()) {
    const auto outcome = ToOutcome(attempt.outcome());
    if (!outcome) return Bad(job, "has an attempt that has not ended");
    if (!IsJson(attempt.analyses_json()) ||
        (attempt.has_environment_json() && !IsJsonObject(attempt.environment_json()))) {
      return Bad(job, "has an attempt with analyses or an environment that are not JSON");
    }
    out.attempts.push_back(
        {.worker_id = attempt.worker_id(),
         .slot = attempt.slot(),
         .device = attempt.device(),
         .analyses_json = attempt.analyses_json(),
         .start_epoch = If(attempt.has_start_epoch(), attempt.start_epoch()),
         .environment_json = If(attempt.has_environment_json(), attempt.environment_json()),
         .outcome = *outcome,
         .error_kind = If(attempt.has_error_kind(), attempt.error_kind()),
         .error = If(attempt.has_error(), attempt.error()),
         .started_at = attempt.started_at_ms(),
         .ended_at = attempt.ended_at_ms()});
  }
  for (const v1::ImportedWorker& worker : job.workers()) {
    if (worker.worker_id().empty() || !IsJson(worker.slots_json())) {
      return Bad(job, "has a worker without an id, or with slots that are not JSON");
    }
    out.workers.push_back({.worker_id = worker.worker_id(),
                           .host = worker.host(),
                           .version = worker.version(),
                           .slots_json = worker.slots_json(),
                           .slots = worker.slots(),
                           .last_seen_at = worker.last_seen_at_ms()});
  }
  return out;
}

store::ImportedAnalysis ToImportedAnalysis(const v1::ImportedAnalysis& analysis) {
  store::ImportedAnalysis out{
      .attempt = analysis.attempt(), .created_at = analysis.created_at_ms(), .body = {}};
  if (analysis.has_result()) {
    out.body = ToResult(analysis.result());
  } else {
    out.body = ToMatrix(analysis.head_ablation());
  }
  return out;
}

absl::StatusOr<store::ImportedFile> ToImportedFile(const v1::ImportedFile& file) {
  PELAB_RETURN_IF_ERROR(store::CheckSha256(file.sha256()));
  if (file.name().empty() || file.name().size() > limits::kImportedNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of a file has 1 to ",
                                                   limits::kImportedNameBytes, " bytes, not ",
                                                   file.name().size()));
  }
  return store::ImportedFile{
      .attempt = file.attempt(),
      .artifact = {.name = file.name(), .sha256 = file.sha256(), .bytes = file.bytes()}};
}

absl::StatusOr<store::ImportSweep> ToImportSweep(const v1::ImportedSweep& sweep) {
  if (sweep.token().empty() || sweep.name().empty()) {
    return absl::InvalidArgumentError("an imported sweep has a token and a name");
  }
  for (const std::string* text : {&sweep.overrides_json(), &sweep.analyses_json(),
                                  &sweep.resources_json(), &sweep.extensions_json()}) {
    if (!IsJson(*text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("sweep ", sweep.name(), " has settings that are not JSON"));
    }
  }
  return store::ImportSweep{.token = sweep.token(),
                            .name = sweep.name(),
                            .protocol = sweep.protocol(),
                            .document = sweep.document(),
                            .file_name = sweep.file_name(),
                            .overrides_json = sweep.overrides_json(),
                            .analyses_json = sweep.analyses_json(),
                            .resources_json = sweep.resources_json(),
                            .extensions_json = sweep.extensions_json(),
                            .priority = sweep.priority(),
                            .cells = sweep.cells(),
                            .created_at = sweep.created_at_ms(),
                            .jobs = {}};
}

}  // namespace pelab::service
