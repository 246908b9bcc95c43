#include "core/experiment/cell_maker.h"

#include <algorithm>

#include "core/experiment/configuration.h"
#include "core/experiment/key.h"
#include "core/experiment/sweep_plan.h"

namespace pelab::experiment {
namespace {

// The two seeds whose jobs are compared.
constexpr std::int64_t kOne = kMaxSeed;
constexpr std::int64_t kOther = kMaxSeed - 1;

// Some kilobytes each. With `order: cells_first`, a combination comes again after all others.
constexpr std::size_t kMostShared = 1000;

// The fields in which the two jobs differ. nullopt if one of these fields has another value than
// the seed, or if one of them is more than a source of randomness (a switch, or a field with a
// legacy value).
std::optional<std::vector<std::string>> Following(const Job& one, const Job& other) {
  if (one.values.size() != other.values.size()) return std::nullopt;
  std::vector<std::string> fields;
  auto theirs = other.values.begin();
  for (const auto& [name, value] : one.values) {
    const auto& [their_name, their_value] = *theirs++;
    if (name != their_name) return std::nullopt;
    if (value == their_value) {
      // The template would mistake this fixed value for one that follows the seed.
      if (value == catalog::Value(kOne)) return std::nullopt;
      continue;
    }
    const catalog::Field* field = catalog::FindField(name, "");
    const bool plain = field != nullptr && !field->is_switch && !field->legacy;
    if (!plain || value != catalog::Value(kOne) || their_value != catalog::Value(kOther)) {
      return std::nullopt;
    }
    fields.push_back(name);
  }
  return fields;
}

}  // namespace

CellMaker::Shared CellMaker::Share(std::uint64_t index) const {
  const SweepPlan& plan = *sweep_.plan_;
  const Combination combination = plan.CombinationAt(index);
  Shared shared;
  const Job job = plan.MakeJobOf(combination, kOne);
  auto following = Following(job, plan.MakeJobOf(combination, kOther));
  if (!following) return shared;
  shared.following = *std::move(following);
  shared.cell = sweep_.CellOf(combination, job);
  shared.spec_template = TemplateOf(shared.cell.canonical_json, kOne);
  shared.known = true;
  return shared;
}

const CellMaker::Shared& CellMaker::SharedOf(std::uint64_t combination) {
  const auto found = shared_.find(combination);
  if (found != shared_.end()) return found->second;
  if (shared_.size() >= kMostShared) shared_.clear();
  return shared_.emplace(combination, Share(combination)).first->second;
}

std::optional<Cell> CellMaker::At(std::uint64_t ordinal) {
  if (ordinal >= sweep_.cells()) return std::nullopt;
  const SweepPlan& plan = *sweep_.plan_;
  const SweepPlan::Position position = plan.PositionOf(ordinal);
  const Shared& shared = SharedOf(position.combination);
  if (!shared.known) return sweep_.At(ordinal);
  Cell cell = shared.cell;
  cell.ordinal = ordinal;
  cell.combination = position.combination;
  cell.job.seed = position.seed;
  for (const std::string& field : shared.following) cell.job.values[field] = position.seed;
  const Combination combination = plan.CombinationAt(position.combination);
  if (plan.IsRepeat(combination, cell.job) || plan.IsExcluded(combination, cell.job)) {
    return std::nullopt;
  }
  cell.canonical_json = FillTemplate(shared.spec_template, position.seed);
  cell.key = KeyOf(cell.canonical_json);
  return cell;
}

}  // namespace pelab::experiment
