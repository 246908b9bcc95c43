#include "core/experiment/sweep_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

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

// A bijection of [0, count), for count above 0: a Feistel network of four rounds over a range of at
// most 4 count, followed from number to number until one is below count.
std::uint64_t Mixed(std::uint64_t number, std::uint64_t count) {
  int half = 1;
  while (half < 32 && (std::uint64_t{1} << (2 * half)) < count) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = number >> half, right = number & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      // The finalizer of SplitMix64.
      std::uint64_t hash = right + round * 0x9E3779B97F4A7C15;
      hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
      hash = (hash ^ hash >> 27) * 0x94D049BB133111EB;
      left ^= (hash ^ hash >> 31) & mask;
      std::swap(left, right);
    }
    number = left << half | right;
  } while (number >= count);
  return number;
}

struct BlockPlace {
  std::uint64_t combination, seed;
};

// The place of cell `at` among all combinations with all seeds; there is at least one of each.
BlockPlace PlaceOf(Order order, std::uint64_t at, std::uint64_t combinations, std::uint64_t seeds) {
  if (combinations == 0 || seeds == 0) return {};
  if (order == Order::kCellsFirst) return {at % combinations, at / combinations};
  if (order == Order::kRandom) at = Mixed(at, combinations * seeds);
  return {at / seeds, at % seeds};
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
    const BlockPlace place = PlaceOf(order, ordinal, combinations, seeds.count());
    return {place.combination, seeds.At(place.seed)};
  }
  ordinal -= combinations * seeds.count();
  auto block = extensions.begin();
  for (;; ++block) {
    const std::uint64_t cells = block->CountCombinations(combinations) * block->seeds.count();
    if (ordinal < cells) break;
    ordinal -= cells;
  }
  const BlockPlace place =
      PlaceOf(order, ordinal, block->CountCombinations(combinations), block->seeds.count());
  const bool all = block->combinations.count() == 0;
  return {all ? place.combination
              : static_cast<std::uint64_t>(block->combinations.At(place.combination)),
          block->seeds.At(place.seed)};
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
  Job job =
      MakeJob(combination.protocol->name, combination.pe->name, combination.task->name, seed, set);
  const std::optional<double>& chance = combination.task->chance_nonzero;
  if (chance && LeavesZeroOut(job)) job.values["task.chance"] = *chance;
  return job;
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
