// The dropout masks of one place in one step, for kernels. The mask of an element is a pure
// function of two keys and the element's index, with the same bits on every device (FillDropoutMask
// writes whole masks).
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The default is no dropout.
struct DropoutStream {
  std::uint32_t key0 = 0;
  std::uint32_t key1 = 0;
  std::uint32_t threshold = 0;  // an element is dropped with probability threshold / 2^32
  float kept = 1;               // the factor of elements that are not dropped
  std::uint32_t first = 0;      // the index, in the whole batch, of the first element
  // If not null, the address of the two keys in the memory of the device that computes. Used for
  // several members, and on CUDA for graphs, whose arguments are fixed while the keys change.
  const std::uint32_t* keys = nullptr;
  std::int64_t member_keys = 0;  // words from one member's keys to those of the next (members.h)
  // The number of positions at the end of each sequence that are not computed. Indices count them
  // (SkipPositions).
  std::uint32_t skipped = 0;
  std::uint32_t inverse = 0;  // 2^32 divided by the number of computed positions, rounded up
};

// Declares that only the first `positions` (more than one) of each sequence are computed, and
// `skipped` more are not. The computed elements are dropped as if all were computed. Row numbers of
// (sequences, positions, …) must then be below 2^32 / positions.
inline void SkipPositions(std::int64_t positions, std::int64_t skipped, DropoutStream* stream) {
  stream->skipped = static_cast<std::uint32_t>(skipped);
  stream->inverse =
      static_cast<std::uint32_t>(((std::int64_t{1} << 32) + positions - 1) / positions);
}

// The number that row `row` of (sequences, positions, …) has among the rows of all positions. To
// avoid delaying the loads of a kernel, it uses a multiplication instead of a division, and no
// branch. row * inverse / 2^32 exceeds row / positions by less than row / 2^32.
PELAB_HOST_DEVICE std::uint32_t DropoutRow(const DropoutStream& stream, std::int64_t row) {
  const auto at = static_cast<std::uint32_t>(row);
  const auto sequence = static_cast<std::uint32_t>(std::uint64_t{at} * stream.inverse >> 32);
  return at + sequence * stream.skipped;
}

// The stream with its keys in the struct itself.
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

// The 32 random bits of an element: three rounds of xor-shift and multiply over its index, the
// first two with the constants of Wellons' "lowbias32". key0 enters before the first round, key1
// before the second multiplication. Word: std::uint32_t, or a vector of them.
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

// 0 or `kept` for element `index`, counted from `first`. Uses the keys in the struct (WithKeys).
PELAB_HOST_DEVICE float DropoutFactor(const DropoutStream& stream, std::uint32_t index) {
  const std::uint32_t bits = DropoutBits(stream.key0, stream.key1, stream.first + index);
  return bits < stream.threshold ? 0.0f : stream.kept;
}

}  // namespace pelab::trainer
