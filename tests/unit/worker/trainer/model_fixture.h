// A decoder with initialized parameters, its parameters by name, and batches, for tests with
// LibTorch.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/model/decoder.h"
#include "worker/trainer/operations/rotary_heads.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct TestModel {
  TestModel(experiment::Job of, std::int64_t classes, at::ScalarType dtype = at::kDouble)
      : job(std::move(of)),
        config(ModelConfigFrom(job, classes)),
        decoder(job, config, &parameters) {
    const bool rounded = dtype == at::kBFloat16;
    parameters.Materialize(job.seed, TestDevice(), rounded ? at::kFloat : dtype, rounded);
  }

  at::Tensor Parameter(const std::string& name) const {
    for (const auto& named : parameters.NamedTensors()) {
      if (named.name == name) return named.tensor;
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  // Fills every parameter, also frozen ones, by the formula of the golden scripts.
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

  experiment::Job job;
  ModelConfig config;
  ParameterSet parameters;
  Decoder decoder;
};

// An encoding with some of its fields set. The tests of all encodings loop over these.
struct Variant {
  std::string name;
  std::string pe;
  catalog::Values set;
};
inline std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << variant.name;
}

// The catalog's encodings with their defaults, and some with fields set.
inline std::vector<Variant> Variants() {
  const auto word = [](const char* value) { return catalog::Value(std::string(value)); };
  std::vector<Variant> variants = {
      {"absolute_learned", "absolute", {{"pe.form", word("learned")}}},
      {"shaw_values",
       "shaw",
       {{"pe.values", true}, {"pe.max_distance", std::int64_t{5}}, {"pe.init_std", 0.5}}},
      {"xpos", "xpos", {{"pe.scale_base", 20.0}}},
      {"partial_rope_list",
       "partial_rope",
       {{"pe.select", word("list")}, {"pe.head_list", std::vector<std::int64_t>{1}}}},
      {"mla_deepseek",
       "mla",
       {{"pe.rotary_query", word("per_head")},
        {"pe.rotation", word("rope")},
        {"pe.latent_norm", true},
        {"pe.input_table", false},
        {"pe.latent", std::int64_t{12}},
        {"pe.rotary", std::int64_t{4}}}},
      {"mla_authors",
       "mla",
       {{"pe.rotary_query", word("shared")},
        {"pe.rotation", word("sliced")},
        {"pe.latent_norm", false},
        {"pe.input_table", true},
        {"pe.latent", std::int64_t{10}},
        {"pe.rotary", std::int64_t{6}}}}};
  const auto is_there = [&](std::string_view name) {
    return std::any_of(variants.begin(), variants.end(),
                       [&](const Variant& variant) { return variant.name == name; });
  };
  for (const catalog::Entry& pe : catalog::Pes()) {
    if (!is_there(pe.name)) variants.push_back({std::string(pe.name), std::string(pe.name), {}});
  }
  return variants;
}

inline experiment::Job VariantJob(std::string_view protocol, const Variant& variant,
                                  const catalog::Values& set = {}) {
  catalog::Values values = variant.set;
  for (const auto& [field, value] : set) values[field] = value;
  return SmallJob(protocol, variant.pe, "distance", values);
}

// Queries or keys (B, T, H, w) of positions 0 … T-1 after the encoding's rotations.
inline at::Tensor Turned(PositionalEncoding* pe, Side side, const at::Tensor& x) {
  const at::Tensor rotations = pe->Rotations(side);
  return rotations.defined() ? TurnPairs(x, rotations.narrow(0, 0, x.size(1))) : x;
}

// The logits (B, H, T, T) that an encoding computes from one layer's queries and keys, (B, T, H, w)
// each, before masks. Terms that act on pairs are added by loops over positions.
inline at::Tensor PeLogits(PositionalEncoding* pe, std::int64_t layer, const at::Tensor& query,
                           const at::Tensor& key) {
  const std::int64_t length = query.size(1);
  const at::Tensor q = Turned(pe, Side::kQuery, query).transpose(1, 2);  // (B, H, T, w)
  const at::Tensor k = Turned(pe, Side::kKey, key).transpose(1, 2);
  const at::Tensor added = pe->DistanceTerm(Side::kKey, layer, length);
  const double root = std::sqrt(static_cast<double>(query.size(3)));
  at::Tensor logits = at::empty({q.size(0), q.size(1), length, length}, q.options());
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      const at::Tensor of_pair =
          added.defined() ? k.select(2, j) + added[j - i + length - 1] : k.select(2, j);
      logits.select(3, j).select(2, i).copy_((q.select(2, i) * of_pair).sum(-1) / root);
    }
  }
  const at::Tensor bias = pe->DistanceBias(layer, length);
  for (std::int64_t i = 0; bias.defined() && i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      logits.select(3, j).select(2, i).add_(bias.select(1, j - i + length - 1));
    }
  }
  return logits.detach();
}

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

// Random tokens of `vocabulary`. If `padded`, later rows are shorter and shorter.
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
