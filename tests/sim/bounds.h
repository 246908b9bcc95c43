// The limits of the coordinator in one history: how long it waits, how often it tries, and how much
// it takes at once. In half of the histories they are always the same; in the others they are drawn
// from the seed, so that no promise depends on their values.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/time/time.h"
#include "core/state/state.h"
#include "server/store/epoch_staging.h"
#include "tests/sim/world.h"

namespace pelab::sim {

struct Bounds {
  absl::Duration lease = absl::Seconds(20);
  // How long a worker may hold an attempt without reporting anything about it.
  absl::Duration silence = absl::InfiniteDuration();
  state::Budgets budgets;
  // A history has few epochs; small values move them all the same.
  store::EpochStagingOptions staging = {.rows = 6, .transactions = 9, .least_moved = 2};
  std::optional<std::size_t> queued_bytes;  // not set: drawn by the coordinator
  std::size_t slice = 3;                    // job cells of a slice of an expansion
  std::size_t batch = 16;                   // requests of one commit
  std::optional<int> pack;                  // of every slot; not set: drawn for each worker

  absl::Duration heartbeat() const { return lease / 4; }
};

// A history in which a worker lies has a finite `silence`: otherwise a worker could keep a job for
// ever.
inline Bounds DrawBounds(const World& world, bool with_liar) {
  Bounds bounds;
  Dice dice = world.DiceFor("bounds");
  const absl::Duration silence = dice.Between(absl::Minutes(2), absl::Minutes(6));
  if (with_liar) bounds.silence = silence;
  if (dice.Chance(0.5)) return bounds;
  if (dice.Chance(0.5)) bounds.silence = silence;
  bounds.lease = dice.Between(absl::Seconds(8), absl::Seconds(40));
  bounds.budgets.lost = 2 + static_cast<int>(dice.Draw(6));
  bounds.budgets.failed = 1 + static_cast<int>(dice.Draw(4));
  bounds.staging = {.rows = 1 + dice.Draw(12),
                    .transactions = 1 + static_cast<int>(dice.Draw(20)),
                    .least_moved = 1 + dice.Draw(4)};
  bounds.queued_bytes = dice.Chance(0.3) ? 1500 + dice.Draw(5000) : 64 << 20;
  bounds.slice = 1 + dice.Draw(6);
  bounds.batch = 1 + dice.Draw(32);
  if (dice.Chance(0.3)) bounds.pack = dice.Chance(0.2) ? 64 : 1 + static_cast<int>(dice.Draw(8));
  return bounds;
}

}  // namespace pelab::sim
