// Tensors for tests of kernels: random, in the storage type, and compared in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "worker/trainer/kernels/bf16.h"

namespace pelab::trainer {

// Normally distributed numbers.
template <class Element>
std::vector<Element> RandomElements(std::int64_t count, unsigned seed, float size = 1,
                                    float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, size);
  std::vector<Element> elements(count);
  for (Element& element : elements) SetElement(&element, normal(random));
  return elements;
}

// NaNs, to be overwritten by results.
template <class Element>
std::vector<Element> NotNumbers(std::int64_t count) {
  std::vector<Element> elements(count);
  for (Element& element : elements) SetElement(&element, std::numeric_limits<float>::quiet_NaN());
  return elements;
}

template <class Element>
std::vector<double> AsDoubles(const std::vector<Element>& elements) {
  std::vector<double> doubles;
  for (const Element element : elements) doubles.push_back(ToFloat(element));
  return doubles;
}

// The tolerance for results that are stored as Element.
template <class Element>
constexpr double kTolerance = 1e-5;
template <>
inline constexpr double kTolerance<Bf16> = 1e-2;

// Expects that the largest difference is at most `tolerance` times the largest number.
template <class Element>
void ExpectClose(const std::vector<Element>& found, const std::vector<double>& expected,
                 const char* what, double tolerance = kTolerance<Element>) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 1e-30, difference = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(ToFloat(found[i]) - expected[i]);
    if (!(here <= difference)) difference = here, worst = i;
  }
  EXPECT_LE(difference, tolerance * largest)
      << what << "[" << worst << "] is " << ToFloat(found[worst]) << ", not " << expected[worst];
}

}  // namespace pelab::trainer
