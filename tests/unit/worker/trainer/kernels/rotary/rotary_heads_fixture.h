// Problems for rotary_heads.h with random data, and what its formulas give in double.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <ostream>
#include <tuple>
#include <vector>

#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/rotary/rotary_heads.h"

namespace pelab::trainer {

struct RotaryHeadsOptions {
  std::int64_t sequences = 2, positions = 5;
  int heads = 3, width = 8, rotary_width = 8;
  bool shared = false;
  int after = 0;  // columns of each row of content that belong to others

  friend std::ostream& operator<<(std::ostream& to, const RotaryHeadsOptions& o) {
    return to << o.heads << " heads of " << o.width << " + " << o.rotary_width
              << (o.shared ? " shared" : "") << ", " << o.after << " after";
  }
};

// Shapes that take every path of the kernels: vectors and pairs, an odd width, rotary channels of a
// number of vectors that is no power of two or more than a warp's.
inline std::vector<RotaryHeadsOptions> RotaryHeadsShapes() {
  std::vector<RotaryHeadsOptions> shapes;
  for (const bool shared : {false, true}) {
    for (const auto& [heads, width, rotary] : std::vector<std::tuple<int, int, int>>{
             {3, 8, 8}, {16, 16, 16}, {1, 16, 32}, {4, 7, 2}, {2, 6, 6}, {5, 8, 24}, {2, 8, 288}}) {
      for (const int after : {0, 24, 1}) {
        shapes.push_back({.heads = heads,
                          .width = width,
                          .rotary_width = rotary,
                          .shared = shared,
                          .after = after});
      }
    }
  }
  return shapes;
}

// A problem with the memory that it points to.
template <class Element>
struct RotaryHeadsCase {
  explicit RotaryHeadsCase(const RotaryHeadsOptions& options)
      : o(options),
        rows(o.sequences * o.positions),
        stride(o.heads * o.width + o.after),
        channels((o.shared ? 1 : o.heads) * o.rotary_width),
        content(RandomElements<Element>(rows * stride, 1)),
        rotary(RandomElements<Element>(rows * channels, 2)),
        out(NotNumbers<Element>(rows * o.heads * (o.width + o.rotary_width))),
        to_out(RandomElements<Element>(static_cast<std::int64_t>(out.size()), 3)),
        to_content(NotNumbers<Element>(rows * stride)),
        to_rotary(NotNumbers<Element>(rows * channels)),
        rotations(RandomElements<float>(o.positions * o.rotary_width, 4)) {
    p.rows = rows, p.positions = o.positions;
    p.heads = o.heads, p.width = o.width, p.rotary_width = o.rotary_width, p.shared = o.shared;
    p.content = content.data(), p.content_stride = stride;
    p.rotary = rotary.data(), p.rotations = rotations.data(), p.out = out.data();
    g = {to_out.data(), to_content.data(), stride, to_rotary.data()};
  }
  RotaryHeadsCase(const RotaryHeadsCase&) = delete;
  RotaryHeadsCase& operator=(const RotaryHeadsCase&) = delete;

  std::complex<double> Rotation(std::int64_t row, int pair) const {
    const float* const at = &rotations[row % o.positions * o.rotary_width + 2 * pair];
    return {at[0], at[1]};
  }

  // Expects what the formulas give, and that the columns of others were not written.
  void ExpectForward() const {
    std::vector<double> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int head = 0; head < o.heads; ++head) {
        for (int c = 0; c < o.width; ++c)
          expected.push_back(ToFloat(content[row * stride + head * o.width + c]));
        const Element* const own = &rotary[row * channels + (o.shared ? 0 : head * o.rotary_width)];
        for (int pair = 0; pair < o.rotary_width / 2; ++pair) {
          const std::complex<double> turned =
              Rotation(row, pair) *
              std::complex<double>(ToFloat(own[2 * pair]), ToFloat(own[2 * pair + 1]));
          expected.push_back(turned.real());
          expected.push_back(turned.imag());
        }
      }
    }
    ExpectClose(out, expected, "out");
  }
  void ExpectBackward() const {
    std::vector<double> dcontent, drotary(rows * channels);
    std::vector<Element> found;
    const int head_width = o.width + o.rotary_width;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (int head = 0; head < o.heads; ++head) {
        const Element* const from = &to_out[(row * o.heads + head) * head_width];
        for (int c = 0; c < o.width; ++c) {
          dcontent.push_back(ToFloat(from[c]));
          found.push_back(to_content[row * stride + head * o.width + c]);
        }
        double* const to = &drotary[row * channels + (o.shared ? 0 : head * o.rotary_width)];
        for (int pair = 0; pair < o.rotary_width / 2; ++pair) {
          // out = w x: the gradient of x is conj(w) times that of out
          const std::complex<double> turned =
              std::conj(Rotation(row, pair)) *
              std::complex<double>(ToFloat(from[o.width + 2 * pair]),
                                   ToFloat(from[o.width + 2 * pair + 1]));
          to[2 * pair] += turned.real();
          to[2 * pair + 1] += turned.imag();
        }
      }
      for (int c = o.heads * o.width; c < stride; ++c)
        EXPECT_TRUE(std::isnan(ToFloat(to_content[row * stride + c]))) << row << ", " << c;
    }
    ExpectClose(found, dcontent, "to content");
    ExpectClose(to_rotary, drotary, "to rotary");
  }

  RotaryHeadsOptions o;
  std::int64_t rows, stride, channels;
  std::vector<Element> content, rotary, out, to_out, to_content, to_rotary;
  std::vector<float> rotations;
  RotaryHeads<Element> p;
  RotaryHeadsGradients<Element> g;
};

}  // namespace pelab::trainer
