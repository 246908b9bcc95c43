#include "server/access/caller.h"

#include "absl/strings/str_cat.h"

namespace pelab::access {

std::string Named(const v1::Sweep& sweep) {
  return absl::StrCat("sweep ", sweep.sweep_id(), " (", sweep.name(), ")");
}

absl::Status Caller::MayChange(const v1::Sweep& sweep) const {
  return MayChange(Named(sweep), sweep.owner(), "sweeps");
}

absl::Status Caller::MayChange(const std::string& named, const std::string& owner,
                               absl::string_view kind) const {
  if (operates() || owner == name) return absl::OkStatus();
  const std::string whose = owner.empty() ? "was submitted before there were principals"
                                          : absl::StrCat("is ", owner, "'s");
  return absl::PermissionDeniedError(absl::StrCat(
      named, " ", whose, "; ", name, " may change only ", kind, " of its own: ask an operator"));
}

absl::Status Caller::MaySetPriority(int priority) const {
  if (operates() || priority <= limits.max_priority()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("priority ", priority, " is above what ", name, " may set (",
                   limits.max_priority(), "); an operator can raise this: pelab admin principal ",
                   "change ", name, " --max-priority N"));
}

std::optional<store::RecordAct> Caller::Act(absl::string_view method, std::string target) const {
  if (name.empty()) return std::nullopt;
  return store::RecordAct{.at = at,
                          .principal = name,
                          .peer = peer,
                          .method = std::string(method),
                          .target = std::move(target),
                          .trace_id = trace_id};
}

}  // namespace pelab::access
