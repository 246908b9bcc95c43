// The ledger's part for requests of people and of hostile clients: what each of them may change.
#include <algorithm>
#include <utility>

#include "tests/sim/ledger.h"

namespace pelab::sim {
namespace {

// No job and no place in a sweep of the simulation has so high a number.
constexpr std::int64_t kNowhere = 1'000'000;

bool IsNowhere(std::int64_t number) { return number <= 0 || number >= kNowhere; }

}  // namespace

// Whether a write must change nothing.
struct Ledger::Judge {
  const Ledger& ledger;

  bool IsUnknown(std::int64_t sweep_id) const { return ledger.known_.count(sweep_id) == 0; }

  bool operator()(const store::AttemptEvent& w) const {
    return ledger.Find(w.event->attempt_id(), w.event->token(), w.worker) == nullptr;
  }
  bool operator()(const store::AppendLog& w) const {
    return ledger.Find(w.attempt_id, w.token, w.worker) == nullptr;
  }
  bool operator()(const store::SubmitSweep& w) const {
    return ledger.SweepOf(w.client_token) != nullptr;
  }
  bool operator()(const store::CancelSweep& w) const { return IsUnknown(w.sweep_id); }
  bool operator()(const store::ControlSweep& w) const { return IsUnknown(w.sweep_id); }
  bool operator()(const store::ExtendSweep& w) const {
    const auto sweep = ledger.known_.find(w.sweep_id);
    return sweep == ledger.known_.end() ||
           w.known != static_cast<std::size_t>(sweep->second.extensions);
  }
  bool operator()(const store::RetrySlice& w) const {
    return IsUnknown(w.sweep_id) || w.from >= kNowhere;
  }
  bool operator()(const store::RetryJob& w) const { return IsNowhere(w.job_id); }
  bool operator()(const store::CancelJob& w) const { return IsNowhere(w.job_id); }
  bool operator()(const store::DrainWorker& w) const { return !ledger.KnowsWorker(w.worker); }
  bool operator()(const store::BeginRound& w) const {
    return ledger.sheets_of_claims_.MustBeRefused(w);
  }
  bool operator()(const store::EndRound& w) const {
    return ledger.sheets_of_claims_.MustBeRefused(w);
  }
  bool operator()(const store::DeleteSweep&) const { return true; }  // only live sweeps are named
  bool operator()(const store::CountDeletion&) const { return true; }
  template <typename T>
  bool operator()(const T&) const {
    return false;
  }
};

bool Ledger::MustBeRefused(const store::Write& write) const {
  return std::visit(Judge{*this}, write);
}

const Ledger::Sweep* Ledger::SweepOf(const std::string& token) const {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& sweep) { return sweep.second.token == token; });
  return found == known_.end() ? nullptr : &found->second;
}

bool Ledger::KnowsWorker(const std::string& text) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    const auto& [id, names] = worker;
    return id == text || names.first == text || names.second == text ||
           (text.size() >= 6 && id.starts_with(text));
  });
}

void Ledger::Superseded(const store::SliceStored& slice) {
  for (const std::int64_t id : slice.superseded) attempts_[id].open = false;
}

void Ledger::On(const store::SubmitSweep& write, const store::WriteResult& result) {
  const auto& stored = std::get<store::SweepStored>(result);
  Superseded(stored.first);
  const Sweep* const before = SweepOf(write.client_token);
  if (before == nullptr) {
    if (stored.refusal != store::SweepStored::kNone || stored.repeated_token) {
      Violate("the submission with the new token ", write.client_token, " is not stored");
    }
    known_[stored.sweep_id] = {
        .token = write.client_token, .request = write.request_sha256, .priority = write.priority};
    return;
  }
  const bool same = before->request == write.request_sha256;
  const bool right =
      same ? stored.repeated_token : stored.refusal == store::SweepStored::kTokenUsed;
  if (!right) {
    Violate("the token ", write.client_token, " was used before for ", same ? "this" : "another",
            " request, and sweep ", stored.sweep_id, " is not the answer to that");
  }
}

void Ledger::On(const store::ExpandSlice&, const store::WriteResult& result) {
  Superseded(std::get<store::SliceStored>(result));
}

void Ledger::On(const store::Analyze&, const store::WriteResult& result) {
  Superseded(std::get<store::Analyzed>(result).jobs);
}

void Ledger::On(const store::RetrySlice& write, const store::WriteResult& result) {
  const auto& retried = std::get<store::Retried>(result);
  counts_.retried += static_cast<std::uint64_t>(retried.queued);
  Superseded(retried.jobs);
  if (MustBeRefused(write) && (retried.queued != 0 || retried.nothing != 0)) {
    Violate("jobs of sweep ", write.sweep_id, " from ", write.from, " on were tried again");
  }
}

