#include "server/service/convert.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "server/limits.h"
#include "server/store/artifact_files.h"

namespace pelab::service {
namespace {

absl::Status Bad(const v1::Event& event, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("event ", event.sequence(), " of attempt ", event.attempt_id(), " ", what));
}

absl::StatusOr<state::Outcome> ToOutcome(const v1::Event& event) {
  switch (event.finished().outcome()) {
    case v1::ATTEMPT_OUTCOME_SUCCEEDED:
      return state::Outcome::kSucceeded;
    case v1::ATTEMPT_OUTCOME_FAILED:
      return state::Outcome::kFailed;
    case v1::ATTEMPT_OUTCOME_PREEMPTED:
      return state::Outcome::kPreempted;
    case v1::ATTEMPT_OUTCOME_CANCELLED:
      return state::Outcome::kCancelled;
    default:
      return Bad(event, "ends it neither as succeeded, failed, preempted nor cancelled");
  }
}

state::ErrorKind ToErrorKind(v1::ErrorKind kind) {
  switch (kind) {
    case v1::ERROR_KIND_BAD_SPEC:
      return state::ErrorKind::kBadSpec;
    case v1::ERROR_KIND_OUT_OF_MEMORY:
      return state::ErrorKind::kOutOfMemory;
    case v1::ERROR_KIND_NON_FINITE_LOSS:
      return state::ErrorKind::kNonFiniteLoss;
    case v1::ERROR_KIND_IO:
      return state::ErrorKind::kIo;
    case v1::ERROR_KIND_INTERNAL:
      return state::ErrorKind::kInternal;
    case v1::ERROR_KIND_TRAINER_DIED:
      return state::ErrorKind::kTrainerDied;
    case v1::ERROR_KIND_STALLED:
      return state::ErrorKind::kStalled;
    default:
      return state::ErrorKind::kNone;
  }
}

store::Started ToStarted(const v1::Started& started) {
  store::Started out;
  out.start_epoch = started.start_epoch();
  out.epochs = started.epochs();
  // The environment is only for display, so a malformed one does not refuse the attempt.
  if (IsJsonObject(started.environment_json())) {
    out.environment_json = started.environment_json();
  } else if (!started.environment_json().empty()) {
    spdlog::warn("an attempt's environment is not kept: it is not a JSON object, or too deep");
  }
  out.better_alone = started.better_alone();
  if (started.has_execution()) {
    out.execution = store::Execution{.threads = started.execution().threads(),
                                     .micro_batch = started.execution().micro_batch(),
                                     .packing = started.execution().packing()};
  }
  return out;
}

// The largest number of jobs that one trainer of the slot runs together.
int PackOf(const v1::Slot& slot) { return std::clamp(slot.pack(), 1, limits::kJobsOfPack); }

std::string SlotsJson(const v1::Hello& hello) {
  nlohmann::json array = nlohmann::json::array();
  for (const v1::Slot& slot : hello.slots()) {
    array.push_back({{"slot", slot.slot()},
                     {"device", slot.device()},
                     {"device_kind", slot.device_kind()},
                     {"device_name", slot.device_name()},
                     {"memory_bytes", slot.memory_bytes()},
                     {"pack", PackOf(slot)}});
  }
  // A name that is not UTF-8 is no reason to refuse a worker.
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::Status CheckHello(const v1::Hello& hello) {
  if (hello.protocol() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker speaks protocol ", hello.protocol(), "; this coordinator 1"));
  }
  const std::string& id = hello.worker_id();
  const bool printable =
      std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (id.empty() || id.size() > 128 || !printable) {
    return absl::InvalidArgumentError(
        "worker_id must be 1 to 128 printable characters without spaces");
  }
  if (hello.slots_size() > limits::kSlotsOfWorker) {
    return absl::InvalidArgumentError(absl::StrCat("a worker has at most ", limits::kSlotsOfWorker,
                                                   " slots, not ", hello.slots_size()));
  }
  std::set<int> seen;
  for (const v1::Slot& slot : hello.slots()) {
    if (slot.slot() < 0 || !seen.insert(slot.slot()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "slot ", slot.slot(), " is there twice or negative; slots are distinct, from 0"));
    }
    if (slot.device_kind() != "cpu" && slot.device_kind() != "gpu") {
      return absl::InvalidArgumentError(
          absl::StrCat("device_kind \"", slot.device_kind(), "\" is unknown; known: cpu, gpu"));
    }
  }
  if (hello.capabilities_json().size() > limits::kCapabilitiesBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("capabilities_json is longer than ", limits::kCapabilitiesBytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

store::Epoch ToEpoch(const v1::Epoch& epoch) {
  return {.epoch = epoch.epoch(),
          .train_loss = epoch.train_loss(),
          .train_correct = epoch.train_correct(),
          .train_total = epoch.train_total(),
          .test_loss = epoch.test_loss(),
          .test_correct = epoch.test_correct(),
          .test_total = epoch.test_total(),
          .learning_rate = epoch.learning_rate(),
          .seconds = epoch.seconds()};
}

// Arrays of different lengths leave the entries empty, and the store refuses that. This ends the
// attempt of an outdated worker, but not its session.
store::HeadAblation ToMatrix(const v1::HeadAblation& matrix) {
  store::HeadAblation out{.version = matrix.version(),
                          .parameters_json = matrix.parameters_json(),
                          .layers = matrix.layers(),
                          .heads = matrix.heads(),
                          .total = matrix.total(),
                          .intact_correct = matrix.intact_correct(),
                          .intact_nll = matrix.intact_nll(),
                          .chance = matrix.chance(),
                          .entries = {},
                          .seconds = matrix.seconds()};
  const int size = matrix.correct_size();
  const bool whole = matrix.lost_size() == size && matrix.gained_size() == size &&
                     matrix.nll_size() == size && matrix.nll_standard_error_size() == size &&
                     (matrix.missing_size() == size || matrix.missing_size() == 0);
  if (!whole) return out;
  out.entries.reserve(size);
  for (int i = 0; i < size; ++i) {
    std::optional<store::AblatedHead>& entry = out.entries.emplace_back();
    if (matrix.missing_size() > 0 && matrix.missing(i)) continue;
    entry = {.correct = matrix.correct(i),
             .lost = matrix.lost(i),
             .gained = matrix.gained(i),
             .nll = matrix.nll(i),
             .nll_standard_error = matrix.nll_standard_error(i)};
  }
  return out;
}

store::AnalysisResult ToResult(const v1::AnalysisResult& result) {
  return {.name = result.name(),
          .version = result.version(),
          .parameters_json = result.parameters_json(),
          .result_json = result.result_json(),
          .seconds = result.seconds()};
}

absl::StatusOr<store::AttemptEvent> ToEvent(const v1::Event& event, std::int64_t now,
                                            double jitter) {
  store::AttemptEvent out{.attempt_id = event.attempt_id(),
                          .token = event.token(),
                          .sequence = event.sequence(),
                          .now = now,
                          .jitter = jitter};
  if (event.sequence() == 0 || event.sequence() > (std::uint64_t{1} << 62)) {
    return Bad(event, "has no sequence number; they count from 1");
  }
  switch (event.body_case()) {
    case v1::Event::kStarted:
      out.body = ToStarted(event.started());
      return out;
    case v1::Event::kEpoch:
      out.body = ToEpoch(event.epoch());
      return out;
    case v1::Event::kHeadAblation:
      if (!IsJsonObject(event.head_ablation().parameters_json())) {
        return Bad(event, "has parameters_json that is not a JSON object");
      }
      out.body = ToMatrix(event.head_ablation());
      return out;
    case v1::Event::kAnalysis:
      if (!IsJsonObject(event.analysis().parameters_json())) {
        return Bad(event, "has parameters_json that is not a JSON object");
      }
      out.body = store::AnalysisResult{event.analysis().name(), event.analysis().version(),
                                       event.analysis().parameters_json(),
                                       event.analysis().result_json(), event.analysis().seconds()};
      return out;
    case v1::Event::kArtifact:
      if (!store::IsSha256(event.artifact().sha256()) || event.artifact().name().empty()) {
        return Bad(event, "names an artifact without a name or a SHA-256");
      }
      out.body = store::Artifact{event.artifact().name(), event.artifact().sha256(),
                                 event.artifact().bytes()};
      return out;
    case v1::Event::kCheckpoint:
      if (!store::IsSha256(event.checkpoint().sha256())) {
        return Bad(event, "names a checkpoint without a SHA-256");
      }
      out.body = store::Checkpoint{event.checkpoint().epoch(), event.checkpoint().sha256(),
                                   event.checkpoint().bytes()};
      return out;
    case v1::Event::kFinished: {
      auto outcome = ToOutcome(event);
      if (!outcome.ok()) return outcome.status();
      store::Finished finished{*outcome, ToErrorKind(event.finished().error_kind()),
                               event.finished().error().substr(0, limits::kErrorBytes),
                               event.finished().wall_seconds(),
                               event.finished().warning().substr(0, limits::kErrorBytes)};
      if (*outcome == state::Outcome::kFailed) {
        if (finished.error_kind == state::ErrorKind::kNone) {
          finished.error_kind = state::ErrorKind::kInternal;
        }
        if (finished.error.empty()) finished.error = "the worker did not say why";
      }
      out.body = std::move(finished);
      return out;
    }
    case v1::Event::BODY_NOT_SET:
      break;
  }
  return Bad(event, "has no body");
}

absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now) {
  if (absl::Status status = CheckHello(hello); !status.ok()) return status;
  auto capabilities = sched::Capabilities::Parse(hello.capabilities_json());
  if (!capabilities.ok()) return capabilities.status();
  HelloParts parts;
  parts.write = {.worker_id = hello.worker_id(),
                 .name = hello.name().empty() ? hello.host() : hello.name(),
                 .host = hello.host(),
                 .version = hello.version(),
                 .slots_json = SlotsJson(hello),
                 .slots = hello.slots_size(),
                 .capabilities_json = hello.capabilities_json(),
                 .now = now};
  for (const v1::HeldAttempt& held : hello.held()) parts.write.held.push_back(ToHeld(held));
  parts.info.worker_id = hello.worker_id();
  parts.info.capabilities = *std::move(capabilities);
  for (const v1::Slot& slot : hello.slots()) {
    parts.info.slots.push_back(
        {slot.slot(), slot.device(), slot.device_kind(), slot.memory_bytes(), PackOf(slot)});
  }
  return parts;
}

store::Held ToHeld(const v1::HeldAttempt& held) {
  return {.attempt_id = held.attempt_id(), .token = held.token(), .slot = held.slot()};
}

sched::DeviceLoad ToLoad(const v1::DeviceLoad& load) {
  sched::DeviceLoad result{.device = load.device().substr(0, limits::kDeviceNameBytes),
                           .memory_used = load.memory_used(),
                           .memory_total = load.memory_total()};
  if (load.has_busy_percent()) result.busy_percent = std::clamp(load.busy_percent(), 0, 100);
  return result;
}

v1::Drain::Mode ToDrainMode(const std::string& drain) {
  if (drain == "finish") return v1::Drain::FINISH;
  if (drain == "checkpoint") return v1::Drain::CHECKPOINT;
  if (drain == "kill") return v1::Drain::KILL;
  return v1::Drain::RESUME;
}

absl::StatusOr<std::string> FromDrainMode(v1::Drain::Mode mode) {
  switch (mode) {
    case v1::Drain::FINISH:
      return "finish";
    case v1::Drain::CHECKPOINT:
      return "checkpoint";
    case v1::Drain::KILL:
      return "kill";
    case v1::Drain::RESUME:
      return "";
    default:
      return absl::InvalidArgumentError(absl::StrCat("drain mode ", static_cast<int>(mode),
                                                     " is unknown; known: FINISH, CHECKPOINT, "
                                                     "KILL, RESUME"));
  }
}

v1::Assignment ToProto(const store::Assignment& assignment) {
  v1::Assignment out;
  out.set_attempt_id(assignment.attempt_id);
  out.set_token(assignment.token);
  out.set_job_id(assignment.job_id);
  out.set_key(assignment.key);
  out.set_slot(assignment.slot);
  out.set_pe(assignment.pe);
  out.set_task(assignment.task);
  out.set_seed(assignment.seed);
  out.set_spec_json(assignment.spec_json);
  for (const store::Analysis& analysis : assignment.analyses) {
    v1::Analysis* added = out.add_analyses();
    added->set_name(analysis.name);
    added->set_version(analysis.version);
    added->set_parameters_json(analysis.parameters_json);
  }
  out.set_max_start_epoch(assignment.max_start_epoch);
  if (assignment.execution) {
    out.mutable_execution()->set_threads(assignment.execution->threads);
    out.mutable_execution()->set_micro_batch(assignment.execution->micro_batch);
    out.mutable_execution()->set_packing(assignment.execution->packing);
  }
  if (assignment.weights) {
    out.mutable_weights()->set_sha256(assignment.weights->sha256);
    out.mutable_weights()->set_bytes(assignment.weights->bytes);
  }
  if (assignment.checkpoint) {
    out.mutable_checkpoint()->set_epoch(assignment.checkpoint->epoch);
    out.mutable_checkpoint()->set_sha256(assignment.checkpoint->sha256);
    out.mutable_checkpoint()->set_bytes(assignment.checkpoint->bytes);
  }
  out.set_label(absl::StrCat(assignment.pe_label, " ", assignment.task, " seed ", assignment.seed));
  return out;
}

}  // namespace pelab::service
