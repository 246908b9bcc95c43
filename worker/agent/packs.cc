#include "worker/agent/packs.h"

#include <algorithm>
#include <cstddef>

namespace pelab::agent {
namespace {

bool BeganAlike(const v1::Assignment& a, const v1::Assignment& b) {
  if (a.has_execution() != b.has_execution()) return false;
  return a.execution().threads() == b.execution().threads() &&
         a.execution().micro_batch() == b.execution().micro_batch() &&
         a.execution().packing() == b.execution().packing();
}

bool Takes(const std::vector<v1::Assignment>& group, const v1::Assignment& next) {
  const v1::Assignment& first = group.front();
  if (first.has_weights() || next.has_weights()) return false;
  if (first.slot() != next.slot() || !BeganAlike(first, next)) return false;
  const int batch = first.execution().packing();  // 0: not known yet
  if (batch > 1 && group.size() >= static_cast<std::size_t>(batch)) return false;
  return std::none_of(group.begin(), group.end(), [&](const v1::Assignment& member) {
    return member.job_id() == next.job_id();
  });
}

}  // namespace

std::vector<std::vector<v1::Assignment>> ByTrainer(const std::vector<v1::Assignment>& assignments) {
  std::vector<std::vector<v1::Assignment>> groups;
  for (const v1::Assignment& assignment : assignments) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& candidate) {
      return Takes(candidate, assignment);
    });
    if (group == groups.end()) {
      groups.push_back({assignment});
    } else {
      group->push_back(assignment);
    }
  }
  return groups;
}

}  // namespace pelab::agent
