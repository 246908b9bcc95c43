// The dropout masks of one place in one step, for kernels: the mask of an element is a pure function of two keys and the
// element's index, the same bits on every device (FillDropoutMask fills whole masks of them).
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// As it stands: no dropout.
struct DropoutStream {
  std::uint32_t key0 = 0;
  std::uint32_t key1 = 0;
  std::uint32_t threshold = 0;  // of 2^32: how often an element is dropped
  float kept = 1;               // the factor of what is kept
  std::uint32_t first = 0;      // the index of the first element in the whole batch
  // Where the two keys lie instead, in the memory of the device that computes: of several members, or on CUDA for graphs,
  // whose arguments are frozen while the keys change.
  const std::uint32_t* keys = nullptr;
  std::int64_t member_keys = 0;  // words from one member's keys to the next's (members.h)
  // Of each sequence so many positions at its end are not computed, but indices count them (SkipPositions).
  std::uint32_t skipped = 0;
  std::uint32_t inverse = 0;  // 2^32 over the positions that are computed, rounded up
};

// Of each sequence only the first `positions`, more than one, are computed, and `skipped` more are not: those that are drop what they would if
// all were. Rows of (sequences, positions, …) may then be numbered below 2^32 / positions.
inline void SkipPositions(std::int64_t positions, std::int64_t skipped, DropoutStream* stream) {
  stream->skipped = static_cast<std::uint32_t>(skipped);
  stream->inverse =
      static_cast<std::uint32_t>(((std::int64_t{1} << 32) + positions - 1) / positions);
}

// Where row `row` of (sequences, positions, …) lies among the rows of all positions. A multiplication in place of a division,
// and no branch, for it stands in the way of a kernel's loads: row * inverse / 2^32 is row / positions and less than
// row / 2^32 more.
PELAB_HOST_DEVICE std::uint32_t DropoutRow(const DropoutStream& stream, std::int64_t row) {
  const auto at = static_cast<std::uint32_t>(row);
  const auto sequence = static_cast<std::uint32_t>(std::uint64_t{at} * stream.inverse >> 32);
  return at + sequence * stream.skipped;
}

// The stream with its keys at hand, wherever they lie.
PELAB_HOST_DEVICE DropoutStream WithKeys(DropoutStream stream) {
  if (stream.keys != nullptr) {
    stream.key0 = stream.keys[0];
    stream.key1 = stream.keys[1];
  }
  return stream;
}

PELAB_HOST_DEVICE DropoutStream MemberOf(DropoutStream stream, std::int64_t member) {
  if (stream.keys != nullptr) stream.keys += member * stream.member_keys;
  return stream;
}

// The 32 random bits of an element: a finaliser (two rounds of xor-shift and multiply after Wellons' "lowbias32") over its
// index, keyed at both ends. Word: std::uint32_t, or a vector of them.
template <class Word>
PELAB_HOST_DEVICE Word DropoutBits(std::uint32_t key0, std::uint32_t key1, Word index) {
  Word x = index ^ key0;
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x += key1;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  x *= 0x9e3779b1U;
  x ^= x >> 15;
  return x;
}

// 0 or `kept` for element `index` counted from `first`. Takes the keys in the struct (WithKeys).
PELAB_HOST_DEVICE float DropoutFactor(const DropoutStream& stream, std::uint32_t index) {
  const std::uint32_t bits = DropoutBits(stream.key0, stream.key1, stream.first + index);
  return bits < stream.threshold ? 0.0f : stream.kept;
}

}  // namespace pelab::trainer
