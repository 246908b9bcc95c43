// The places where a positional encoding may act. The decoder knows nothing else about it; a PE overrides what it needs,
// the defaults do nothing. One file a PE in this folder, one row in registry.cc.
//
// Letters: B batch, T positions, T' the last positions whose queries are computed, H heads, D model width, d = D/H head
// size, w width of queries and keys (d unless hook 4 says otherwise), i query position, j key position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/experiment/job.h"
#include "worker/trainer/config/config.h"
#include "worker/trainer/parameters/parameters.h"

namespace pelab::trainer {

// Queries, keys and values of one layer.
struct Projection {
  at::Tensor query;  // (B, T', H, w)
  at::Tensor key;    // (B, T, H, w)
  at::Tensor value;  // (B, T, H, d)
};

enum class Side { kQuery, kKey, kValue };

// Immutable after construction but for caches; used from one thread.
class PositionalEncoding {
 public:
  virtual ~PositionalEncoding() = default;

  // 1. What is added to the token embeddings: (T, D), or undefined for nothing.
  virtual at::Tensor InputTerm(std::int64_t /*length*/) { return {}; }

  // 2. What turns or scales queries and keys (kQuery, kKey): adjacent channels, taken as complex numbers, are multiplied
  // by the entry for their position, (at least max_len, 1 or H, w/2), complex, contiguous; undefined for nothing.
  virtual at::Tensor Turns(Side /*side*/) { return {}; }

  // 3. What is added to the logits for the distance between key and query: (1 or H, 2T-1), entry j - i + T - 1, or
  // undefined for nothing.
  virtual at::Tensor DistanceBias(std::int64_t /*layer*/, std::int64_t /*length*/) { return {}; }
  // … and to the keys or values (kKey, kValue) that a query sees at that distance, the same for every head: (2T-1, d), entry
  // j - i + T - 1, or undefined for nothing.
  virtual at::Tensor DistanceTerm(Side /*side*/, std::int64_t /*layer*/, std::int64_t /*length*/) {
    return {};
  }

  // 4. Where Projects() is true, Project replaces the projections of queries, keys and values; the decoder then declares
  // no weights for them, the PE does: `query_source` (B, T', D) holds the last T' positions, `kv_source` (B, T, D) all of
  // them. One of the two may hold no examples (B = 0) where the caller wants the other's result alone. With
  // `without_slice` = s, channels [s d, (s+1) d) of every latent enter the content projections as zeros: taking away
  // these input columns from the up-projections. Rotary queries still see the whole latent.
  virtual bool Projects() const { return false; }
  virtual Projection Project(std::int64_t /*layer*/, const at::Tensor& /*query_source*/,
                             const at::Tensor& /*kv_source*/,
                             std::optional<std::int64_t> /*without_slice*/) {
    return {};
  }
  // How many slices of d channels the latents have, the last perhaps narrower; 0: no latents. May exceed H.
  virtual std::int64_t LatentSlices() const { return 0; }
};

// What a PE is made from. It declares its parameters in `parameters`, which outlives it, and reads them through the
// handles only after they are materialised.
struct PeContext {
  const experiment::Job& job;
  const ModelConfig& config;
  ParameterSet* parameters;
};

std::unique_ptr<PositionalEncoding> MakeNope(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeAbsolute(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRandom(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRelative(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeShaw(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeAlibi(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRope(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeXpos(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakePartialRope(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeRopeAbs(const PeContext& context);
std::unique_ptr<PositionalEncoding> MakeMla(const PeContext& context);

}  // namespace pelab::trainer
