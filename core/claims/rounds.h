// How a sheet is settled: which seeds come next, and what its claims have come to. A round is a
// function of the sheet, of the round before and of stored results, not of who asks. Pure
// functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/claims/binding.h"
#include "core/claims/evidence.h"
#include "core/claims/judgement.h"
#include "core/claims/outcomes.h"

namespace pelab::claims {

// A claim is given up if the chance that it will be decided by max_seeds is below this, even if all
// open claims of the sheet are decided, which lowers the threshold.
inline constexpr double kFutileChance = 0.05;

// Whether a claim gets further seeds, and why it does not.
enum class Standing {
  kOpen,
  kDecided,
  kAllSeeds,  // it has max_seeds, or every seed below kFirstPilotSeed
  kFutile,    // it is unlikely to be decided by max_seeds
  kPutAside,  // somebody asked that it gets none
};
// "open", "decided", "all seeds", "futile", "put aside".
std::string NameOf(Standing standing);
std::optional<Standing> ParseStanding(std::string_view name);

// The state of a claim after a round. A claim that is not open any more keeps its e-values: it
// is not reopened, since some of its cells may have got later seeds for other claims.
struct ClaimState {
  Standing standing = Standing::kOpen;
  EValues e;
  Judgement judgement;
};

// The rules that were fixed when the sheet was registered.
struct Registration {
  std::int64_t first_seed = 0;
  // The first seed after all those (below kFirstPilotSeed) that cells of the sheet had jobs for.
  // This seed and higher ones are confirmatory, lower ones exploratory.
  std::int64_t fresh_from = 0;
  // At least 1. A round gives them all something to do, unless the sheet has too few seeds so far.
  std::int64_t slots = 1;
};

// The cells of all open claims, with the seeds first_seed … end_seed - 1.
struct Round {
  std::int64_t number = 1;
  std::int64_t first_seed = 0;
  std::int64_t end_seed = 0;
  std::vector<std::size_t> cells;  // positions in BoundSheet::configurations, ascending
};

// The round after `last` (nullptr: none was begun), in which the claims stand as in `states`, one
// for each bound claim. nullopt if no claim is open or no seeds are left.
std::optional<Round> NextRound(const BoundSheet& sheet, const Registration& registration,
                               const Round* last, std::span<const ClaimState> states);

// A job whose outcome is still to come.
struct OpenCell {
  std::size_t configuration = 0;
  std::int64_t seed = 0;
  std::string lacks;  // the metric whose analysis is to come, if it is trained; otherwise empty
};
// Returns the open cells of `round`, and those of earlier rounds whose jobs were queued again: a
// claim counts seeds only up to the first one that is missing. A cell is left out if all claims
// about it were put aside after the round began.
std::vector<OpenCell> OpenCellsOf(const BoundSheet& sheet, const Registration& registration,
                                  const Round& round, std::span<const ClaimState> states,
                                  const Outcomes& outcomes);

// The states after `round`, when no cell is open any more (OpenCellsOf). `before` has one state per
// claim: those after the previous round, or all open before the first round.
std::vector<ClaimState> Conclude(const BoundSheet& sheet, const Registration& registration,
                                 const Round& round, std::span<const ClaimState> before,
                                 const Outcomes& outcomes);

// How many of a claim's first `seeds` seeds are exploratory: lower than fresh_from.
std::int64_t ExploratorySeeds(const Registration& registration, std::int64_t seeds);

}  // namespace pelab::claims
