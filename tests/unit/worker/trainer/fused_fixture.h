// A fused operation in 32-bit floats against its plain version in 64-bit ones: outputs and all
// gradients.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/random_tensor_fixture.h"

namespace pelab::trainer {

// Leaves of autograd with the same values in either type.
inline std::vector<at::Tensor> LeavesOf(const std::vector<at::Tensor>& values,
                                        at::ScalarType type) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& value : values) {
    leaves.push_back(value.to(type).clone().set_requires_grad(true));
  }
  return leaves;
}

using LeavesFunction =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& leaves)>;

// Computes both ways, with random weights on the outputs, and expects that every output and
// gradient agrees.
inline void ExpectFusedAsPlain(const std::vector<at::Tensor>& values, const LeavesFunction& fused,
                               const LeavesFunction& plain, const std::string& what) {
  std::vector<at::Tensor> found[2];
  for (const bool is_fused : {false, true}) {
    const auto leaves = LeavesOf(values, is_fused ? at::kFloat : at::kDouble);
    const auto outputs = (is_fused ? fused : plain)(leaves);
    at::Tensor total;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      found[is_fused].push_back(outputs[i].detach());
      const at::Tensor direction =
          RandomTensor("direction" + std::to_string(i), outputs[i].sizes());
      const at::Tensor part = (outputs[i] * direction.to(outputs[i].scalar_type())).sum();
      total = total.defined() ? total + part : part;
    }
    total.backward();
    for (const at::Tensor& leaf : leaves) found[is_fused].push_back(leaf.grad());
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    EXPECT_LT(RelativeError(found[1][i], found[0][i]), kMostFloatError) << what << ", tensor " << i;
  }
}

}  // namespace pelab::trainer
