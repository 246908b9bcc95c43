#include "core/experiment/seed_set.h"

#include <algorithm>
#include <charconv>

#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

std::optional<std::int64_t> ParseSeed(std::string_view text) {
  std::int64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (seed < 0 || seed > kMaxSeed) return std::nullopt;
  return seed;
}

bool StartsBefore(const SeedSet::Range& range, const SeedSet::Range& other) {
  return range.first < other.first;
}

}  // namespace

std::optional<std::int64_t> SeedSet::Add(Range range) {
  const auto after = std::upper_bound(sorted_.begin(), sorted_.end(), range, StartsBefore);
  if (after != sorted_.begin() && std::prev(after)->last >= range.first) return range.first;
  if (after != sorted_.end() && after->first <= range.last) return after->first;
  sorted_.insert(after, range);
  ranges_.push_back(range);
  starts_.push_back(count_);
  count_ += static_cast<std::uint64_t>(range.last - range.first) + 1;
  return std::nullopt;
}

std::int64_t SeedSet::At(std::uint64_t index) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
  const auto which = static_cast<std::size_t>(after - starts_.begin()) - 1;
  return ranges_[which].first + static_cast<std::int64_t>(index - starts_[which]);
}

bool SeedSet::Contains(std::int64_t seed) const { return CountIn({seed, seed}) > 0; }

std::uint64_t SeedSet::CountIn(Range range) const {
  std::uint64_t shared = 0;
  auto from = std::upper_bound(sorted_.begin(), sorted_.end(), range, StartsBefore);
  if (from != sorted_.begin()) --from;
  for (; from != sorted_.end() && from->first <= range.last; ++from) {
    const std::int64_t first = std::max(from->first, range.first);
    const std::int64_t last = std::min(from->last, range.last);
    if (first <= last) shared += static_cast<std::uint64_t>(last - first) + 1;
  }
  return shared;
}

bool SeedSet::Overlaps(const SeedSet& other) const {
  return std::any_of(other.sorted_.begin(), other.sorted_.end(),
                     [&](const Range& range) { return CountIn(range) > 0; });
}

bool SeedSet::Covers(const SeedSet& other) const {
  std::uint64_t shared = 0;
  for (const Range& range : other.sorted_) shared += CountIn(range);
  return shared == other.count();
}

std::vector<SeedSet::Range> SeedSet::Missing(Range range) const {
  std::vector<Range> missing;
  auto next = std::upper_bound(sorted_.begin(), sorted_.end(), range, StartsBefore);
  if (next != sorted_.begin()) --next;
  for (; next != sorted_.end() && next->first <= range.last; ++next) {
    if (next->last < range.first) continue;
    if (next->first > range.first) missing.push_back({range.first, next->first - 1});
    if (next->last >= range.last) return missing;
    range.first = next->last + 1;
  }
  missing.push_back(range);
  return missing;
}

SeedText ParseSeeds(std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::string_view first_text = text.substr(0, dots);
  const std::string_view last_text =
      dots == std::string_view::npos ? first_text : text.substr(dots + 2);
  const auto first = ParseSeed(first_text);
  const auto last = ParseSeed(last_text);
  if (!first || !last) return {std::nullopt, "not a seed"};
  if (*first > *last) {
    return {std::nullopt,
            "range " + std::string(text) + " is empty: the first must not exceed the last"};
  }
  return {SeedSet::Range{*first, *last}, ""};
}

}  // namespace pelab::experiment
