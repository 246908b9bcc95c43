// The slots that principals use, beside those that they may use. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/sched/allowance.h"

namespace pelab::sched {

// The account of one principal, or of the sweeps that have no owner.
class Account {
 public:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  explicit Account(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  // How many more jobs may start now; kUnlimited: any number.
  std::size_t Left() const;
  bool MayStart() const { return Left() != 0; }
  // Whether its next job comes before that of `other`, both of one priority: it has fewer running
  // jobs for its share, or as many and got its last slot earlier. Without the second rule, one of
  // two principals might never get the only slot.
  bool ComesBefore(const Account& other) const;
  // The limit that keeps jobs from starting, its use and who raises it, in words. Empty if jobs
  // may start.
  std::string WhyHeld() const;
  double gpu_seconds() const { return allowance_.gpu_seconds; }  // its budget; 0: none
  double GpuSecondsUsed() const { return ended_gpu_seconds_ + open_gpu_seconds_; }

  // A job that Accounts::Start counts has given its slot back.
  void Stop() { --running_; }
  // An attempt has ended that took so many GPU seconds.
  void Charge(double gpu_seconds) { ended_gpu_seconds_ += gpu_seconds; }

 private:
  friend class Accounts;
  bool HasBudget() const { return allowance_.gpu_seconds > 0; }
  bool BudgetIsSpent() const { return HasBudget() && GpuSecondsUsed() >= allowance_.gpu_seconds; }
  double Load() const { return running_ / allowance_.share; }

  std::string name_;
  bool told_ = false;    // NewlySpent has returned it, and its budget is still spent
  Allowance allowance_;  // its share is above 0
  int running_ = 0;      // jobs that run or are being stored
  std::uint64_t last_turn_ = 0;
  double ended_gpu_seconds_ = 0;
  double open_gpu_seconds_ = 0;  // as of the last SetOpen
};

class Accounts {
 public:
  // The account of this principal; "" is that of sweeps without an owner. A principal that Set does
  // not know has share 1 and no limits. The reference is valid as long as this object.
  Account& Of(const std::string& name);
  // Sets what the principal may use. A share that is not above 0 counts as 1. The GPU seconds of
  // attempts that were charged since the allowance was read are kept.
  void Set(const std::string& name, const Allowance& allowance);
  // A job of the account gets a slot. It counts from now on, while its assignment is being stored.
  void Start(Account& account);

  // The accounts whose budget of GPU seconds has been spent since the last call. A budget that is
  // spent already when it is set is not reported.
  std::vector<const Account*> NewlySpent();

  // GPU seconds that each principal was charged for its attempts that have ended.
  std::map<std::string, double> GpuSeconds() const;

  // Whether some principal has a budget of GPU seconds. If none has, nobody need measure.
  bool HaveBudgets() const { return budgets_ != 0; }
  // Sets the GPU seconds that open attempts have taken so far; an account that is missing here has
  // none.
  void SetOpen(const std::map<const Account*, double>& gpu_seconds);

 private:
  std::map<std::string, Account> accounts_;
  int budgets_ = 0;
  std::uint64_t turns_ = 0;
};

}  // namespace pelab::sched
