#include "client/import/recording.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "core/base/json_text.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/experiment/key.h"
#include "core/experiment/stored_analyses.h"
#include "core/experiment/sweep.h"
#include "core/state/state.h"

namespace pelab::client {
namespace {

constexpr char kCall[] = "call";          // before a start of the trainer
constexpr char kReturned[] = "returned";  // after its end

// The name of the event; "" if this is none.
std::string EventName(const nlohmann::json& object) {
  const bool named = object.is_object() && object.contains("event") && object["event"].is_string();
  return named ? object["event"].get<std::string>() : "";
}

std::string ProtocolOf(const experiment::Job& job) {
  return catalog::ProtocolLabel(job.pe, job.task, job.values);
}

// The label under the protocol whose values the job has; under `clean` if there is none.
std::string LabelOf(const experiment::Job& job) {
  const std::string protocol = ProtocolOf(job);
  const bool known = catalog::FindProtocol(protocol) != nullptr;
  return experiment::PeLabel(job, known ? protocol : "clean");
}

std::string TextIn(const std::string& environment_json, const char* name) {
  const nlohmann::json environment = ParseJsonOrNull(environment_json);
  return environment.is_object() ? environment.value(name, "") : "";
}

std::string WorkerOn(const std::string& host) {
  constexpr std::size_t kDigits = 16;
  return Concat("trainer-alone-", Sha256Hex(host).substr(0, kDigits));
}

// One worker for a host, with the slot that its trainer used.
v1::ImportedWorker WorkerFor(const std::string& host, const v1::Started& started,
                             std::int64_t seen_at_ms) {
  const std::string device = TextIn(started.environment_json(), "device");
  v1::ImportedWorker worker;
  worker.set_worker_id(WorkerOn(host));
  worker.set_host(host);
  worker.set_version(TextIn(started.environment_json(), "trainer"));
  worker.set_slots(1);
  worker.set_slots_json(
      nlohmann::json::array({{{"slot", 0},
                              {"device", device},
                              {"device_kind", device == "cpu" ? "cpu" : "gpu"},
                              {"device_name", TextIn(started.environment_json(), "device_name")},
                              {"memory_bytes", 0},
                              {"pack", 1}}})
          .dump());
  worker.set_last_seen_at_ms(seen_at_ms);
  return worker;
}

}  // namespace

Recording::Recording(experiment::JobDocument document, std::string folder)
    : document_(std::move(document)),
      folder_(std::move(folder)),
      spec_json_(experiment::ToCanonicalJson(document_.job)),
      key_(experiment::KeyOf(spec_json_)),
      facts_(event::FactsOf(spec_json_)) {}

bool Recording::ComesBetweenCalls(std::string_view line) {
  const std::string name = EventName(ParseJsonOrNull(line));
  return name == kCall || name == kReturned || name == "hello";
}

absl::Status Recording::Add(std::string_view line) {
  const nlohmann::json object = ParseJsonOrNull(line);
  const std::string name = EventName(object);
  if (name == kCall || name == kReturned) return AddTime(name, object);
  PELAB_ASSIGN_OR_RETURN(
      event::TrainerLine read,
      event::ParseTrainerLine({line.data(), line.size()}, document_.job_id, folder_));
  if (const auto* fact = std::get_if<event::FactLine>(&read)) return AddFact(fact->event);
  if (std::holds_alternative<event::UnknownLine>(read)) return absl::OkStatus();
  if (calls_.empty()) return absl::InvalidArgumentError("it comes before a hello");
  if (auto* done = std::get_if<event::DoneLine>(&read)) return AddDone(std::move(*done));
  if (auto* error = std::get_if<event::ErrorLine>(&read)) calls_.back().error = std::move(*error);
  return absl::OkStatus();
}

absl::Status Recording::AddTime(const std::string& name, const nlohmann::json& object) {
  const auto at =
      object.contains("unix_ms") ? IntegerOf<std::int64_t>(object["unix_ms"]) : std::nullopt;
  if (!at) return absl::InvalidArgumentError(Concat(name, " has no \"unix_ms\", an integer"));
  if (name == kCall) {
    coming_ = Call{.started_at_ms = *at};
    if (object.contains("host") && object["host"].is_string()) coming_.host = object["host"];
  } else if (coming_.started_at_ms) {
    coming_ = Call();  // that call returned without a hello
  } else if (!calls_.empty()) {
    calls_.back().ended_at_ms = *at;
  }
  return absl::OkStatus();
}

absl::Status Recording::AddFact(const v1::Event& event) {
  if (event.has_started()) return Begin(event.started());
  if (calls_.empty()) return absl::InvalidArgumentError("a result comes before a hello");
  if (const std::string wrong = facts_ ? event::WhatIsWrong(event, *facts_) : ""; !wrong.empty()) {
    return absl::InvalidArgumentError(wrong);
  }
  if (event.has_epoch()) return AddEpoch(event.epoch());
  AddAnalysis(event);
  return absl::OkStatus();
}

absl::Status Recording::Begin(const v1::Started& started) {
  const auto start = static_cast<std::size_t>(started.start_epoch());
  if (started.epochs() != document_.job.Int("train.epochs")) {
    return absl::InvalidArgumentError(Concat("it is of ", started.epochs(), " epochs; the job has ",
                                             document_.job.Int("train.epochs")));
  }
  if (start > epochs_.size()) {
    return absl::InvalidArgumentError(Concat("the trainer starts at epoch ", start, ", but epoch ",
                                             epochs_.size(), " is not there"));
  }
  if (start > 0 && start < static_cast<std::size_t>(started.epochs()) &&
      started.execution().SerializeAsString() !=
          calls_.front().started.execution().SerializeAsString()) {
    return absl::InvalidArgumentError(
        "the trainer goes on with other threads, micro-batches or packing than it began with");
  }
  Call call = std::exchange(coming_, Call());
  call.started = started;
  calls_.push_back(std::move(call));
  if (start < static_cast<std::size_t>(started.epochs())) analyses_.clear();
  epochs_.resize(start);
  return absl::OkStatus();
}

absl::Status Recording::AddEpoch(const v1::Epoch& epoch) {
  if (static_cast<std::size_t>(epoch.epoch()) != epochs_.size() ||
      epoch.epoch() >= calls_.back().started.epochs()) {
    return absl::InvalidArgumentError(
        Concat("epoch ", epoch.epoch(), " comes where epoch ", epochs_.size(), " is due"));
  }
  calls_.back().seconds += epoch.seconds();
  epochs_.push_back(epoch);
  return absl::OkStatus();
}

void Recording::AddAnalysis(const v1::Event& event) {
  Analysis analysis{.call = calls_.size() - 1, .value = {}};
  if (event.has_head_ablation()) {
    *analysis.value.mutable_head_ablation() = event.head_ablation();
    calls_.back().seconds += event.head_ablation().seconds();
    analyses_[event::IdOf(event.head_ablation())] = std::move(analysis);
  } else {
    *analysis.value.mutable_result() = event.analysis();
    calls_.back().seconds += event.analysis().seconds();
    analyses_[event::IdOf(event.analysis())] = std::move(analysis);
  }
}

absl::Status Recording::AddDone(event::DoneLine done) {
  if (epochs_.size() != static_cast<std::size_t>(calls_.back().started.epochs())) {
    return absl::InvalidArgumentError(Concat("the trainer is done after ", epochs_.size(), " of ",
                                             calls_.back().started.epochs(), " epochs"));
  }
  calls_.back().done = std::move(done);
  return absl::OkStatus();
}

// A call that was recorded without times ended when the next call began. Its length is the sum of
// the seconds of its epochs and analyses.
std::vector<Recording::Times> Recording::TimesOfCalls(std::int64_t written_at_ms) const {
  std::vector<Times> times(calls_.size());
  std::int64_t next = written_at_ms;
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const Call& call = calls_[i];
    const double seconds = call.done ? call.done->wall_seconds : call.seconds;
    const auto length = static_cast<std::int64_t>(seconds * 1000);
    const std::int64_t ended =
        call.started_at_ms ? std::min(next, *call.started_at_ms + length) : next;
    times[i].ended_at_ms = call.ended_at_ms.value_or(ended);
    times[i].started_at_ms =
        std::max<std::int64_t>(0, call.started_at_ms.value_or(times[i].ended_at_ms - length));
    next = times[i].started_at_ms;
  }
  return times;
}

