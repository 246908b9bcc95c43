#include "core/experiment/sweep_plan.h"

#include <algorithm>
#include <limits>

namespace pelab::experiment {
namespace {

std::uint64_t SaturatingProduct(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return b != 0 && a > kMost / b ? kMost : a * b;
}

std::uint64_t SaturatingSum(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

const Setting* FindIn(const std::vector<Setting>& settings, std::string_view field) {
  for (const Setting& setting : settings) {
    if (setting.field == field) return &setting;
  }
  return nullptr;
}

}  // namespace

bool ExcludeRule::MatchesButSeed(const Job& job, std::string_view protocol) const {
  if (!protocols.empty() && protocols.count(protocol) == 0) return false;
  if (!pes.empty() && pes.count(job.pe) == 0) return false;
  if (!tasks.empty() && tasks.count(job.task) == 0) return false;
  return std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
    const auto value = job.values.find(field.first);
    return value != job.values.end() && field.second.count(value->second) > 0;
  });
}

bool ExcludeRule::Matches(const Job& job, std::string_view protocol) const {
  return MatchesButSeed(job, protocol) && (!seeds || seeds->Contains(job.seed));
}

std::uint64_t SweepPlan::CountCombinations() const {
  std::uint64_t count = SaturatingProduct(pes.size(), tasks.size());
  count = SaturatingProduct(count, protocols.size());
  for (const Axis& axis : axes) count = SaturatingProduct(count, axis.values.size());
  return count;
}

std::uint64_t SweepPlan::CountCells() const {
  const std::uint64_t combinations = CountCombinations();
  std::uint64_t count = SaturatingProduct(combinations, seeds.count());
  for (const AddedSeeds& more : extensions) {
    count = SaturatingSum(
        count, SaturatingProduct(more.CountCombinations(combinations), more.seeds.count()));
  }
  return count;
}

SweepPlan::Position SweepPlan::PositionOf(std::uint64_t ordinal) const {
  const std::uint64_t combinations = CountCombinations();
  if (ordinal < combinations * seeds.count()) {
    return {ordinal / seeds.count(), seeds.At(ordinal % seeds.count())};
  }
  ordinal -= combinations * seeds.count();
  auto block = extensions.begin();
  for (;; ++block) {
    const std::uint64_t cells = block->CountCombinations(combinations) * block->seeds.count();
    if (ordinal < cells) break;
    ordinal -= cells;
  }
  const std::uint64_t at = ordinal / block->seeds.count();
  const bool all = block->combinations.count() == 0;
  return {all ? at : static_cast<std::uint64_t>(block->combinations.At(at)),
          block->seeds.At(ordinal % block->seeds.count())};
}

Combination SweepPlan::CombinationAt(std::uint64_t index) const {
  Combination combination;
  combination.task = &tasks[index % tasks.size()];
  index /= tasks.size();
  combination.pe = &pes[index % pes.size()];
  index /= pes.size();
  for (const Axis& axis : axes) {
    const std::uint64_t position = index % axis.values.size();
    index /= axis.values.size();
    combination.axes.push_back(&axis.values[position]);
    combination.at_first.push_back(position == 0);
  }
  combination.protocol = &protocols[index];
  return combination;
}

const Setting* SweepPlan::Find(const Combination& combination, std::string_view field) const {
  if (const Setting* setting = FindIn(overrides, field)) return setting;
  for (const Setting* setting : combination.axes) {
    if (setting->field == field) return setting;
  }
  if (const Setting* setting = FindIn(combination.pe->settings, field)) return setting;
  if (const Setting* setting = FindIn(combination.task->settings, field)) return setting;
  return FindIn(fixed, field);
}

Job SweepPlan::MakeJobOf(const Combination& combination, std::int64_t seed) const {
  catalog::Values set;  // the first setting of a field wins
  const auto take = [&](const Setting& setting) { set.emplace(setting.field, setting.value); };
  for (const Setting& setting : overrides) take(setting);
  for (const Setting* setting : combination.axes) take(*setting);
  for (const Setting& setting : combination.pe->settings) take(setting);
  for (const Setting& setting : combination.task->settings) take(setting);
  for (const Setting& setting : fixed) take(setting);
  return MakeJob(combination.protocol->name, combination.pe->name, combination.task->name, seed,
                 set);
}

bool SweepPlan::IsExcluded(const Combination& combination, const Job& job) const {
  return std::any_of(rules.begin(), rules.end(), [&](const ExcludeRule& rule) {
    return rule.Matches(job, combination.protocol->name);
  });
}

bool SweepPlan::IsRepeat(const Combination& combination, const Job& job) const {
  for (std::size_t i = 0; i < combination.axes.size(); ++i) {
    if (!combination.at_first[i] && !job.HasField(combination.axes[i]->field)) return true;
  }
  Combination earlier = combination;
  for (earlier.protocol = &protocols[0]; earlier.protocol != combination.protocol;
       ++earlier.protocol) {
    const Job other = MakeJobOf(earlier, job.seed);
    if (other.values == job.values && !IsExcluded(earlier, other)) return true;
  }
  return false;
}

}  // namespace pelab::experiment
