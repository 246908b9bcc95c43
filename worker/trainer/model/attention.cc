#include "worker/trainer/model/attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "worker/trainer/operations/rotary_heads.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/parameters/torch_tensors.h"

namespace pelab::trainer {
namespace {

double LogitScale(const at::Tensor& query) {
  return 1 / std::sqrt(static_cast<double>(query.size(3)));
}

// Reshapes a bias (H w) to (H, w), and one of several members (M, H w) to (M, 1, H, w).
at::Tensor ByHead(const at::Tensor& bias, const at::Tensor& x) {
  const at::Tensor heads = bias.unflatten(-1, {x.size(2), x.size(3)}).to(x.scalar_type());
  return heads.dim() > 2 ? heads.unsqueeze(1) : heads;
}

// x (B, n, H, w), the last n of `positions` positions, with bias added and rotated.
at::Tensor Prepared(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& rotations,
                    std::int64_t positions) {
  at::Tensor with_bias = WithHeadBias(x, bias);
  if (!rotations.defined()) return with_bias;
  return TurnPairs(with_bias, rotations.narrow(0, positions - x.size(1), x.size(1)));
}

at::Tensor PreparedQuery(const AttentionInputs& inputs) {
  return Prepared(inputs.query, inputs.query_bias, inputs.query_rotations, inputs.key.size(1));
}

at::Tensor MatrixProduct(const at::Tensor& x, const at::Tensor& y) {
  return ProductOf(x, y, [](const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); });
}

// A separate matrix product for each query row i: x (B, H, T', m) and y (T', m, n) or (M, T', m, n)
// give (B, H, T', n).
at::Tensor ProductByRow(const at::Tensor& x, const at::Tensor& y) {
  const std::int64_t members = MembersOf(y, 3), each = x.size(0) / members;
  const at::Tensor apart = x.unflatten(0, {members, each});  // (M, B/M, H, T', m)
  const at::Tensor rows = apart.permute({0, 3, 1, 2, 4}).flatten(2, 3).flatten(0, 1);
  return MatrixProduct(rows, y.reshape({-1, y.size(-2), y.size(-1)}))
      .view({members, x.size(2), each, x.size(1), y.size(-1)})
      .permute({0, 2, 3, 1, 4})
      .flatten(0, 1);
}

// Expands entries by distance to (1 or H, T', T), and those of several members to (M, 1 or H, T',
// T).
at::Tensor ByPair(const at::Tensor& distance_bias, std::int64_t rows, std::int64_t keys) {
  return distance_bias.unfold(-1, keys, 1).flip(-2).narrow(-2, keys - rows, rows);
}

// Expands a term by distance (2T-1, n) to one by row and key (T', T, n). A term of several members
// has a first dimension M.
at::Tensor OfPairs(const at::Tensor& by_distance, std::int64_t rows, std::int64_t keys) {
  const at::TensorOptions longs = by_distance.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor last = at::arange(rows - 1, -1, -1, longs).unsqueeze(1);
  return LookUp(by_distance, at::arange(keys, longs) + last);
}

// True if the query does not see the key: (T', T) or (B, 1, T', T); undefined if it sees all.
at::Tensor Unseen(const AttentionInputs& inputs) {
  const std::int64_t rows = inputs.query.size(1), keys = inputs.key.size(1);
  const at::Tensor positions = at::arange(keys, inputs.key.options().dtype(at::kLong));
  at::Tensor unseen;
  if (inputs.causal) unseen = positions > positions.narrow(0, keys - rows, rows).unsqueeze(1);
  if (inputs.lengths.defined()) {
    const at::Tensor padding = positions >= inputs.lengths.view({-1, 1, 1, 1});
    unseen = unseen.defined() ? unseen.logical_or(padding) : padding;
  }
  return unseen;
}

}  // namespace

at::Tensor WithHeadBias(const at::Tensor& x, const at::Tensor& bias) {
  return bias.defined() ? AddByMember(x, ByHead(bias, x)) : x;
}

at::Tensor KeyDistanceLogits(const AttentionInputs& inputs) {
  if (!inputs.key_distance.defined()) return {};
  const at::Tensor query = PreparedQuery(inputs).transpose(1, 2) * LogitScale(inputs.query);
  const at::Tensor pairs = OfPairs(inputs.key_distance, query.size(2), inputs.key.size(1));
  return ProductByRow(query, pairs.transpose(-2, -1).to(query.scalar_type()));
}

at::Tensor AttendPlainly(const AttentionInputs& inputs, std::int64_t layer,
                         const Dropout* dropout) {
  const std::int64_t rows = inputs.query.size(1), keys = inputs.key.size(1);
  const at::Tensor unscaled = PreparedQuery(inputs).transpose(1, 2);  // (B, H, T', w)
  const at::Tensor query = unscaled * LogitScale(inputs.query);
  const at::Tensor key = Prepared(inputs.key, inputs.key_bias, inputs.key_rotations, keys);
  const at::Tensor value = Prepared(inputs.value, inputs.value_bias, {}, keys);
  at::Tensor logits = MatrixProduct(query, key.permute({0, 2, 3, 1}));  // (B, H, T', T)
  if (const at::Tensor term = KeyDistanceLogits(inputs); term.defined()) logits = logits + term;
  if (inputs.distance_bias.defined()) {
    const at::Tensor bias = ByPair(inputs.distance_bias, rows, keys);
    logits = AddByMember(logits, bias.to(logits.scalar_type()));
  }
  if (inputs.change_logits) {
    logits = inputs.change_logits(unscaled, key.transpose(1, 2), logits);
  }
  if (const at::Tensor unseen = Unseen(inputs); unseen.defined()) {
    logits = logits.masked_fill(unseen, -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights = at::softmax(logits, -1);
  if (inputs.distance_factor.defined()) {
    const at::Tensor factor = ByPair(inputs.distance_factor, rows, keys);
    weights = TimesByMember(weights, factor.to(weights.scalar_type()));
  }
  if (dropout != nullptr) weights = dropout->Apply(weights, layer, DropoutSite::kAttention);
  at::Tensor out = MatrixProduct(weights, value.transpose(1, 2));
  if (inputs.value_distance.defined()) {
    const at::Tensor pairs = OfPairs(inputs.value_distance, rows, keys);
    out = out + ProductByRow(weights, pairs.to(weights.scalar_type()));
  }
  return out.transpose(1, 2).flatten(2);
}

at::Tensor Attend(const AttentionInputs& inputs, std::int64_t layer, const Dropout* dropout) {
  return FusedAttentionFits(inputs) ? AttendFused(inputs, layer, dropout)
                                    : AttendPlainly(inputs, layer, dropout);
}

}  // namespace pelab::trainer