void Ledger::On(const store::RetryJob& write, const store::WriteResult& result) {
  const auto& retried = std::get<store::Retried>(result);
  counts_.retried += static_cast<std::uint64_t>(retried.queued);
  Superseded(retried.jobs);
  if (MustBeRefused(write) && retried.refused.empty()) {
    Violate("job ", write.job_id, ", which does not exist, was tried again");
  }
}

void Ledger::On(const store::CancelSweep& write, const store::WriteResult& result) {
  if (std::get<store::Cancelled>(result).found != (known_.count(write.sweep_id) != 0)) {
    Violate("the wrong answer to a cancel of sweep ", write.sweep_id);
  }
}

void Ledger::On(const store::DeleteSweep& write, const store::WriteResult& result) {
  const auto& deleted = std::get<store::SweepDeleted>(result);
  const bool known = known_.count(write.sweep_id) != 0;
  if (deleted.found != known || (known && !deleted.live)) {
    Violate("sweep ", write.sweep_id, known ? ", which is live, is deleted" : " is not known");
  }
}

void Ledger::On(const store::ControlSweep& write, const store::WriteResult& result) {
  const auto& controlled = std::get<store::SweepControlled>(result);
  counts_.controlled += controlled.changed;
  const auto sweep = known_.find(write.sweep_id);
  if (controlled.found != (sweep != known_.end())) {
    Violate("the wrong answer to a change of sweep ", write.sweep_id);
  } else if (controlled.found && write.priority) {
    sweep->second.priority = *write.priority;
  }
}

void Ledger::On(const store::ExtendSweep& write, const store::WriteResult& result) {
  const bool applied = std::get<store::SweepExtended>(result).applied;
  counts_.extended += applied;
  if (!applied) return;
  if (cancelled_.count(write.sweep_id) != 0) {
    Violate("sweep ", write.sweep_id, " is cancelled and was extended");
  }
  if (MustBeRefused(write)) Violate("sweep ", write.sweep_id, " was extended out of turn");
  sheets_of_claims_.Extended(write.sweep_id);
  known_[write.sweep_id].extensions += 1;
}

void Ledger::On(const store::ReopenSweep&, const store::WriteResult& result) {
  Superseded(std::get<store::SweepStored>(result).first);
}

// Notes what a batch reopens or extends, in order, before it is applied. A cancel is acknowledged
// after its batch, and the batch may reopen the sweep again. A batch that failed may have been
// stored all the same.
void Ledger::NoteReopened(std::span<const store::Write> writes) {
  extending_.clear();
  for (const store::Write& write : writes) {
    if (const auto* extend = std::get_if<store::ExtendSweep>(&write)) {
      extending_.push_back(extend->sweep_id);
    }
    if (const auto* cancel = std::get_if<store::CancelSweep>(&write)) {
      reopened_since_.erase(cancel->sweep_id);
    }
    if (const auto* reopen = std::get_if<store::ReopenSweep>(&write)) {
      reopened_since_.insert(reopen->sweep_id);
      cancelled_.erase(reopen->sweep_id);
    }
  }
}

void Ledger::On(const store::RegisterSheet& write, const store::WriteResult& result) {
  sheets_of_claims_.On(write, std::get<store::SheetRegistered>(result));
}

// The first round makes the sheet's sweep, and each round extends it.
void Ledger::On(const store::BeginRound& write, const store::WriteResult& result) {
  const auto& begun = std::get<store::RoundBegun>(result);
  counts_.changes_stale += sheets_of_claims_.MustBeRefused(write);
  sheets_of_claims_.On(write, begun);
  Superseded(begun.sweep.jobs);
  if (begun.sweep_id == 0) return;
  if (write.sweep != nullptr && known_.count(begun.sweep_id) == 0) {
    known_[begun.sweep_id] = {.token = write.sweep->client_token,
                              .request = write.sweep->request_sha256};
  }
  if (begun.applied && !write.seeds.seeds.empty()) known_[begun.sweep_id].extensions += 1;
}

void Ledger::On(const store::EndRound& write, const store::WriteResult& result) {
  const auto& ended = std::get<store::RoundEnded>(result);
  counts_.changes_stale += sheets_of_claims_.MustBeRefused(write);
  counts_.rounds += ended.applied;
  sheets_of_claims_.On(write, ended);
}

void Ledger::On(const store::PutAside&, const store::WriteResult& result) {
  counts_.put_aside += std::get<store::ClaimsPutAside>(result).applied;
}

void Ledger::On(const store::DrainWorker& write, const store::WriteResult& result) {
  const auto& drained = std::get<store::WorkerDrained>(result);
  counts_.drained += drained.changed;
  if (MustBeRefused(write) && drained.refused.empty()) {
    Violate("worker \"", write.worker, "\", which does not exist, was drained");
  }
}

void Ledger::AcknowledgedSweep(std::int64_t sweep_id, const std::string& client_token) {
  const auto [entry, is_new] = sweeps_.emplace(sweep_id, client_token);
  if (!is_new && entry->second != client_token) {
    Violate("sweep ", sweep_id, " is the answer to two submissions");
  }
}

}  // namespace pelab::sim
