// Options of the attention problems in tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace pelab::trainer {

struct AttentionOptions {
  std::int64_t batch = 2, heads = 3, rows = 7, keys = 7, width = 16, value_width = 16;
  // Queries, keys and values are slices of (B, T, 3, H, d); rows = keys, width = value_width.
  bool one_projection = false;
  bool padded_rows = false;  // rows do not begin at multiples of four elements
  bool biases = false;
  bool turned = false, turned_apart = false, rotations_by_head = false;
  bool causal = false, lengths = false;
  enum Diagonal { kNone, kShared, kByHead } diagonal = kNone;
  bool slopes = false;
  enum Term { kNoTerm, kWhole, kRepeated } term = kNoTerm;
  double dropout = 0;
  bool keys_in_memory = false;
  std::uint32_t first = 0;
  // Positions of each sequence that are left out but count in the dropout's index.
  std::int64_t skipped = 0;

  std::string Text() const {
    std::string text = "B" + std::to_string(batch) + " H" + std::to_string(heads) + " T'" +
                       std::to_string(rows) + " T" + std::to_string(keys) + " w" +
                       std::to_string(width) + " d" + std::to_string(value_width);
    const auto add = [&](bool on, const char* name) {
      if (on) text += std::string(" ") + name;
    };
    add(one_projection, "one_projection");
    add(padded_rows, "padded_rows");
    add(biases, "biases");
    add(turned, "turned");
    add(turned_apart, "turned_apart");
    add(rotations_by_head, "turns_by_head");
    add(causal, "causal");
    add(lengths, "lengths");
    add(diagonal == kShared, "diagonal");
    add(diagonal == kByHead, "diagonal_by_head");
    add(slopes, "slopes");
    add(term == kWhole, "term");
    add(term == kRepeated, "repeated_term");
    add(dropout > 0, "dropout");
    add(keys_in_memory, "keys_in_memory");
    add(skipped > 0, "skipped");
    return text;
  }
};

inline AttentionOptions RandomAttentionOptions(std::mt19937* random) {
  const auto one_in = [&](int n) { return (*random)() % n == 0; };
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>((*random)() % n); };
  AttentionOptions o;
  o.batch = 1 + below(3);
  o.heads = 1 + below(5);
  o.keys = 1 + below(one_in(3) ? 140 : 40);
  o.rows = one_in(2) ? o.keys : 1 + below(o.keys);
  const std::int64_t widths[] = {4, 8, 10, 16, 16, 16, 32, 64};
  o.width = widths[below(8)];
  o.value_width = one_in(2) ? o.width : std::int64_t{1} << below(7);
  if (o.keys > 40) o.batch = o.heads = 1;  // the reference is slow
  o.one_projection = one_in(3) && o.rows == o.keys && o.width == o.value_width;
  o.padded_rows = !o.one_projection && one_in(4);
  o.biases = one_in(2);
  o.turned = one_in(2);
  o.turned_apart = one_in(2);
  o.rotations_by_head = one_in(2);
  o.causal = one_in(2);
  o.lengths = one_in(2);
  o.diagonal = static_cast<AttentionOptions::Diagonal>(below(3));
  o.slopes = one_in(3);
  o.term = one_in(3) ? static_cast<AttentionOptions::Term>(below(3)) : AttentionOptions::kNoTerm;
  o.dropout = one_in(2) ? 0.1 : 0;
  o.keys_in_memory = one_in(2);
  o.skipped = one_in(3) ? 1 + below(20) : 0;
  return o;
}

// Random options of a problem that tensor cores can compute.
inline AttentionOptions RandomTensorOptions(std::mt19937* random) {
  AttentionOptions o = RandomAttentionOptions(random);
  const std::int64_t widths[] = {16, 16, 32, 64};
  o.width = o.value_width = widths[(*random)() % 4];
  if (o.width == 32 && (*random)() % 2 == 0) o.value_width = 16;
  o.keys = std::min<std::int64_t>(o.keys, 128);
  o.rows = std::min(o.rows, o.keys);
  o.one_projection = o.rows == o.keys && o.width == o.value_width && (*random)() % 2 == 0;
  o.padded_rows = false;
  o.term = AttentionOptions::kNoTerm;
  return o;
}

}  // namespace pelab::trainer
