// The places (hooks) where a positional encoding (PE) can act on the decoder. The decoder knows
// nothing else about the PE. A PE overrides the hooks that it needs; the defaults do nothing. Each
// PE has one row in registry.cc and its code in a file of this folder; rope.cc has the variants of
// RoPE as well. The PE `own` calls the methods of a TorchScript file in its hooks (own.cc).
//
// Letters: B batch, T positions, T' the number of last positions whose queries are computed, H
// heads, D model width, d = D/H head size, w width of queries and keys (d unless hook 4 changes
// it), i query position, j key position.
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

// With several members (parameters/members.h), a term that differs between them has a first
// dimension M, and the batch of hooks 4 to 6 has the examples of one member after those of another.
//
// Immutable after construction except for caches. Use it from one thread.
class PositionalEncoding {
 public:
  virtual ~PositionalEncoding() = default;

  // 1. The term that is added to the token embeddings: (T, D). Undefined: nothing is added.
  virtual at::Tensor InputTerm(std::int64_t /*length*/) { return {}; }

  // 2. The rotations (or scalings) of queries (kQuery) and keys (kKey). Adjacent channels, read as
  // complex numbers, are multiplied by the entry for their position: (at least max_len, 1 or H,
  // w/2), complex, contiguous. Undefined: no rotation.
  virtual at::Tensor Rotations(Side /*side*/) { return {}; }

  // 3. The bias that is added to the logits, by the distance between key and query: (1 or H, 2T-1),
  // entry j - i + T - 1, with the parameters' device and type. Undefined: nothing is added.
  virtual at::Tensor DistanceBias(std::int64_t /*layer*/, std::int64_t /*length*/) { return {}; }
  // The term that is added to the keys (kKey) or values (kValue) that a query sees at each
  // distance, the same for all heads: (2T-1, d), entry j - i + T - 1. Undefined: nothing is added.
  virtual at::Tensor DistanceTerm(Side /*side*/, std::int64_t /*layer*/, std::int64_t /*length*/) {
    return {};
  }

  // 4. If Projects() is true, Project computes the queries, keys and values, and the PE declares
  // the weights for them; the decoder then declares none. `query_source` (B, T', D) holds the last
  // T' positions, `kv_source` (B, T, D) all positions. Either source may hold no examples (B = 0)
  // if the caller wants only the result of the other.
  // With `without_slice` = s, channels [s d, (s+1) d) of every latent enter the content projections
  // as zeros. This equals removing these input columns from the up-projections. Rotary queries
  // still use the whole latent.
  virtual bool Projects() const { return false; }
  virtual Projection Project(std::int64_t /*layer*/, const at::Tensor& /*query_source*/,
                             const at::Tensor& /*kv_source*/,
                             std::optional<std::int64_t> /*without_slice*/) {
    return {};
  }
  // The number of slices of d channels in the latents; the last slice may be narrower. 0: there are
  // no latents. The number may exceed H.
  virtual std::int64_t LatentSlices() const { return 0; }

  // 5. If Transforms() is true, Transform maps the queries (kQuery) and keys (kKey) of a layer,
  // with their biases, before hook 2 rotates them: x (B, n, H, w), the last n of `length`
  // positions, to the same shape.
  virtual bool Transforms() const { return false; }
  virtual at::Tensor Transform(std::int64_t /*layer*/, Side /*side*/, const at::Tensor& x,
                               std::int64_t /*length*/) {
    return x;
  }

  // 6. If ChangesLogits() is true, ChangeLogits replaces the logits (B, H, T', T) after the scale
  // and all other terms, before the mask. It also gets the queries (B, H, T', w) and keys (B, H, T,
  // w) that were multiplied: with biases and rotated, without the scale.
  virtual bool ChangesLogits() const { return false; }
  virtual at::Tensor ChangeLogits(std::int64_t /*layer*/, const at::Tensor& /*query*/,
                                  const at::Tensor& /*key*/, const at::Tensor& logits) {
    return logits;
  }

  // 7. The factor of the attention weights, after the softmax and before dropout, by the distance
  // between key and query: (1 or H, 2T-1), entry j - i + T - 1. Undefined: no factor.
  virtual at::Tensor DistanceFactor(std::int64_t /*layer*/, std::int64_t /*length*/) { return {}; }
};

// The questions of `pelab check` to an encoding from a file. It tries the encoding under masks and
// read-outs that are not the job's, so that the needs of the file are not asked.
enum class Trial {
  kNone,
  kTried,
  kNamesMethods,  // and a method that gives NaN or infinity is an error that names it
};

// The inputs from which a PE is constructed. The PE declares its parameters in `parameters`, and
// reads them through the handles only after they are materialized. `config` and `parameters`
// outlive it; `job` need not.
struct PeContext {
  const experiment::Job& job;
  const ModelConfig& config;
  ParameterSet* parameters;
  Trial trial = Trial::kNone;
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
std::unique_ptr<PositionalEncoding> MakeOwn(const PeContext& context);

}  // namespace pelab::trainer
