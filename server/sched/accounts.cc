#include "server/sched/accounts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pelab::sched {
namespace {

// Whole seconds, cut off, except for amounts so small that the fraction matters, or so large that
// it is not known.
std::string SecondsText(double seconds) {
  const bool whole = seconds >= 100 && seconds < 1e15;
  return whole ? absl::StrCat(static_cast<std::int64_t>(seconds)) : absl::StrCat(seconds);
}

}  // namespace

std::size_t Account::Left() const {
  if (BudgetIsSpent()) return 0;
  if (allowance_.max_slots <= 0) return kUnlimited;
  return static_cast<std::size_t>(std::max(allowance_.max_slots - running_, 0));
}

bool Account::ComesBefore(const Account& other) const {
  if (Load() != other.Load()) return Load() < other.Load();
  return last_turn_ < other.last_turn_;
}

std::string Account::WhyHeld() const {
  if (MayStart()) return "";
  const auto raised_by = [this](const char* option) {
    return absl::StrCat("; an operator can raise this (pelab admin principal change ", name_, " ",
                        option, " N)");
  };
  if (BudgetIsSpent()) {
    return absl::StrCat(name_, " has used ", SecondsText(GpuSecondsUsed()), " of ",
                        SecondsText(allowance_.gpu_seconds), " GPU seconds",
                        raised_by("--gpu-seconds"));
  }
  return absl::StrCat(name_, " has ", running_, " of ", allowance_.max_slots, " slots",
                      raised_by("--max-slots"));
}

Account& Accounts::Of(const std::string& name) {
  return accounts_.try_emplace(name, name).first->second;
}

void Accounts::Set(const std::string& name, const Allowance& allowance) {
  Account& account = Of(name);
  budgets_ -= account.HasBudget() ? 1 : 0;
  account.allowance_ = allowance;
  if (!(allowance.share > 0)) account.allowance_.share = 1;
  account.ended_gpu_seconds_ = std::max(account.ended_gpu_seconds_, allowance.gpu_seconds_used);
  budgets_ += account.HasBudget() ? 1 : 0;
  // A budget that is spent when it is set, or when a coordinator starts, is no news.
  account.told_ = account.BudgetIsSpent();
}

void Accounts::Start(Account& account) {
  account.running_ += 1;
  account.last_turn_ = ++turns_;
}

std::vector<const Account*> Accounts::NewlySpent() {
  std::vector<const Account*> spent;
  if (!HaveBudgets()) return spent;
  for (auto& [name, account] : accounts_) {
    if (account.BudgetIsSpent() && !account.told_) spent.push_back(&account);
    account.told_ = account.told_ || account.BudgetIsSpent();
  }
  return spent;
}

std::map<std::string, double> Accounts::GpuSeconds() const {
  std::map<std::string, double> seconds;
  for (const auto& [name, account] : accounts_) seconds[name] = account.ended_gpu_seconds_;
  return seconds;
}

void Accounts::SetOpen(const std::map<const Account*, double>& gpu_seconds) {
  for (auto& [name, account] : accounts_) {
    const auto found = gpu_seconds.find(&account);
    account.open_gpu_seconds_ = found == gpu_seconds.end() ? 0 : found->second;
  }
}

}  // namespace pelab::sched
