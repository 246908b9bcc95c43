// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1). Queries, keys and
// values are computed from latents of d_c channels. Position enters through r rotary channels
// beside the d content channels of each head.
//
//   c_q = norm(W_DQ x)      q_h = [W_UQ,h c_q + b | R_i W_QR,h c_q]
//   c_kv = norm(W_DKV y)    k_h = [W_UK,h c_kv + b | R_j W_KR y]          v_h = W_UV,h c_kv + b
//
// x is the query source and y is the source of keys and values. With `latent_norm`, norm is the
// root-mean-square norm; without it, norm is the identity. All heads share the rotary keys. With a
// shared rotary query, all heads also share one W_QR. The logit is q_h k_h / sqrt(d + r).
//
// R rotates adjacent pairs. With `sliced` (the authors' code), R is a table that is not a rotation
// (see SlicedRotations in tables.h); the logit then depends on i and j separately.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/trainer/operations/rms_norm.h"
#include "worker/trainer/operations/rotary_heads.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"

namespace pelab::trainer {
namespace {

constexpr double kNormEps = 1e-6;

class Mla : public PositionalEncoding {
 public:
  explicit Mla(const PeContext& context)
      : config_(context.config),
        parameters_(*context.parameters),
        latent_(context.job.Int("pe.latent")),
        rotary_(context.job.Int("pe.rotary")),
        base_(context.job.Real("pe.base")),
        rotary_queries_(context.job.Choice("pe.rotary_query") == "shared" ? 1
                                                                          : context.config.heads),
        sliced_(context.job.Choice("pe.rotation") == "sliced") {
    if (context.job.Bool("pe.input_table")) {
      input_table_ = context.parameters->Add("pe.table", {config_.max_len, config_.d_model},
                                             Init::Constant(0));
    }
    const bool norm = context.job.Bool("pe.latent_norm");
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      layers_.push_back(
          AddLayer(context.parameters, "layers." + std::to_string(layer) + ".attention.", norm));
    }
  }

  at::Tensor InputTerm(std::int64_t length) override {
    return input_table_ ? parameters_[*input_table_].narrow(-2, 0, length) : at::Tensor();
  }

  bool Projects() const override { return true; }
  std::int64_t LatentSlices() const override {
    return (latent_ + config_.head_dim() - 1) / config_.head_dim();
  }

  Projection Project(std::int64_t layer, const at::Tensor& query_source,
                     const at::Tensor& kv_source,
                     std::optional<std::int64_t> without_slice) override {
    const Layer& parts = layers_[layer];
    const auto [kv_latent, query_latent] = Latents(parts, query_source, kv_source);
    const at::Tensor query = Up(parts.query, WithoutSlice(query_latent, without_slice));
    const auto key_value =
        Up(parts.key_value, WithoutSlice(kv_latent, without_slice)).split(config_.d_model, -1);
    const at::Tensor rotary_query =
        ProductWith(query_latent, parameters_.Factor(parts.rotary_query));
    const at::Tensor rotary_key = ProductWith(kv_source, parameters_.Factor(parts.rotary_key));
    const std::int64_t first = kv_source.size(1) - query_source.size(1);
    return {Turned(query, rotary_query, first), Turned(key_value[0], rotary_key, 0),
            ByHead(key_value[1], config_.heads)};
  }

 private:
  struct Linear {
    ParameterSet::Handle weight;
    std::optional<ParameterSet::Handle> bias;
  };
  struct Layer {
    ParameterSet::Handle latents;  // (2 d_c, D): first for keys and values, then for queries
    std::vector<ParameterSet::Handle> norms;  // (d_c) each, in this order; empty: no norms
    Linear query;                             // (D, d_c)
    Linear key_value;                         // (2 D, d_c)
    ParameterSet::Handle rotary_key;          // (r, D)
    ParameterSet::Handle rotary_query;        // (r or H r, d_c)
  };

