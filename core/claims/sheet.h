// A claim sheet: what somebody claims about the results of a sweep, as read from its file
// (docs/formats.md). Values; copyable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/violation.h"
#include "core/experiment/yaml_value.h"

namespace pelab::claims {

inline constexpr std::size_t kMaxClaims = 1000;
inline constexpr std::size_t kMaxTerms = 64;  // cells of one claim, and pairs of them
inline constexpr std::int64_t kMaxSeeds = 1000;
inline constexpr std::size_t kMaxMessageBytes = 2000;  // of an error
// Seeds from here on are for choosing sizes, rates and epochs. A sheet uses the seeds below, so
// that no replicate is one that a choice was made on.
inline constexpr std::int64_t kFirstPilotSeed = 1000;

// The statement that a claim makes about its cells' values in one seed.
enum class Kind {
  kAbove,     // of each pair of cells, the first lies above the second by more than `low`
  kBetween,   // the cell lies between `low` and `high`
  kNear,      // the first cell less the second lies between `low` and `high`
  kMost,      // the cell has the property
  kContrast,  // the weighted sum of the cells lies above `low`
};

// A cell, chosen by a condition in the language of --where.
struct Term {
  std::string condition;
  double weight = 1;
  experiment::Place place;
};

// The layers that a property is about.
struct Layers {
  enum class Which { kAny, kShallow, kListed } which = Which::kAny;  // shallow: the lower half
  std::vector<std::int64_t> listed;  // all of them must have the property; they count from 0
};

// A seed counts if the metric lies above `above`, or above the task's best shortcut, by `by`.
struct Eligibility {
  std::string metric = "test_accuracy";
  std::optional<double> above;  // nullopt: the best shortcut
  double by = 0.1;
};

struct Claim {
  std::string id;
  std::string says;    // in words; may be empty
  std::string source;  // who claims it; may be empty
  Kind kind = Kind::kAbove;
  std::string metric;
  std::vector<Term> cells;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // of kAbove, positions in `cells`
  double low = 0;
  double high = 0;
  Layers layers;                  // of the property of kMost
  std::string where;              // a condition that all its cells meet; may be empty
  std::vector<std::string> each;  // fields: one claim for each of their values
  experiment::Place where_place;
  experiment::Place each_place;
  std::optional<Eligibility> eligible;
  experiment::Place place;
};

struct Sheet {
  std::string name;
  std::string sweep_file;      // as written, relative to the sheet; empty if the sweep is inline
  std::string sweep_document;  // an inline sweep, as JSON
  double false_discovery_rate = 0.05;
  std::int64_t max_seeds = 40;
  std::int64_t first_seed = 0;  // earlier ones are no replicates: sizes were chosen on them, say
  std::vector<Claim> claims;
  experiment::Place sweep_place;
};

}  // namespace pelab::claims
