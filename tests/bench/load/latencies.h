// Latencies of one kind, in milliseconds, with quantiles. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pelab::load {

class Latencies {
 public:
  void Add(double ms) {
    values_.push_back(static_cast<float>(ms));
    sorted_ = false;
  }
  void Merge(const Latencies& other) {
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
    sorted_ = false;
  }
  // The same waits, each longer by `ms`.
  Latencies Later(double ms) const {
    Latencies later = *this;
    for (float& value : later.values_) value += static_cast<float>(ms);
    return later;
  }
  void Clear() { values_.clear(); }
  std::size_t count() const { return values_.size(); }

  // The value at quantile `q` (nearest rank, q from 0 to 1); 0 without values.
  double Quantile(double q) {
    if (values_.empty()) return 0;
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    const auto last = static_cast<double>(values_.size() - 1);
    return values_[static_cast<std::size_t>(q * last + 0.5)];
  }
  double Max() { return Quantile(1); }

 private:
  std::vector<float> values_;
  bool sorted_ = false;
};

}  // namespace pelab::load
