// Counter-based random numbers: the value at (seed, purpose, stream, index) is a pure function of
// those four. A data set or a dropout mask is therefore the same on every device, LibTorch version
// and thread count, and checkpoints need no generator state.
//
// The generator is Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
// (SC'11), section 3.3: a keyed bijection of a 128-bit counter. The key is a mix of (seed,
// purpose), the counter is (index, stream).
//
// Standard library only, header-only. Every function is pure and thread-safe, except the members of
// CounterRandom that advance it (Next, Below, Uniform, Normal).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace pelab {

// One Philox4x32-10 block: `counter` (4 x 32 bits) under `key` (2 x 32 bits).
constexpr std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The finalizer of SplitMix64 (Steele et al., OOPSLA 2014): a bijection of 64 bits in which every
// input bit affects the whole output.
constexpr std::uint64_t Mix64(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// FNV-1a of a purpose's name. Code names purposes by words, so that two purposes cannot share a
// number by accident.
constexpr std::uint64_t PurposeId(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

// A sequence of random numbers addressed by index. Cheap to copy. `At` may be called in any order
// and from any thread; the members that advance the object need a copy for each thread.
class CounterRandom {
 public:
  // `stream` separates sequences with the same purpose, for example one stream per training
  // example.
  constexpr CounterRandom(std::uint64_t seed, std::string_view purpose, std::uint64_t stream = 0)
      : key_(Mix64(Mix64(seed + 0x9E3779B97F4A7C15) ^ PurposeId(purpose))), stream_(stream) {}

  // 64 random bits at `index`.
  constexpr std::uint64_t At(std::uint64_t index) const {
    const auto block = BlockAt(index >> 1);
    const int half = static_cast<int>(index & 1) * 2;
    return (std::uint64_t{block[half]} << 32) | block[half + 1];
  }

  // At(2 pair) and At(2 pair + 1) from one block: of each number the high half, then the low half.
  constexpr std::array<std::uint32_t, 4> BlockAt(std::uint64_t pair) const {
    return Philox4x32(
        {static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
        {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
  }

  // The next 64 bits of a walk through the sequence, starting at index 0.
  constexpr std::uint64_t Next() { return At(next_++); }

  // Uniform integer in [0, bound), bound >= 1, without bias: Lemire's multiply-and-reject ("Fast
  // Random Integer Generation in an Interval", 2019) on 32 bits, so bound < 2^32.
  constexpr std::uint32_t Below(std::uint32_t bound) {
    std::uint64_t product = (Next() >> 32) * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t threshold = (0u - bound) % bound;
      while (static_cast<std::uint32_t>(product) < threshold) product = (Next() >> 32) * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  // Uniform double in [0, 1) with 53 bits.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // A standard normal number by Box-Muller; each number uses two draws.
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return radius * std::cos(6.283185307179586476925286766559 * Uniform());
  }

 private:
  std::uint64_t key_;
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
};

}  // namespace pelab
