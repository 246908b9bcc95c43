// The ledger's part for claim sheets: which rounds were begun and ended, with which seeds, and
// whether the verdicts are those of a sheet that nothing has disturbed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/db/read/reader.h"
#include "pelab/v1/claims.pb.h"
#include "server/store/store.h"
#include "tests/sim/world.h"

namespace pelab::sim {

class SheetLedger {
 public:
  explicit SheetLedger(World& world) : world_(world) {}

  // A write is durable, with this answer.
  void On(const store::RegisterSheet& write, const store::SheetRegistered& registered);
  void On(const store::BeginRound& write, const store::RoundBegun& begun);
  void On(const store::EndRound& write, const store::RoundEnded& ended);
  // Whether the write must change nothing: it is not the turn of its round.
  bool MustBeRefused(const store::BeginRound& write) const;
  bool MustBeRefused(const store::EndRound& write) const;
  std::int64_t RoundsOf(std::int64_t sheet_id) const;  // that were begun
  // Somebody added seeds to a sweep, which may be a sheet's.
  void Extended(std::int64_t sweep_id) { extended_.insert(sweep_id); }

  // A settler is told this.
  void Told(const v1::Settlement& settlement);

  // Compares with the database as a new process finds it. `unknown`: a batch whose fate nobody knew
  // may have been stored.
  void Compare(store::Store& store, bool unknown);
  // Nothing changes any more: plays each sheet once more, undisturbed, with the stored results, and
  // compares its rounds and e-values.
  void CheckEnd(db::Reader& reader, store::Store& store);

  std::uint64_t rounds() const { return ended_; }       // that have ended
  std::uint64_t compared() const { return compared_; }  // sheets that were played once more

 private:
  struct Round {
    std::int64_t first_seed = 0;
    std::int64_t end_seed = 0;
    std::string cells_json;
    bool ended = false;
  };
  struct Sheet {
    std::string registration;    // what must never change
    std::int64_t max_seeds = 0;  // 0: its registration was not seen
    std::vector<Round> rounds;

    std::int64_t ended() const;
  };

  std::map<std::int64_t, Sheet> Read(store::Store& store) const;
  void CompareSheet(std::int64_t sheet_id, const Sheet& before, const Sheet& now, bool unknown);
  void CheckSeeds(const store::BeginRound& write, const Sheet& sheet);
  void CheckSheet(std::int64_t sheet_id, db::Reader& reader, store::Store& store);
  void CheckJobs(std::int64_t sweep_id, const Sheet& sheet, store::Store& store);

  template <typename... Args>
  void Violate(const Args&... args) {
    world_.Violate(absl::StrCat(args...));
  }

  World& world_;
  std::map<std::int64_t, Sheet> sheets_;
  std::set<std::int64_t> extended_;  // sweeps
  std::uint64_t ended_ = 0;
  std::uint64_t compared_ = 0;
};

}  // namespace pelab::sim
