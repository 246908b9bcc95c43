#include "server/service/import_parts.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/trace_context.h"
#include "core/event/check.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/key.h"
#include "core/experiment/sweep.h"
#include "core/state/state.h"
#include "server/limits.h"
#include "server/service/check_text.h"
#include "server/service/sweeps_service.h"
#include "server/store/artifact_files.h"

namespace pelab::service {
namespace {

using nlohmann::json;

constexpr char kImportToken[] = "import-";               // as core/db/import writes it
constexpr std::int64_t kLastTime = 253'402'300'799'999;  // the end of the year 9999, in ms

// The job of a message: the start of its key, or all of a text that is none.
std::string Named(const v1::ImportedJob& job) {
  return absl::StrCat("job ", IsSha256(job.key())
                                  ? job.key().substr(0, 12)
                                  : absl::StrCat("\"", Printable(job.key(), 80), "\""));
}

absl::Status Bad(const v1::ImportedJob& job, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Named(job), " ", what));
}

// The first of several checks that fails.
absl::Status AllOf(std::initializer_list<absl::Status> checks) {
  for (const absl::Status& check : checks) PELAB_RETURN_IF_ERROR(check);
  return absl::OkStatus();
}

// A text of a row that may hold anything, such as an error of several lines.
absl::Status CheckSize(absl::string_view what, const std::string& text, std::size_t most) {
  if (text.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", text.size(), " bytes; at most ", most, " are allowed"));
}

absl::Status CheckTime(absl::string_view what, std::int64_t unix_ms) {
  if (unix_ms >= 0 && unix_ms <= kLastTime) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", unix_ms, " ms after 1970; allowed: 0 to ", kLastTime));
}

// Each id may be empty; a span needs a trace. Other ids must be those of W3C Trace Context.
absl::Status CheckTrace(absl::string_view of, const std::string& trace_id,
                        std::initializer_list<std::string> span_ids) {
  constexpr char kAnyTrace[] = "0af7651916cd43dd8448eb211c80319c";
  constexpr char kAnySpan[] = "b7ad6b7169203331";
  bool good = trace_id.empty() || ParseTraceparent(Traceparent({trace_id, kAnySpan}));
  for (const std::string& span_id : span_ids) {
    good = good && (span_id.empty() ||
                    (!trace_id.empty() && ParseTraceparent(Traceparent({kAnyTrace, span_id}))));
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(of, " the trace \"", Printable(trace_id, 80),
                   "\" or spans of it that are not ids of W3C Trace Context"));
}

// The rules of CheckHello (convert.cc), for a worker of another database.
absl::Status CheckWorker(const std::string& of, const v1::ImportedWorker& worker) {
  if (worker.slots() < 0 || worker.slots() > limits::kSlotsOfWorker) {
    return absl::InvalidArgumentError(absl::StrCat(
        of, " a worker with ", worker.slots(), " slots; allowed: 0 to ", limits::kSlotsOfWorker));
  }
  return AllOf({CheckWorkerId(of + " a worker whose id", worker.worker_id()),
                CheckText(of + " a worker whose host", worker.host(), limits::kHostBytes),
                CheckText(of + " a worker whose version", worker.version(), limits::kVersionBytes),
                CheckSize(of + " a worker whose list of slots", worker.slots_json(),
                          2 * limits::kImportedTextBytes),
                CheckTime(of + " a worker whose time", worker.last_seen_at_ms())});
}

absl::Status CheckAttempt(const std::string& of, const v1::ImportedAttempt& attempt) {
  if (attempt.slot() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(of, " an attempt in slot ", attempt.slot(), "; slots count from 0"));
  }
  if (attempt.has_error_kind() && !state::ParseErrorKind(attempt.error_kind())) {
    return absl::InvalidArgumentError(absl::StrCat(of,
                                                   " an attempt with the unknown kind of error \"",
                                                   Printable(attempt.error_kind(), 80), "\""));
  }
  const std::string wrong =
      event::WhatIsWrongWithJoules(of + " an attempt", "energy_joules", attempt.energy_joules());
  if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
  return AllOf({CheckText(of + " an attempt whose device", attempt.device(), limits::kLabelBytes),
                CheckSize(of + " an attempt whose error", attempt.error(), limits::kErrorBytes),
                CheckSize(of + " an attempt whose list of analyses", attempt.analyses_json(),
                          limits::kImportedTextBytes),
                CheckSize(of + " an attempt whose environment", attempt.environment_json(),
                          limits::kImportedTextBytes),
                CheckTime(of + " an attempt whose start", attempt.started_at_ms()),
                CheckTime(of + " an attempt whose end", attempt.ended_at_ms()),
                CheckTrace(of + " an attempt with", attempt.trace_id(),
                           {attempt.span_id(), attempt.parent_span_id()})});
}

