// A materialised decoder, its parameters by name, and batches, for the tests that use LibTorch.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "tests/unit/trainer/jobs_for_test.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct TestModel {
  TestModel(spec::Job of, std::int64_t classes, at::ScalarType dtype = at::kDouble)
      : job(std::move(of)),
        config(ModelConfigFrom(job, classes)),
        decoder(job, config, &parameters) {
    parameters.Materialize(job.seed, at::kCPU, dtype);
  }

  at::Tensor Parameter(const std::string& name) const {
    for (const auto& named : parameters.NamedTensors()) {
      if (named.name == name) return named.tensor;
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  // Every parameter, frozen ones too, from the formula of the golden scripts.
  void FillByFormula() {
    for (const auto& named : parameters.NamedTensors()) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < named.tensor.numel(); ++i) {
        values.push_back(FormulaWeight(named.name, i));
      }
      at::Tensor to = named.tensor;
      to.copy_(at::tensor(values, at::kDouble).view(named.tensor.sizes()));
    }
  }

  spec::Job job;
  ModelConfig config;
  ParameterSet parameters;
  Decoder decoder;
};

inline at::Tensor Ints(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<std::int64_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return at::tensor(flat, at::kLong)
      .view({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())})
      .to(at::kInt);
}

// Nested lists of numbers as a flat tensor of doubles.
inline at::Tensor Flat(const nlohmann::json& values) {
  std::vector<double> flat;
  const std::function<void(const nlohmann::json&)> walk = [&](const nlohmann::json& value) {
    if (value.is_array()) {
      for (const auto& item : value) walk(item);
    } else {
      flat.push_back(value.get<double>());
    }
  };
  walk(values);
  return at::tensor(flat, at::kDouble);
}

inline double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() != b.numel()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0;
  const double most = (a.detach().to(at::kDouble).flatten() - b.detach().to(at::kDouble).flatten())
                          .abs()
                          .max()
                          .item<double>();
  return std::isnan(most) ? std::numeric_limits<double>::infinity() : most;
}

// Random tokens of `vocabulary`, the later rows ever shorter where `padded`.
inline Batch RandomBatch(std::int64_t examples, std::int64_t length, std::int64_t vocabulary,
                         bool padded) {
  CounterRandom random(11, "test/tokens");
  const at::Tensor tokens = at::empty({examples, length}, at::TensorOptions().dtype(at::kInt));
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < examples; ++b) {
    lengths.push_back(std::max<std::int64_t>(1, length - 2 * b));
    for (std::int64_t t = 0; t < length; ++t) {
      const bool pad = padded && t >= lengths.back();
      const auto word =
          5 + static_cast<int>(random.Below(static_cast<std::uint32_t>(vocabulary - 5)));
      tokens.data_ptr<int>()[b * length + t] = pad ? 0 : word;
    }
  }
  return {tokens, padded ? at::tensor(lengths, at::kLong) : at::Tensor()};
}

}  // namespace pelab::trainer
