#include "tests/sim/hostile_client.h"

#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/rpc/sweep_document.h"
#include "server/service/sweeps_service.h"

namespace pelab::sim {
namespace {

const std::vector<std::string>& NoDocuments() {
  static const auto* const documents =
      new std::vector<std::string>{"",
                                   "name: [",
                                   "name: a\npe: alibbi\n",
                                   "name: a\nseed: 0..99999999999\n",
                                   "name: a\ntrain: {epochs: -1}\n",
                                   "name: \"\xff\xfe\"\n",
                                   "name: 12\n",
                                   absl::StrCat("name: a\nmodel: ", std::string(2000, '['), "\n"),
                                   absl::StrCat("name: ", std::string(100'000, 'a'), "\n")};
  return *documents;
}

// Whether the store did nothing of what was asked for.
struct DidNothing {
  bool operator()(const store::SweepStored& r) const {
    return r.refusal != store::SweepStored::kNone;
  }
  bool operator()(const store::Cancelled& r) const { return !r.found; }
  bool operator()(const store::SweepControlled& r) const { return !r.found; }
  bool operator()(const store::SweepExtended& r) const { return !r.applied; }
  bool operator()(const store::Retried& r) const {
    return !r.refused.empty() || (r.queued == 0 && r.nothing == 0 && !r.next);
  }
  bool operator()(const store::WorkerDrained& r) const { return !r.refused.empty(); }
  bool operator()(const store::SweepDeleted& r) const { return !r.found || r.live; }
  bool operator()(const store::DeletionCounted& r) const {
    return r.jobs_deleted == 0 && r.jobs_kept == 0;
  }
  template <typename T>
  bool operator()(const T&) const {
    return false;
  }
};

}  // namespace

std::int64_t HostileClient::AnySweep() {
  const auto& sweeps = people_.sweeps();
  if (sweeps.empty()) return 0;
  return *std::next(sweeps.begin(), static_cast<std::ptrdiff_t>(dice_.Draw(sweeps.size())));
}

std::int64_t HostileClient::Nowhere() {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  static const auto& numbers = *new std::vector<std::int64_t>{0, -1, 1'000'000, kMost, -kMost - 1};
  return dice_.OneOf(numbers);
}

void HostileClient::Refused(const std::string& request, const absl::Status& status) {
  world_.Note("refused: ", request);
  if (status.ok()) world_.Violate(absl::StrCat("this was not refused: ", request));
  ledger_.RefusedRequest();
}

Coordinator::Answer HostileClient::Refusal(const std::string& request) {
  return [this, request](const absl::StatusOr<store::WriteResult>& result) {
    if (result.ok()) {
      const bool nothing = std::visit(DidNothing(), *result);
      return Refused(request, nothing ? absl::AbortedError("nothing done") : absl::OkStatus());
    }
    if (absl::IsInvalidArgument(result.status()) || absl::IsAlreadyExists(result.status())) {
      Refused(request, result.status());
    }
  };
}

void HostileClient::Ask() {
  switch (dice_.Draw(5)) {
    case 0:
      return Submit();
    case 1:
      return AskNonsense();
    case 2:
      return AskForAnalyses();
    default:
      return AskAboutNothing();
  }
}

void HostileClient::Submit() {
  const std::string& document = dice_.OneOf(Documents());
  if (dice_.Chance(0.3)) {
    const auto parsed = rpc::ParseNewSweepDocument(dice_.OneOf(NoDocuments()), {});
    return Refused("a document that is none", parsed.status());
  }
  if (dice_.Chance(0.3)) {
    return coordinator_.Submit(document, "hostile", /*fresh=*/false,
                               dice_.Chance(0.5) ? 1001 : std::numeric_limits<int>::min(),
                               Refusal("a sweep with a priority that is out of range"));
  }
  if (people_.tokens().empty()) return;
  // No submission of people has this priority, so the request differs whatever its document.
  coordinator_.Submit(document, dice_.OneOf(people_.tokens()), dice_.Chance(0.5), /*priority=*/7,
                      Refusal("a sweep with a used token"));
}

void HostileClient::AskAboutNothing() {
  const std::int64_t nowhere = Nowhere();
  switch (dice_.Draw(9)) {
    case 0:
      return coordinator_.Cancel(store::CancelSweep{nowhere, Now()}, Refusal("a cancel"));
    case 1:
      return coordinator_.Cancel(store::CancelJob{nowhere, Now()}, Refusal("a job's cancel"));
    case 2:
      return coordinator_.Control({.sweep_id = nowhere, .paused = true, .priority = 5},
                                  Refusal("a pause"));
    case 3:
      return coordinator_.RetryFailed(nowhere, 0, Refusal("a retry"));
    case 4:
      return coordinator_.RetryJob(nowhere, dice_.Chance(0.5), Refusal("a job's retry"));
    case 5:
      return coordinator_.Try(
          store::ExtendSweep{.sweep_id = nowhere, .known = 0, .seeds = "7", .cells = 9},
          Refusal("an extension"));
    case 6:
      return coordinator_.Try(store::DeleteSweep{nowhere, Now()}, Refusal("a deletion"));
    case 7:
      return coordinator_.Try(store::CountDeletion{nowhere, 0}, Refusal("a deletion's count"));
    default:
      return coordinator_.Drain(
          dice_.OneOf(std::vector<std::string>{"w", "%", "nobody-17", std::string(5000, 'x')}),
          v1::Drain::KILL, Refusal("a drain"));
  }
}

void HostileClient::AskNonsense() {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  const std::int64_t sweep_id = AnySweep();
  if (sweep_id == 0) return;
  switch (dice_.Draw(6)) {
    case 0:
      return coordinator_.Control({.sweep_id = sweep_id, .priority = -1001},
                                  Refusal("a priority that is out of range"));
    case 1:
      return coordinator_.RetryFailed(sweep_id, kFar, Refusal("a retry from nowhere on"));
    case 2:
      return coordinator_.Try(store::CountDeletion{sweep_id, kFar},
                              Refusal("a count from nowhere on"));
    case 3:
      return coordinator_.Extend(
          sweep_id,
          dice_.OneOf(std::vector<std::string>{"", "x", "5..", "9..1", "-1", "0..99999999999"}),
          Refusal("seeds that are none"));
    case 4:
      return coordinator_.Try(
          store::ExtendSweep{.sweep_id = sweep_id, .known = 999, .seeds = "7", .cells = 9},
          Refusal("an extension of what it is not"));
    default:
      return coordinator_.DeleteLive(sweep_id, Refusal("a deletion of a live sweep"));
  }
}

void HostileClient::AskForAnalyses() {
  v1::AnalyzeRequest request;
  request.mutable_sweep()->set_sweep(absl::StrCat(AnySweep()));
  const std::uint64_t what = dice_.Draw(5);
  const std::uint64_t count = what == 0 ? 0 : what == 1 ? 65 : 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    v1::Analysis* analysis = request.add_analyses();
    analysis->set_name(what == 2 ? "no_such_analysis" : "head_ablation");
    analysis->set_version(what == 3 ? -1 : 2);
    analysis->set_parameters_json(what == 4 ? R"({"method":"no_such_method"})" : "{}");
  }
  Refused("analyses that do not exist", service::ReadAnalyses(request).status());
}

}  // namespace pelab::sim
