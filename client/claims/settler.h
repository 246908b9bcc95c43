// Settles a registered sheet round by round, as far as a budget goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/options/options.h"
#include "client/options/sheet_file.h"
#include "client/source/data_source.h"

namespace pelab::client {

// The budget of this command. A round that would not fit is not begun. A round that is open when
// the command starts is left open if the rest of it would not fit. A round that the command has
// begun or taken over is finished, even if it takes longer than expected.
struct Budget {
  std::optional<absl::Duration> slot_time;
  std::optional<std::int64_t> jobs;
  std::optional<absl::Time> until;
};

struct SettleOptions {
  Budget budget;
  bool any_seeds = false;  // begin at the sheet's first_seed, even if seeds are stored
  // How many slots a round should keep busy. 0: as many as are online when the sheet is registered.
  int slots = 0;
  std::vector<std::string> put_aside;  // claims, by their ids, that get no further seeds
};

// The two steps of a round that depend on where its jobs run: on a worker that this command starts,
// or on workers that run already.
struct SettleHost {
  // Called before jobs are to run: starts a worker where this command has to.
  std::function<absl::Status()> ensure_worker;
  // Waits until the sweep has ended, and shows how it gets on.
  std::function<absl::Status(const std::string& sweep)> watch;
};

// Registers the sheet if it is not registered yet, and settles it. At the end, Run prints the
// verdicts and returns the exit status: kExitIncomplete if jobs of a round cannot be completed. Run
// may be called again with another coordinator. It does not count again what was spent.
class Settler {
 public:
  Settler(const Context& context, const SheetFile& file, const SettleOptions& options,
          SettleHost host);
  absl::StatusOr<int> Run(Coordinator& coordinator);

 private:
  absl::StatusOr<v1::Settlement> Register(Coordinator& coordinator);
  absl::StatusOr<v1::Settlement> PutAside(Coordinator& coordinator,
                                          const v1::Settlement& state) const;
  absl::Status WaitForSlots(Coordinator& coordinator);
  void TellStopped(Coordinator& coordinator, const v1::Settlement& state, const std::string& why);
  absl::Status FinishRound(Coordinator& coordinator, v1::Settlement& state);
  // The jobs that a round still has to run: how many there are, and their expected slot time in
  // seconds (0 if it is unknown).
  struct Cost {
    std::int64_t jobs = 0;
    double seconds = 0;
    std::string name;  // "the next round"
  };
  static Cost CostOf(const v1::PlannedRound& next);
  static Cost CostOfOpen(const v1::Settlement& state);
  // Why a round of this cost does not fit into the budget; empty if it fits.
  std::string WhyNot(const Cost& cost) const;
  absl::Status Begin(Coordinator& coordinator, const Cost& cost, v1::Settlement& state);
  void Pay(const Cost& cost, std::int64_t round);
  void CountTime(const v1::Settlement& state);
  void SayEnded(const v1::Settlement& state) const;
  void Announce(const v1::Settlement& state) const;
  void Say(const std::string& line) const;  // to people
  absl::StatusOr<int> End(Coordinator& coordinator, const v1::Settlement& state,
                          const std::string& why);

  const Context& context_;
  const SheetFile& file_;
  const SettleOptions options_;
  const SettleHost host_;
  bool announced_ = false;
  std::int64_t slots_ = 1;
  bool revived_ = false;  // jobs that would not end by themselves were queued again
  // How much of the sheet's slot time has been accounted for. This command's share of it is in
  // spent_seconds_. nullopt: Run has not begun.
  std::optional<double> counted_;
  double spent_seconds_ = 0;
  std::int64_t spent_jobs_ = 0;
  std::int64_t paid_round_ = 0;  // the last round whose jobs are in spent_jobs_
};

// "round 3: seed 5, 8 jobs, about 1m20s of slot time".
std::string RoundText(const v1::PlannedRound& round);

}  // namespace pelab::client
