// What parameters start from. Values come from the counter-based generator at (seed, "init/" + name, index), so they are the
// same on every device and LibTorch version (docs/reproducibility.md, "Initial values"). No LibTorch.
//
// Pure functions over values: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pelab::trainer {

// The distribution of one parameter's elements, all independent.
struct Init {
  enum class Kind { kConstant, kUniform, kNormal, kBetween, kEach };
  Kind kind = Kind::kConstant;
  double scale = 0;  // the constant, the bound of U(-scale, scale), or the standard deviation
  double low = 0;    // kBetween: U[low, high)
  double high = 0;
  std::vector<double> values;             // kEach
  double (*transform)(double) = nullptr;  // null: none

  static Init Constant(double value) { return {Kind::kConstant, value, 0, 0, {}, nullptr}; }
  static Init Uniform(double bound) { return {Kind::kUniform, bound, 0, 0, {}, nullptr}; }
  static Init Normal(double deviation) { return {Kind::kNormal, deviation, 0, 0, {}, nullptr}; }
  // U[low, high): of a quantity that has no business on both sides of zero.
  static Init Between(double low, double high) {
    return {Kind::kBetween, 0, low, high, {}, nullptr};
  }
  // Element i, row by row, is values[i mod their number]: a value a head where heads are the last dimension. Draws nothing.
  static Init Each(std::vector<double> values) {
    return {Kind::kEach, 0, 0, 0, std::move(values), nullptr};
  }
  // The same, but each element is stored as f of what was drawn: where a model uses exp(w) to keep a quantity positive, Init of
  // the quantity Through(log).
  Init Through(double (*f)(double)) const {
    Init through = *this;
    through.transform = f;
    return through;
  }
};

// The first `count` elements of the parameter `name` of a model with this seed.
void DrawInitialValues(std::int64_t seed, const std::string& name, const Init& init,
                       std::int64_t count, double* out);

}  // namespace pelab::trainer
