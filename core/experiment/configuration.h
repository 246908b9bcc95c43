// Templates of configurations. Jobs that differ only in their seed share a template: their
// canonical spec with a mark in place of the seed. A mark also replaces the seed of a part
// (task.data_seed) if it equals the job's seed. Pure functions over text: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pelab::experiment {

// A control character, which JSON never contains unescaped.
inline constexpr char kSeedMark = '\x1f';

// `canonical_json` is a job's canonical spec, and `seed` is that job's seed.
std::string TemplateOf(std::string_view canonical_json, std::int64_t seed);

// The inverse: the canonical spec, byte for byte, of the job with this configuration and this seed.
std::string FillTemplate(std::string_view spec_template, std::int64_t seed);

}  // namespace pelab::experiment
