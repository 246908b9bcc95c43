// The writing thread of a simulated coordinator: the real store with bounded queues and group
// commits that take virtual time, on a disk that may fail. Answers come after the commit. A process
// that dies answers nobody.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/store/journal.h"
#include "tests/sim/ledger.h"
#include "tests/sim/world.h"
#include "tests/support/faulty_vfs.h"

namespace pelab::sim {

// Bugs that a test plants to check that the simulation finds them.
struct Planted {
  bool no_fencing = false;  // late events go to the attempt that is open now
  bool acknowledge_before_commit = false;
  bool no_lease_sweep = false;
  bool no_silence_sweep = false;   // a worker may hold an attempt for ever without reporting
  bool believes_anybody = false;   // events of another worker's attempt are accepted
  bool stores_unchecked = false;   // an epoch that breaks a rule is made to fit and stored
  bool ignores_requests = false;   // a used token is answered, whatever it was used for
  bool ignores_gone = false;       // a report that a worker is gone is answered, and that is all
  bool believes_in_files = false;  // every worker is said to fetch files
  bool skips_seeds = false;        // a later round of a sheet leaves its first seed out
  bool widens_rounds = false;      // a later round of a sheet has jobs of cells that left it
  bool takes_late_rounds = false;  // a late begin or end of a round counts for the present one
  bool misjudges = false;          // e-values of claims are wrong in the twelfth digit
};
// The bugs by the names of the members above.
const std::map<std::string, bool Planted::*>& PlantedByName();

class SimJournal final : public store::Journal {
 public:
  struct Parts {
    World& world;
    Ledger& ledger;
    FaultyVfs& vfs;
    store::Store& store;
    const Planted& planted;
    std::shared_ptr<const bool> alive;  // the process is alive
    std::function<void()> died;         // called if the process dies during a commit
    absl::Duration* disk;               // how long a commit takes
    std::size_t max_queued_bytes = 0;
    std::size_t batch = 0;  // requests of one commit
  };
  explicit SimJournal(Parts parts) : parts_(std::move(parts)) {}

  absl::Status Append(std::vector<store::Write> writes, Done done, Urgency urgency) override;

  // Commits and answers everything at once. Refuses later requests.
  void Stop();
  bool idle() const { return !busy_; }
  // The disk before the commit that is acknowledged but not done yet. Only the bug
  // acknowledge_before_commit sets it.
  const std::optional<FaultyVfs::Image>& before() const { return before_; }

 private:
  struct Request {
    std::vector<store::Write> writes;
    Done done;
    std::size_t bytes = 0;
  };
  struct Answer {
    Done done;
    absl::StatusOr<std::vector<store::ApplyResult>> results;
  };

  // The writes as the planted bugs change them.
  std::vector<store::Write> Spoiled(const std::vector<store::Write>& writes) const;
  bool HasWork() const { return !queue_.empty() || !long_.empty(); }
  std::deque<Request> TakeBatch(std::size_t most);
  void Commit();
  absl::StatusOr<std::vector<store::ApplyResult>> Apply(const std::vector<store::Write>& writes);
  std::vector<Answer> ApplyBatch(std::deque<Request> batch);
  void Finish();
  static void Tell(std::vector<Answer> answers);

  Parts parts_;
  std::deque<Request> queue_;
  std::deque<Request> long_;  // requests with a long write; a commit has one of them at most
  std::size_t queued_bytes_ = 0;
  bool busy_ = false;
  bool stopped_ = false;
  std::optional<FaultyVfs::Image> before_;
};

}  // namespace pelab::sim
