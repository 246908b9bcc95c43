// The initial values of parameters. They come from the counter-based generator at (seed, "init/" +
// name, index), so they are the same on every device and LibTorch version (docs/reproducibility.md,
// "Initial values"). No LibTorch.
//
// Pure functions of values: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pelab::trainer {

// The distribution of the elements of one parameter. All elements are independent.
struct Init {
  enum class Kind { kConstant, kUniform, kNormal, kBetween, kEach, kOfSeed };
  Kind kind = Kind::kConstant;
  double scale = 0;  // the constant, the bound of U(-scale, scale) or the standard deviation
  double low = 0;    // kBetween: U[low, high)
  double high = 0;
  std::vector<double> values;                                     // kEach
  double (*transform)(double) = nullptr;                          // null: none
  std::function<std::vector<double>(std::int64_t seed)> of_seed;  // kOfSeed

  static Init Constant(double value) { return {Kind::kConstant, value, 0, 0, {}, nullptr, {}}; }
  static Init Uniform(double bound) { return {Kind::kUniform, bound, 0, 0, {}, nullptr, {}}; }
  static Init Normal(double deviation) { return {Kind::kNormal, deviation, 0, 0, {}, nullptr, {}}; }
  // U[low, high): for a quantity that must not take both signs.
  static Init Between(double low, double high) {
    return {Kind::kBetween, 0, low, high, {}, nullptr, {}};
  }
  // Element i, in row-major order, is values[i mod their number]: one value per head if heads are
  // the last dimension. Draws nothing.
  static Init Each(std::vector<double> values) {
    return {Kind::kEach, 0, 0, 0, std::move(values), nullptr, {}};
  }
  // All elements in row-major order, as a function of the model's seed. Draws nothing.
  static Init OfSeed(std::function<std::vector<double>(std::int64_t seed)> elements) {
    Init init;
    init.kind = Kind::kOfSeed;
    init.of_seed = std::move(elements);
    return init;
  }
  // The same distribution, but each element is stored as f of the drawn value. Example: a model
  // that uses exp(w) to keep a quantity positive gives w the distribution of the quantity with
  // Through(log).
  Init Through(double (*f)(double)) const {
    Init through = *this;
    through.transform = f;
    return through;
  }
};

// Computes the first `count` elements of the parameter `name` for a model with this seed. Throws
// std::logic_error if Init::OfSeed gives fewer.
void DrawInitialValues(std::int64_t seed, const std::string& name, const Init& init,
                       std::int64_t count, double* out);

}  // namespace pelab::trainer
