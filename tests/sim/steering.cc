// Changes by people while sweeps run: pauses, priorities, retries, further seeds, drains.
#include <nlohmann/json.hpp>
#include <utility>

#include "server/service/sweeps_service.h"
#include "server/store/database.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/process.h"
#include "tests/sim/recording.h"

namespace pelab::sim {

SharedSweep WithSeeds(SharedSweep sweep, const std::vector<std::string>& extensions) {
  for (const std::string& seeds : extensions) {
    sweep =
        std::make_shared<const experiment::Sweep>(*experiment::ExtendAgain(*sweep, seeds).sweep);
  }
  return sweep;
}

void Coordinator::Control(const store::ControlSweep& write, Answer answer) {
  if (absl::Status status = service::CheckPriority(write.priority.value_or(0)); !status.ok()) {
    return answer(status);
  }
  Append(
      write,
      [this](const store::WriteResult& result) {
        const auto& controlled = std::get<store::SweepControlled>(result);
        if (!controlled.live) return;
        process_->executor->Post([this, settings = controlled.settings] {
          process_->scheduler->SetSweepSettings(settings);
        });
      },
      std::move(answer));
}

void Coordinator::TellRetried(const store::WriteResult& result) {
  process_->executor->Post([this, jobs = std::get<store::Retried>(result).jobs] {
    process_->scheduler->Expanded(jobs);
  });
}

void Coordinator::RetryJob(std::int64_t job_id, bool failed_only, Answer answer) {
  Append(
      store::RetryJob{job_id, failed_only, absl::ToUnixMillis(world_.Wall())},
      [this](const store::WriteResult& result) { TellRetried(result); }, std::move(answer));
}

void Coordinator::RetryFailed(std::int64_t sweep_id, std::int64_t from, Answer answer) {
  Append(
      store::RetrySlice{sweep_id, from, absl::ToUnixMillis(world_.Wall())},
      [this](const store::WriteResult& result) { TellRetried(result); },
      [=, this](absl::StatusOr<store::WriteResult> result) {
        const auto* retried = result.ok() ? std::get_if<store::Retried>(&*result) : nullptr;
        if (retried == nullptr || !retried->next) return answer(std::move(result));
        RetryFailed(sweep_id, *retried->next, answer);
      });
}

void Coordinator::Extend(std::int64_t sweep_id, const std::string& seeds, Answer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  SQLite::Statement row(process_->store->database().connection(),
                        "SELECT document, extensions_json, overrides_json FROM sweeps "
                        "WHERE sweep_id = ? AND state <> 'cancelled'");
  row.bind(1, sweep_id);
  if (!row.executeStep()) return answer(store::WriteResult(store::SweepExtended{}));
  // The recording has no other seeds, so its sweep cannot be extended.
  if (row.getColumn(0).getString() == RecordedDocument()) {
    return answer(store::WriteResult(store::SweepExtended{}));
  }
  const auto known =
      nlohmann::json::parse(row.getColumn(1).getString()).get<std::vector<std::string>>();
  const SharedSweep submitted = Parsed(row.getColumn(0).getString(), row.getColumn(2).getString());
  const experiment::Extension extension = experiment::Extend(*WithSeeds(submitted, known), seeds);
  if (!extension.sweep) return answer(absl::InvalidArgumentError(extension.problem));
  if (extension.seeds.empty()) return answer(store::WriteResult(store::SweepExtended{}));
  const auto sweep = std::make_shared<const experiment::Sweep>(*extension.sweep);
  Append(
      store::ExtendSweep{.sweep_id = sweep_id,
                         .known = known.size(),
                         .seeds = extension.seeds,
                         .cells = sweep->cells()},
      [this](const store::WriteResult& stored) {
        process_->executor->Post([this, jobs = std::get<store::SweepExtended>(stored).jobs] {
          process_->scheduler->Expanded(jobs);
        });
      },
      [=, this](absl::StatusOr<store::WriteResult> result) {
        const auto* extended = result.ok() ? std::get_if<store::SweepExtended>(&*result) : nullptr;
        if (extended != nullptr && extended->applied) Expand(sweep_id, sweep, extended->expanded);
        answer(std::move(result));
      });
}

void Coordinator::Drain(const std::string& worker_id, v1::Drain::Mode drain, Answer answer) {
  Append(
      store::DrainWorker{worker_id, drain},
      [this, drain](const store::WriteResult& result) {
        const auto& drained = std::get<store::WorkerDrained>(result);
        if (!drained.refused.empty()) return;
        process_->executor->Post(
            [this, drain, id = drained.worker_id] { process_->scheduler->Drain(id, drain); });
      },
      std::move(answer));
}

void Coordinator::Try(store::Write write, Answer answer) {
  Append(
      std::move(write), [](const store::WriteResult&) {}, std::move(answer));
}

// While the journal is idle, the request is the next one that is stored.
void Coordinator::DeleteLive(std::int64_t sweep_id, Answer answer) {
  if (!process_ || !process_->journal->idle()) return;
  const bool live =
      Number("SELECT count(*) FROM sweeps WHERE sweep_id = ? AND state IN ('expanding', 'active')",
             sweep_id);
  if (live) Try(store::DeleteSweep{sweep_id, absl::ToUnixMillis(world_.Wall())}, std::move(answer));
}

}  // namespace pelab::sim
