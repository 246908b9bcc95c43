// The four places where a positional encoding may act. The decoder knows nothing else about it; a PE overrides what it
// needs, the defaults do nothing. One file a PE in this folder, one row in registry.cc.
//
// Letters: B batch, T positions, H heads, D model width, d = D/H, i query position, j key position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/spec/canonical.h"
#include "worker/trainer/model/config.h"
#include "worker/trainer/model/parameters.h"

namespace pelab::trainer {

// Queries, keys and values of one layer, each (B, T, H, d); queries may cover the last positions alone.
struct Projection {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

enum class Side { kQuery, kKey };

// Immutable after construction but for caches; used from one thread.
class PositionalEncoding {
 public:
  virtual ~PositionalEncoding() = default;

  // 1. What is added to the token embeddings: (T, D), or undefined for nothing.
  virtual at::Tensor InputTerm(std::int64_t /*length*/) { return {}; }

  // 2. What rotates or scales queries and keys: (B, T', H, d) of positions first … first+T'-1 to the same shape.
  virtual at::Tensor Rotate(Side /*side*/, std::int64_t /*layer*/, const at::Tensor& x,
                            std::int64_t /*first*/) {
    return x;
  }

  // 3. What is added to the logits: (H, T, T) by [head, query, key], or undefined for nothing.
  virtual at::Tensor LogitBias(std::int64_t /*layer*/, std::int64_t /*length*/) { return {}; }

  // 4. What replaces the projections of queries, keys and values: `query_source` (B, T', D) holds the last T' positions,
  // `kv_source` (B, T, D) all of them. The decoder's own projections are used where this gives nothing.
  virtual std::optional<Projection> Project(std::int64_t /*layer*/,
                                            const at::Tensor& /*query_source*/,
                                            const at::Tensor& /*kv_source*/) {
    return std::nullopt;
  }
};

// What a PE is made from. It declares its parameters in `parameters`, which outlives it, and reads them through the
// handles only after they are materialised.
struct PeContext {
  const spec::Job& job;
  const ModelConfig& config;
  ParameterSet* parameters;
};

std::unique_ptr<PositionalEncoding> MakeNope(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeAbsolute(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRandom(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRelative(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeAlibi(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRope(const PeContext& context);

}  // namespace pelab::trainer