// Texts, times and sizes, as they are of jobs that were trained here.
absl::Status CheckTexts(const v1::ImportedJob& job) {
  const std::string of = absl::StrCat(Named(job), " has");
  if (job.memory_bytes() > static_cast<std::uint64_t>(INT64_MAX)) {
    return Bad(job, "wants more memory than there is");
  }
  PELAB_RETURN_IF_ERROR(
      AllOf({CheckText(of + " a label that", job.pe_label(), limits::kLabelBytes),
             CheckText(of + " a protocol that", job.protocol(), limits::kLabelBytes),
             CheckText(of + " a device that", job.device(), limits::kLabelBytes),
             CheckSize(of + " an execution that", job.execution_json(), limits::kImportedTextBytes),
             CheckTime(of + " a start that", job.created_at_ms()),
             CheckTime(of + " an end that", job.ended_at_ms())}));
  for (const v1::ImportedWorker& worker : job.workers()) {
    PELAB_RETURN_IF_ERROR(CheckWorker(of, worker));
  }
  for (const v1::ImportedAttempt& attempt : job.attempts()) {
    PELAB_RETURN_IF_ERROR(CheckAttempt(of, attempt));
  }
  return absl::OkStatus();
}

// The job of a spec, which must be one that could be submitted here. Otherwise conditions, charts
// and trainers would meet encodings, types and sizes that they do not know.
absl::StatusOr<experiment::Job> ToJob(const v1::ImportedJob& job) {
  experiment::CanonicalResult read = experiment::FromCanonicalJson(job.spec_json());
  if (!read.job) {
    const std::string why = read.violations.empty() ? "" : read.violations.front().message;
    return Bad(job, absl::StrCat("has a spec that cannot be: ", Printable(why, 1000)));
  }
  if (experiment::ToCanonicalJson(*read.job) != job.spec_json()) {
    return Bad(job, "has a spec that is not written canonically");
  }
  return *std::move(read.job);
}

absl::StatusOr<store::NewCell> ToCell(const v1::ImportedJob& job) {
  if (experiment::KeyOf(job.spec_json()) != job.key()) return Bad(job, "has a spec of another key");
  const json spec = ParseJson<json>(job.spec_json());
  if (!spec.is_object()) {
    const std::string why = WhyNotBounded(job.spec_json());
    return Bad(job, why.empty() ? "has a spec that is not a JSON object"
                                : absl::StrCat("has a spec that ", why));
  }
  PELAB_ASSIGN_OR_RETURN(const experiment::Job read, ToJob(job));
  store::NewCell cell{.key = job.key(),
                      .pe_label = job.pe_label(),
                      .protocol_label = job.protocol(),
                      .seed = read.seed,
                      .spec_json = job.spec_json(),
                      .requirement = {.pe = read.pe,
                                      .pe_version = read.pe_version,
                                      .task = experiment::TaskLabel(read),
                                      .task_version = read.task_version,
                                      .device_kind = job.device_kind(),
                                      .memory_bytes = job.memory_bytes(),
                                      .analyses = {}},
                      .epochs = static_cast<int>(read.Int("train.epochs"))};
  const std::string& kind = cell.requirement.device_kind;
  if (cell.pe_label.empty() || cell.protocol_label.empty() ||
      (kind != "any" && kind != "gpu" && kind != "cpu")) {
    return Bad(job, "has no label, no protocol or an unknown kind of device");
  }
  return cell;
}