v1::ImportedAttempt Recording::AttemptOf(const Call& call, const Times& times) const {
  v1::ImportedAttempt attempt;
  attempt.set_worker_id(WorkerOn(call.host));
  attempt.set_device(TextIn(call.started.environment_json(), "device"));
  attempt.set_analyses_json(experiment::StoredAnalysesJson(document_.analyses));
  attempt.set_start_epoch(call.started.start_epoch());
  attempt.set_environment_json(call.started.environment_json());
  attempt.set_started_at_ms(times.started_at_ms);
  attempt.set_ended_at_ms(times.ended_at_ms);
  if (call.done) {
    attempt.set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
  } else if (call.error) {
    attempt.set_outcome(v1::ATTEMPT_OUTCOME_FAILED);
    attempt.set_error_kind(std::string(state::Name(call.error->kind)));
    attempt.set_error(call.error->message);
  } else {
    attempt.set_outcome(v1::ATTEMPT_OUTCOME_PREEMPTED);
  }
  return attempt;
}

db::ExportedJob Recording::Export(std::int64_t written_at_ms) const {
  const std::vector<Times> times = TimesOfCalls(written_at_ms);
  const Call& last = calls_.back();
  db::ExportedJob out;
  v1::ImportedJob& job = out.job;
  job.set_key(key_);
  job.set_spec_json(spec_json_);
  job.set_pe_label(LabelOf(document_.job));
  job.set_protocol(ProtocolOf(document_.job));
  job.set_device_kind("any");
  job.set_device(TextIn(last.started.environment_json(), "device"));
  job.set_wall_seconds(last.done->wall_seconds);
  const v1::Execution& execution = calls_.front().started.execution();
  job.set_execution_json(Concat("{\"threads\":", execution.threads(),
                                ",\"micro_batch\":", execution.micro_batch(),
                                ",\"packing\":", execution.packing(), "}"));
  job.set_created_at_ms(times.front().started_at_ms);
  job.set_ended_at_ms(times.back().ended_at_ms);
  std::set<std::string> hosts;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    *job.add_attempts() = AttemptOf(calls_[i], times[i]);
    if (hosts.insert(calls_[i].host).second) {
      *job.add_workers() = WorkerFor(calls_[i].host, calls_[i].started, job.ended_at_ms());
    }
  }
  out.epochs = epochs_;
  for (const auto& [id, analysis] : analyses_) {
    v1::ImportedAnalysis& added = out.analyses.emplace_back(analysis.value);
    added.set_attempt(static_cast<int>(analysis.call) + 1);
    added.set_created_at_ms(times[analysis.call].ended_at_ms);
  }
  if (!last.done->weights_file.empty()) {
    v1::ImportedFile& file = out.files.emplace_back();
    file.set_attempt(static_cast<int>(calls_.size()));
    file.set_name(std::filesystem::path(last.done->weights_file).filename().string());
    file.set_sha256(last.done->sha256);
    file.set_bytes(last.done->bytes);
  }
  return out;
}

}  // namespace pelab::client
