// The content of a sweep document, resolved to types but not yet to jobs: the axes of the product,
// and how to make a cell from its ordinal. Private to core/experiment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/own_encoding.h"
#include "core/experiment/own_task.h"
#include "core/experiment/seed_set.h"
#include "core/experiment/sweep.h"
#include "core/experiment/yaml_value.h"

namespace pelab::experiment {

// One field set to one value, by the document or by the command line.
struct Setting {
  std::string field;
  catalog::Value value;
  Place place;
};

// A PE or task, and the fields that its item in the document sets.
struct Item {
  std::string name;
  Place place;
  std::vector<Setting> settings;
  // OwnSplit::chance_nonzero of the data. Whether a job needs it follows from its other fields.
  std::optional<double> chance_nonzero = std::nullopt;
  // The declaration of the file, which is one of an encoding or of data. Null without a file.
  std::shared_ptr<const OwnEncoding> encoding = nullptr;
  std::shared_ptr<const OwnTask> data = nullptr;
};

struct ProtocolChoice {
  std::string name;
  Place place;
};

struct Axis {
  std::string field;
  Place place;
  std::vector<Setting> values;
};

// An exclude rule removes a job that matches every part of the rule.
struct ExcludeRule {
  Place place;
  std::set<std::string, std::less<>> protocols;  // empty: any; so too for pes and tasks
  std::set<std::string, std::less<>> pes;
  std::set<std::string, std::less<>> tasks;
  std::optional<SeedSet> seeds;
  std::map<std::string, std::set<catalog::Value>, std::less<>> fields;

  bool MatchesButSeed(const Job& job, std::string_view protocol) const;
  bool Matches(const Job& job, std::string_view protocol) const;
};

// One choice of protocol, PE, task and one value of every axis.
struct Combination {
  const ProtocolChoice* protocol = nullptr;
  const Item* pe = nullptr;
  const Item* task = nullptr;
  std::vector<const Setting*> axes;
  std::vector<bool> at_first;  // whether each axis has its first value here
};

// Seeds that were added later. Their cells follow all earlier ones.
struct AddedSeeds {
  SeedSet seeds;
  SeedSet combinations;  // those that get the seeds; empty: all

  std::uint64_t CountCombinations(std::uint64_t all) const {
    return combinations.count() == 0 ? all : combinations.count();
  }
};

// In which order the cells of a sweep are queued.
enum class Order {
  kSeedsFirst,  // all seeds of a combination, then those of the next one
  kCellsFirst,  // the first seed of every combination, then the second one
  kRandom,      // mixed; the same document always gives the same order
};

struct SweepPlan {
  std::string name;
  Order order = Order::kSeedsFirst;
  std::vector<ProtocolChoice> protocols;  // never empty
  std::vector<Item> pes;
  std::vector<Item> tasks;
  SeedSet seeds;  // empty if the document says that it has none
  std::vector<AddedSeeds> extensions;
  std::vector<Axis> axes;
  std::vector<Setting> fixed;      // model.* and train.*
  std::vector<Setting> overrides;  // from the command line; they win over all other settings
  std::vector<ExcludeRule> rules;
  std::vector<Analysis> analyses;
  Resources resources;
  std::map<std::string, std::vector<std::string>> splits;  // of own data, by the file's SHA-256

  // The numbers of combinations and of cells; the largest uint64 if the number does not fit.
  std::uint64_t CountCombinations() const;
  std::uint64_t CountCells() const;

  // The combination and the seed of a cell.
  struct Position {
    std::uint64_t combination = 0;
    std::int64_t seed = 0;
  };
  Position PositionOf(std::uint64_t ordinal) const;  // ordinal < CountCells()

  Combination CombinationAt(std::uint64_t index) const;
  // The setting of `field` that takes effect in this combination; null if nothing sets it.
  const Setting* Find(const Combination& combination, std::string_view field) const;
  Job MakeJobOf(const Combination& combination, std::int64_t seed) const;
  bool IsExcluded(const Combination& combination, const Job& job) const;
  // Whether another cell has the same job. Either an axis has no meaning for the job and is not at
  // its first value here, or an earlier protocol gives the same job because the document sets every
  // field in which the protocols differ.
  bool IsRepeat(const Combination& combination, const Job& job) const;
};

}  // namespace pelab::experiment
