// The seeds of a sweep or of an exclude rule, stored as ranges that are never expanded. Private to
// core/experiment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::experiment {

class SeedSet {
 public:
  struct Range {
    std::int64_t first;
    std::int64_t last;  // inclusive, >= first
  };

  // Adds the range if it shares no seed with the ranges already here, and returns nullopt.
  // Otherwise adds nothing and returns the first shared seed. Seeds keep the order in which their
  // ranges were added.
  std::optional<std::int64_t> Add(Range range);

  std::uint64_t count() const { return count_; }
  std::int64_t At(std::uint64_t index) const;  // index < count()
  bool Contains(std::int64_t seed) const;
  bool Overlaps(const SeedSet& other) const;
  bool Covers(const SeedSet& other) const;  // every seed of `other` is here
  // The parts of the range that are not here, in ascending order.
  std::vector<Range> Missing(Range range) const;
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  // The number of seeds of `range` that are here.
  std::uint64_t CountIn(Range range) const;

  std::vector<Range> ranges_;          // in the order of addition
  std::vector<std::uint64_t> starts_;  // index of each range's first seed
  std::vector<Range> sorted_;          // the same ranges, sorted by first seed; disjoint
  std::uint64_t count_ = 0;
};

struct SeedText {
  std::optional<SeedSet::Range> range;
  std::string problem;  // set if and only if range is not
};
// Parses "3" or "0..4".
SeedText ParseSeeds(std::string_view text);

}  // namespace pelab::experiment
