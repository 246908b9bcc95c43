#include "server/notify/messages.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/base/ids.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"

namespace pelab::notify {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kErrorBytes = 2000;  // of a job's error; it may quote much output

Json Begin(const std::string& id, std::string_view event, absl::Time at) {
  return {{"id", id}, {"event", std::string(event)}, {"at_ms", absl::ToUnixMillis(at)}};
}

void AddSweep(const v1::Sweep& sweep, Json& json) {
  json["sweep"] = sweep.name();
  json["sweep_id"] = sweep.sweep_id();
  json["owner"] = sweep.owner();
  json["trace_id"] = sweep.trace_id();
  const v1::StateCounts& jobs = sweep.jobs();
  json["counts"] = {{"queued", jobs.queued()},   {"assigned", jobs.assigned()},
                    {"running", jobs.running()}, {"succeeded", jobs.succeeded()},
                    {"failed", jobs.failed()},   {"cancelled", jobs.cancelled()}};
}

Message Finish(std::string what, const std::string& id, std::string text, Json json) {
  json["text"] = std::move(text);
  return {.id = id,
          .what = std::move(what),
          .body = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::string NameOf(const v1::Sweep& sweep) {
  return Concat("Sweep ", sweep.name(), " (", sweep.sweep_id(), ")");
}

// "4 succeeded, 1 failed"
std::string Outcome(const v1::StateCounts& jobs) {
  std::string text = Concat(jobs.succeeded(), " succeeded");
  if (jobs.failed() > 0) text += Concat(", ", jobs.failed(), " failed");
  if (jobs.cancelled() > 0) text += Concat(", ", jobs.cancelled(), " cancelled");
  return text;
}

}  // namespace

Message SweepEnded(const v1::Sweep& sweep, absl::Time at) {
  std::string_view how = "done";
  if (sweep.state() == v1::SWEEP_STATE_CANCELLED) {
    how = "cancelled";
  } else if (sweep.jobs().failed() > 0) {
    how = "failed";
  }
  const std::string event = Concat("sweep_", how);
  const std::string id = RandomUuid();
  Json json = Begin(id, event, at);
  AddSweep(sweep, json);
  const std::string_view verb = how == "failed" ? " has failed jobs: "
                                : how == "done" ? " is done: "
                                                : " was cancelled: ";
  return Finish(Concat(event, " of sweep ", sweep.sweep_id()), id,
                Concat(NameOf(sweep), verb, Outcome(sweep.jobs())), std::move(json));
}

Message JobFailed(const v1::Sweep& sweep, const v1::JobRow& job, absl::Time at) {
  const std::string id = RandomUuid();
  const std::string error = Shorten(job.error(), kErrorBytes);
  Json json = Begin(id, "job_failed", at);
  AddSweep(sweep, json);
  json["job_id"] = job.job_id();
  json["job"] = Concat(job.pe_label(), " ", job.task(), " seed ", job.seed());
  json["error"] = error;
  return Finish(Concat("job_failed of sweep ", sweep.sweep_id()), id,
                Concat(NameOf(sweep), ": the first job has failed, ", job.pe_label(), " ",
                       job.task(), " seed ", job.seed(), ": ", error),
                std::move(json));
}

Message WorkerQuarantined(const Quarantine& quarantine, absl::Time at) {
  const std::string id = RandomUuid();
  Json json = Begin(id, "worker_quarantined", at);
  json["worker"] = quarantine.worker;
  json["worker_id"] = quarantine.worker_id;
  json["seconds"] = absl::ToInt64Seconds(quarantine.length);
  return Finish(Concat("worker_quarantined of ", quarantine.worker), id,
                Concat("Worker ", quarantine.worker, " is in quarantine for ",
                       std::string(absl::FormatDuration(quarantine.length)),
                       ": different jobs failed on it at once"),
                std::move(json));
}

Message BudgetSpent(const SpentBudget& budget, const v1::Sweep* sweep, absl::Time at) {
  const std::string id = RandomUuid();
  Json json = Begin(id, "budget", at);
  if (sweep != nullptr) {
    AddSweep(*sweep, json);
  } else {
    json["owner"] = budget.owner;
  }
  json["sheet"] = budget.sheet;
  json["sheet_id"] = budget.sheet_id;
  json["rounds"] = budget.rounds;
  json["claims"] = {
      {"decided", budget.decided}, {"open", budget.open}, {"given_up", budget.given_up}};
  json["stopped_by"] = budget.stopped_by;
  return Finish(Concat("budget of sheet ", budget.sheet_id), id,
                Concat("Sheet ", budget.sheet, " (", budget.sheet_id,
                       ") has claims left: ", budget.decided, " decided, ", budget.open, " open, ",
                       budget.given_up, " given up. Stopped by ", budget.stopped_by),
                std::move(json));
}

Message GpuSecondsSpent(const SpentGpuSeconds& spent, absl::Time at) {
  const std::string id = RandomUuid();
  Json json = Begin(id, "gpu_budget", at);
  json["principal"] = spent.principal;
  json["gpu_seconds"] = spent.used;
  json["budget"] = spent.budget;
  return Finish(Concat("gpu_budget of ", spent.principal), id,
                Concat(spent.principal, " has used its ", static_cast<std::int64_t>(spent.budget),
                       " GPU seconds: none of its jobs starts any more"),
                std::move(json));
}

std::string Signature(std::string_view secret, std::string_view body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(body.data()), body.size(), digest.data(), &bytes);
  return "sha256=" + absl::BytesToHexString(
                         absl::string_view(reinterpret_cast<const char*>(digest.data()), bytes));
}

}  // namespace pelab::notify
