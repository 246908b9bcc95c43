// What the fuzz targets share: their promises about every answer, and pieces of an input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/utf8.h"

namespace pelab::fuzz {

// Ends the process if a promise is broken; libFuzzer then keeps the input.
inline void Require(bool holds, std::string_view promise, std::string_view found = "") {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s: %.*s\n", static_cast<int>(promise.size()), promise.data(),
               static_cast<int>(found.size()), found.data());
  std::abort();
}

// A refusal is a sentence that can be shown and sent.
inline void RequireSentence(absl::string_view sentence) {
  const std::string_view text(sentence.data(), sentence.size());
  Require(!text.empty(), "a refusal says why");
  Require(IsUtf8(text), "a refusal is UTF-8", text);
  Require(text.size() < 16 << 10, "a refusal is short", text);
}
// The same, and it is not one that blames pelab itself.
inline void RequireRefusal(const absl::Status& status) {
  Require(!absl::IsInternal(status) && !absl::IsUnknown(status),
          "bad input is not an internal error", status.ToString());
  RequireSentence(status.message());
}

// Takes an input apart from its front. Beyond the end there are zeros and empty texts.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  // Little-endian.
  std::uint32_t Number(int bytes) {
    std::uint32_t number = 0;
    const std::string_view taken = Bytes(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < taken.size(); ++i) {
      number |= std::uint32_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    }
    return number;
  }
  std::string_view Bytes(std::size_t most) {
    const std::string_view taken = rest_.substr(0, std::min(most, rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // A number of two bytes, then so many bytes.
  std::string_view Piece() {
    const std::uint32_t size = Number(2);
    return Bytes(size);
  }
  std::string_view Line() {
    const std::string_view line = Bytes(std::min(rest_.find('\n'), rest_.size()));
    Bytes(1);
    return line;
  }
  std::string_view Rest() { return Bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

#ifndef PELAB_LIBFUZZER
using InputFunction = int (*)(const std::uint8_t* data, std::size_t size);

// Makes the target `name` known to replay.cc. Returns true.
bool AddTarget(const char* name, InputFunction function);
#endif

}  // namespace pelab::fuzz

// PELAB_FUZZ_TARGET(name) {…} is what a target does with an input: `size` bytes at `data`. It
// returns 0. The preset `fuzz` makes a program of each target, whose function libFuzzer calls. All
// other builds have the targets in one program, by their names.
#ifdef PELAB_LIBFUZZER
#define PELAB_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define PELAB_FUZZ_TARGET(name)                                                \
  static int TryInput(const std::uint8_t* data, std::size_t size);             \
  static const bool target_is_known = pelab::fuzz::AddTarget(#name, TryInput); \
  static int TryInput(const std::uint8_t* data, std::size_t size)
#endif
