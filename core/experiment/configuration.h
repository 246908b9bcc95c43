// What jobs have in common that differ in nothing but their seed: their canonical spec with a mark in
// place of the seed, and of every part's seed (task.data_seed) that has the same value. Pure functions
// over text: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pelab::experiment {

// A character that JSON never contains as it is.
inline constexpr char kSeedMark = '\x1f';

// `canonical_json` is a job's canonical spec, and `seed` that job's.
std::string TemplateOf(std::string_view canonical_json, std::int64_t seed);

// The inverse: the canonical spec, byte for byte, of the configuration's job with this seed.
std::string FillTemplate(std::string_view spec_template, std::int64_t seed);

}  // namespace pelab::experiment