// The rules of Submit and Rename, for a sweep of another database.
absl::Status CheckSweep(const v1::ImportedSweep& sweep) {
  // No submission has such a token, so an import finds only what imports have stored.
  if (!absl::StartsWith(sweep.token(), kImportToken) ||
      !IsSha256(sweep.token().substr(sizeof(kImportToken) - 1))) {
    return absl::InvalidArgumentError(absl::StrCat("the token of an imported sweep must be \"",
                                                   kImportToken, "\" and a SHA-256, not \"",
                                                   Printable(sweep.token(), 80), "\""));
  }
  if (const absl::Status name = CheckSweepName(sweep.name()); !name.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sweep cannot be imported: ", std::string(name.message()),
                     "; rename it there (pelab sweeps rename) and import again"));
  }
  if (sweep.cells() > experiment::kMaxJobs) {
    return absl::InvalidArgumentError(absl::StrCat("sweep ", sweep.name(), " has ", sweep.cells(),
                                                   " cells; at most ", experiment::kMaxJobs,
                                                   " are allowed"));
  }
  const std::string of = absl::StrCat("sweep ", sweep.name(), " has");
  return AllOf(
      {CheckText(of + " a protocol that", sweep.protocol(), limits::kLabelBytes),
       CheckText(of + " a file name that", sweep.file_name(), limits::kFileNameBytes),
       CheckSize(of + " a document that", sweep.document(), experiment::kMaxDocumentBytes),
       CheckSize(of + " overrides, a text that", sweep.overrides_json(), limits::kOverridesBytes),
       CheckSize(of + " analyses, a text that", sweep.analyses_json(), limits::kImportedTextBytes),
       CheckSize(of + " resources, a text that", sweep.resources_json(), limits::kLabelBytes),
       CheckSize(of + " added seeds, a text that", sweep.extensions_json(),
                 2 * limits::kSeedsBytes),
       CheckTime(of + " a time of submission that", sweep.created_at_ms()),
       CheckTrace(of, sweep.trace_id(), {sweep.span_id()}), CheckPriority(sweep.priority())});
}

// As the numbers of an event of a worker. Settings that cannot be read are no settings.
absl::Status CheckNumbers(const v1::ImportedJob& job) {
  std::string wrong;
  if (const auto execution = event::ExecutionFromJson(job.execution_json())) {
    wrong = event::WhatIsWrong(*execution);
  }
  if (wrong.empty()) {
    wrong = event::WhatIsWrongWithSeconds("end", "wall_seconds", job.wall_seconds());
  }
  return wrong.empty() ? absl::OkStatus() : Bad(job, absl::StrCat("cannot be: ", wrong));
}

}  // namespace

absl::StatusOr<store::ImportJob> ToImportJob(v1::ImportedJob job) {
  PELAB_ASSIGN_OR_RETURN(store::NewCell cell, ToCell(job));
  PELAB_RETURN_IF_ERROR(CheckTexts(job));
  // SQL looks into this column, so it must be valid JSON.
  if (job.has_execution_json() && !IsJsonObject(job.execution_json())) {
    return Bad(job, "has an execution that is not a JSON object");
  }
  PELAB_RETURN_IF_ERROR(CheckNumbers(job));
  store::ImportJob out{.cell = std::move(cell)};
  out.job = std::move(job);
  return out;
}

absl::Status CheckFile(const v1::ImportedFile& file) {
  PELAB_RETURN_IF_ERROR(store::CheckSha256(file.sha256()));
  if (IsPlainFileName(file.name())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the name of a file is \"",
                                                 absl::CHexEscape(file.name().substr(0, 80)),
                                                 "\"; allowed: ", kPlainFileName));
}

absl::StatusOr<store::ImportSweep> ToImportSweep(const v1::ImportedSweep& sweep) {
  PELAB_RETURN_IF_ERROR(CheckSweep(sweep));
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
                            .trace = {sweep.trace_id(), sweep.span_id()},
                            .jobs = {}};
}

}  // namespace pelab::service