  Layer AddLayer(ParameterSet* to, const std::string& name, bool norm) const {
    const std::int64_t d = config_.d_model;
    const Init from_model = Init::Uniform(1 / std::sqrt(static_cast<double>(d)));
    const Init from_latent = Init::Uniform(1 / std::sqrt(static_cast<double>(latent_)));
    Layer layer;
    layer.latents = to->AddStack({name + "latent_kv.weight", name + "latent_query.weight"},
                                 {latent_, d}, from_model);
    if (norm) {
      for (const char* latent : {"latent_kv.norm", "latent_query.norm"})
        layer.norms.push_back(to->Add(name + latent, {latent_}, Init::Constant(1)));
    }
    layer.query.weight = to->Add(name + "query.weight", {d, latent_}, from_latent);
    layer.key_value.weight =
        to->AddStack({name + "key.weight", name + "value.weight"}, {d, latent_}, from_latent);
    if (config_.attention_bias) {
      layer.query.bias = to->Add(name + "query.bias", {d}, from_latent);
      layer.key_value.bias =
          to->AddStack({name + "key.bias", name + "value.bias"}, {d}, from_latent);
    }
    layer.rotary_key = to->Add(name + "rotary_key.weight", {rotary_, d}, from_model);
    layer.rotary_query =
        to->Add(name + "rotary_query.weight", {rotary_queries_ * rotary_, latent_}, from_latent);
    return layer;
  }

  // The latents of the keys and values (B, T, d_c) and those of the queries (B, T', d_c).
  std::pair<at::Tensor, at::Tensor> Latents(const Layer& parts, const at::Tensor& query_source,
                                            const at::Tensor& kv_source) const {
    const at::Tensor& weight = parameters_.Factor(parts.latents);
    if (query_source.is_same(kv_source)) {
      const auto both = Normed(parts, ProductWith(kv_source, weight), 0, 2);
      return {both[0], both[1]};
    }
    return {Normed(parts, ProductWith(kv_source, weight.narrow(-2, 0, latent_)), 0, 1)[0],
            Normed(parts, ProductWith(query_source, weight.narrow(-2, latent_, latent_)), 1, 1)[0]};
  }

  // The norms of the `count` latents in x, of which the first has norm `first`.
  std::vector<at::Tensor> Normed(const Layer& parts, const at::Tensor& x, std::size_t first,
                                 std::size_t count) const {
    if (parts.norms.empty()) return x.split(latent_, -1);
    std::vector<at::Tensor> gammas;
    for (std::size_t i = 0; i < count; ++i) gammas.push_back(parameters_[parts.norms[first + i]]);
    return RmsNorms(x, gammas, kNormEps);
  }

  at::Tensor WithoutSlice(const at::Tensor& latent, std::optional<std::int64_t> slice) const {
    if (!slice) return latent;
    const std::int64_t begin = *slice * config_.head_dim();
    at::Tensor rest = latent.clone();
    rest.narrow(-1, begin, std::min(config_.head_dim(), latent_ - begin)).zero_();
    return rest;
  }

  at::Tensor Up(const Linear& linear, const at::Tensor& latent) const {
    const at::Tensor product = ProductWith(latent, parameters_.Factor(linear.weight));
    return linear.bias
               ? AddByMember(product, ForRows(parameters_[*linear.bias]).to(product.scalar_type()))
               : product;
  }

  // Reshapes (B, T, n m) to (B, T, n, m).
  static at::Tensor ByHead(const at::Tensor& x, std::int64_t heads) {
    return x.view({x.size(0), x.size(1), heads, x.size(2) / heads});
  }

  // Appends to each head's content channels (B, T, H d) its rotary channels (B, T, r or H r),
  // turned to the positions from `first` on: (B, T, H, d + r).
  at::Tensor Turned(const at::Tensor& content, const at::Tensor& rotary, std::int64_t first) {
    if (!rotations_.defined()) {
      rotations_ = ToRotations(sliced_ ? SlicedRotations(config_.max_len, rotary_, base_)
                                       : RotaryRotations(config_.max_len, rotary_, base_),
                               config_.max_len, parameters_);
    }
    return RotaryHeadsOf(content, rotary, rotations_.narrow(0, first, content.size(1)),
                         config_.heads);
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  std::int64_t latent_;  // d_c
  std::int64_t rotary_;  // r
  double base_;
  std::int64_t rotary_queries_;  // 1 or H
  bool sliced_;
  std::optional<ParameterSet::Handle> input_table_;  // (max_len, D)
  std::vector<Layer> layers_;
  at::Tensor rotations_;  // (max_len, 1, r/2), complex
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeMla(const PeContext& context) {
  return std::make_unique<Mla>(context);
}

}  // namespace pelab::trainer
