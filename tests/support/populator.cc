#include "tests/support/populator.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/experiment/analysis.h"
#include "core/experiment/stored_analyses.h"
#include "core/experiment/sweep.h"
#include "server/service/expander.h"
#include "tests/support/events.h"
#include "tests/support/made_up_results.h"

namespace pelab {
namespace {

constexpr std::size_t kSlice = 512;
constexpr std::size_t kJobsAtOnce = 20;  // per transaction

}  // namespace

absl::Status Populator::Add(const std::string& path, const std::string& document) {
  std::vector<experiment::Override> overrides;
  nlohmann::json overrides_json = nlohmann::json::array();
  for (const std::string& set : options_.set) {
    const std::size_t at = set.find('=');
    overrides.push_back({set.substr(0, at), set.substr(at + 1)});
    overrides_json.push_back(
        {{"field", overrides.back().field}, {"value", overrides.back().value}});
  }
  const experiment::SweepResult parsed = experiment::ParseSweep(document, overrides);
  if (!parsed.sweep) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", parsed.violations[0].message));
  }
  const experiment::Sweep& sweep = *parsed.sweep;
  auto stored =
      Do(store::SubmitSweep{.name = sweep.name(),
                            .protocol = sweep.protocol(),
                            .document = document,
                            .file_name = path,
                            .overrides_json = overrides_json.dump(),
                            .client_token = absl::StrCat("populate-", path, "-", sweep.name()),
                            .analyses_json = experiment::StoredAnalysesJson(sweep.analyses()),
                            .resources_json = R"({"device":"any","memory_bytes":0})",
                            .cells = sweep.cells(),
                            .now = now_});
  if (!stored.ok()) return stored.status();
  const auto sweep_id = std::get<store::SweepStored>(*stored).sweep_id;
  std::vector<store::ReadyJob> ready;
  for (std::uint64_t next = 0; next < sweep.cells();) {
    store::ExpandSlice slice =
        service::BuildSlice(sweep_id, sweep, next, kSlice, SystemClock::Instance());
    next = slice.next;
    slice.now = now_;
    auto applied = Do(std::move(slice));
    if (!applied.ok()) return applied.status();
    auto& jobs = std::get<store::SliceStored>(*applied).ready;
    ready.insert(ready.end(), jobs.begin(), jobs.end());
  }
  return Train(ready);
}

absl::StatusOr<store::WriteResult> Populator::Do(store::Write write) {
  const std::vector<store::Write> writes = {std::move(write)};
  auto results = store_.Apply(writes);
  if (!results.ok()) return results.status();
  return std::move(results->front());
}

Populator::End Populator::EndOf(std::int64_t job) const {
  if (options_.fail_every > 0 && job % options_.fail_every == 0) return End::kFailed;
  if (options_.open_every > 0 && job % options_.open_every == 0) {
    return job / options_.open_every % 2 == 0 ? End::kRunning : End::kQueued;
  }
  return End::kSucceeded;
}

absl::Status Populator::Train(const std::vector<store::ReadyJob>& ready) {
  PELAB_RETURN_IF_ERROR(
      Do(store::WorkerHello{.worker_id = "w0000001",
                            .host = "example-host",
                            .version = PELAB_VERSION,
                            .slots_json = R"([{"device":"cpu","name":"Example CPU","slots":2}])",
                            .slots = 2,
                            .capabilities_json = "{}",
                            .now = now_})
          .status());
  std::vector<store::Write> events;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    PELAB_RETURN_IF_ERROR(TrainOne(ready[i].job_id, events));
    if (i + 1 == ready.size() || (i + 1) % kJobsAtOnce == 0) {
      PELAB_RETURN_IF_ERROR(Apply(events));
      events.clear();
    }
  }
  return absl::OkStatus();
}

absl::Status Populator::Apply(const std::vector<store::Write>& events) {
  auto results = store_.Apply(events);
  if (!results.ok()) return results.status();
  for (const auto& result : *results) {
    if (!result.ok()) return result.status();
    const auto* stored = std::get_if<store::EventStored>(&*result);
    if (stored != nullptr && stored->status != store::EventStored::kStored) {
      return absl::InternalError("the store refused a made-up event");
    }
  }
  return absl::OkStatus();
}

absl::Status Populator::TrainOne(std::int64_t job_id, std::vector<store::Write>& events) {
  const End end = EndOf(job_id);
  if (end == End::kQueued) return absl::OkStatus();
  const std::uint64_t token = 1000 + static_cast<std::uint64_t>(job_id);
  auto created = Do(store::CreateAttempt{.job_id = job_id,
                                         .worker_id = "w0000001",
                                         .slot = 0,
                                         .device = "cpu",
                                         .token = token,
                                         .now = now_});
  if (!created.ok()) return created.status();
  const auto& assignment = std::get<store::AttemptCreated>(*created).assignment;
  if (!assignment) return absl::InternalError("a queued job got no attempt");
  std::uint64_t sequence = 0;
  const auto add = [&](EventBody body) {
    now_ += 40;
    events.push_back(EventWrite(assignment->attempt_id, token, ++sequence, std::move(body), now_));
  };
  const MadeUpJob job(assignment->spec_json, options_.seed);
  add(StartedEvent(0, job.epochs(),
                   R"({"device":"cpu","device_name":"Example CPU","libtorch":"1.13.1",)"
                   R"("parameters":12345,"protocol":1,"threads":1,"trainer":")" PELAB_VERSION
                   R"("})"));
  const int until = end == End::kSucceeded ? job.epochs() : (job.epochs() + 1) / 2;
  for (int epoch = 0; epoch < until; ++epoch) add(job.EpochAt(epoch));
  if (!options_.log.empty()) {
    events.push_back(store::AppendLog{assignment->attempt_id, token, 0, options_.log});
  }
  if (end == End::kFailed) {
    add(EndEvent(v1::ATTEMPT_OUTCOME_FAILED, state::ErrorKind::kOutOfMemory, options_.error, 3));
  } else if (end == End::kSucceeded) {
    for (const store::Analysis& analysis : assignment->analyses) {
      if (analysis.name == "head_ablation") {
        add(job.Matrix(analysis));
      } else {
        add(job.Result(analysis));
      }
    }
    add(SucceededEvent(60 + static_cast<double>(job_id % 10)));
  }
  return absl::OkStatus();
}

}  // namespace pelab
