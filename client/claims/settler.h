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

// The budget of this command. A round that would not fit is not begun, and one that is under way is
// left as it is.
struct Budget {
  std::optional<absl::Duration> slot_time;
  std::optional<std::int64_t> jobs;
  std::optional<absl::Time> until;
};

struct SettleOptions {
  Budget budget;
  bool any_seeds = false;  // begin at the sheet's first_seed, even if seeds are stored
  int slots = 0;           // that a round gives something to do; 0: those that are there
  std::vector<std::string> put_aside;  // claims, by their ids, that get no further seeds
};

// The steps of a round that differ with where its jobs run.
struct SettleHost {
  // Called before jobs are to run: starts a worker where this command has to.
  std::function<absl::Status()> ensure_worker;
  // Waits until the sweep has ended, and shows how it gets on.
  std::function<absl::Status(const std::string& sweep)> watch;
};

// Registers the sheet if it is not yet, and settles it. Prints the verdicts at the end. Returns the
// exit status: kExitIncomplete if jobs of a round cannot be completed. May be called again with
// another coordinator; what was spent counts once.
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
  // The jobs of a round that are still to run, and their slot time; 0: it is unknown.
  struct Cost {
    std::int64_t jobs = 0;
    double seconds = 0;
    std::string name;  // "the next round"
  };
  static Cost CostOf(const v1::PlannedRound& next);
  static Cost CostOfOpen(const v1::Settlement& state);
  // Why they do not fit into the budget; empty: they do.
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
  bool revived_ = false;           // what does not come by itself was queued again
  std::optional<double> counted_;  // the sheet's slot time up to which spent_seconds_ goes
  double spent_seconds_ = 0;
  std::int64_t spent_jobs_ = 0;
  std::int64_t paid_round_ = 0;  // the last round whose jobs are in spent_jobs_
};

// "round 3: seed 5, 8 jobs, about 1m20s of slot time".
std::string RoundText(const v1::PlannedRound& round);

}  // namespace pelab::client
