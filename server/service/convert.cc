#include "server/service/convert.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/fleet_protocol.h"
#include "server/limits.h"
#include "server/service/check_text.h"

namespace pelab::service {
namespace {

// Ten years: the sum with the time of today fits.
constexpr std::int64_t kLongestLimitMs = std::int64_t{10} * 365 * 24 * 3600 * 1000;

// The largest number of jobs that one trainer of the slot runs together.
int PackOf(const v1::Slot& slot) { return std::clamp(slot.pack(), 1, limits::kJobsOfPack); }

std::string DeviceOf(const v1::Slot& slot) {
  return Printable(slot.device(), limits::kDeviceNameBytes);
}

std::string SlotsJson(const v1::Hello& hello) {
  nlohmann::json array = nlohmann::json::array();
  for (const v1::Slot& slot : hello.slots()) {
    array.push_back({{"slot", slot.slot()},
                     {"device", DeviceOf(slot)},
                     {"device_kind", slot.device_kind()},
                     {"device_name", Printable(slot.device_name(), limits::kDeviceTextBytes)},
                     {"memory_bytes", slot.memory_bytes()},
                     {"pack", PackOf(slot)}});
  }
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::Status CheckHello(const v1::Hello& hello) {
  const std::string& id = hello.worker_id();
  PELAB_RETURN_IF_ERROR(CheckWorkerId("worker_id", id));
  const auto of = [&](absl::string_view what) { return absl::StrCat(what, " of worker ", id); };
  PELAB_RETURN_IF_ERROR(CheckText(of("host"), hello.host(), limits::kHostBytes));
  PELAB_RETURN_IF_ERROR(CheckText(of("name"), hello.name(), limits::kWorkerNameBytes));
  PELAB_RETURN_IF_ERROR(CheckText(of("version"), hello.version(), limits::kVersionBytes));
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
  if (hello.features_size() > limits::kFeaturesOfWorker) {
    return absl::InvalidArgumentError(absl::StrCat("a worker names at most ",
                                                   limits::kFeaturesOfWorker, " features, not ",
                                                   hello.features_size()));
  }
  if (hello.capabilities_json().size() > limits::kCapabilitiesBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("capabilities_json is longer than ", limits::kCapabilitiesBytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now) {
  PELAB_ASSIGN_OR_RETURN(const int protocol,
                         rpc::ChooseProtocol(rpc::ProtocolsOf(hello), rpc::kFleetProtocols));
  if (absl::Status status = CheckHello(hello); !status.ok()) return status;
  auto capabilities = sched::Capabilities::Parse(hello.capabilities_json());
  if (!capabilities.ok()) return capabilities.status();
  const auto& features = hello.features();
  capabilities->set_fetches_files(std::find(features.begin(), features.end(), rpc::kFilesFeature) !=
                                  features.end());
  HelloParts parts;
  parts.protocol = protocol;
  parts.write = {.worker_id = hello.worker_id(),
                 .name = hello.name().empty() ? hello.host() : hello.name(),
                 .host = hello.host(),
                 .version = hello.version(),
                 .slots_json = SlotsJson(hello),
                 .slots = hello.slots_size(),
                 .capabilities_json = hello.capabilities_json(),
                 .now = now};
  for (const v1::HeldAttempt& held : hello.held()) parts.write.held.push_back(ToHeld(held));
  parts.info.worker_id = parts.write.worker_id;
  parts.info.name = parts.write.name;
  parts.info.capabilities = *std::move(capabilities);
  if (hello.available_until_ms() > 0) {
    const std::int64_t left =
        std::clamp<std::int64_t>(hello.available_until_ms(), now, now + kLongestLimitMs) - now;
    parts.info.time_left = absl::Milliseconds(left);
    parts.info.margin = absl::Milliseconds(hello.margin_ms());
  }
  for (const v1::Slot& slot : hello.slots()) {
    parts.info.slots.push_back(
        {slot.slot(), DeviceOf(slot), slot.device_kind(), slot.memory_bytes(), PackOf(slot)});
  }
  return parts;
}

store::Held ToHeld(const v1::HeldAttempt& held) {
  return {.attempt_id = held.attempt_id(), .token = held.token(), .slot = held.slot()};
}

namespace {

sched::DeviceLoad ToLoad(const v1::DeviceLoad& load) {
  sched::DeviceLoad result{.device = Printable(load.device(), limits::kDeviceNameBytes),
                           .memory_used = load.memory_used(),
                           .memory_total = load.memory_total()};
  if (load.has_busy_percent()) result.busy_percent = std::clamp(load.busy_percent(), 0, 100);
  if (load.has_energy_joules() && std::isfinite(load.energy_joules())) {
    result.energy_joules = std::max(load.energy_joules(), 0.0);
  }
  return result;
}

}  // namespace

std::vector<sched::DeviceLoad> ToLoads(const v1::Heartbeat& heartbeat) {
  std::vector<sched::DeviceLoad> loads;
  std::set<std::string> devices;
  for (const v1::DeviceLoad& load : heartbeat.loads()) {
    if (loads.size() >= limits::kLoadsOfWorker) break;
    sched::DeviceLoad one = ToLoad(load);
    if (devices.insert(one.device).second) loads.push_back(std::move(one));
  }
  return loads;
}

std::vector<sched::GpuErrors> ToErrors(const v1::Heartbeat& heartbeat) {
  std::vector<sched::GpuErrors> all;
  std::set<std::pair<std::string, std::uint64_t>> known;
  for (const v1::GpuErrors& errors : heartbeat.gpu_errors()) {
    if (all.size() >= limits::kErrorsOfWorker) break;
    sched::GpuErrors one{.device = Printable(errors.device(), limits::kDeviceNameBytes),
                         .xid = errors.xid(),
                         .times = errors.times()};
    if (known.insert({one.device, one.xid}).second) all.push_back(std::move(one));
  }
  return all;
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
  for (const store::NeededFile& file : assignment.files) {
    v1::NeededFile* added = out.add_files();
    added->set_sha256(file.sha256);
    added->set_bytes(file.bytes);
  }
  if (!assignment.trace.trace_id.empty()) out.set_traceparent(Traceparent(assignment.trace));
  out.set_sweep_id(assignment.sweep_id);
  out.set_principal(assignment.principal);
  out.set_label(absl::StrCat(assignment.pe_label, " ", assignment.task, " seed ", assignment.seed));
  return out;
}

}  // namespace pelab::service
