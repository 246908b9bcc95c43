#include "worker/trainer/model/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/trainer/model/attention.h"
#include "worker/trainer/pe/registry.h"

namespace pelab::trainer {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// (T, T): -inf where the key comes after the query.
at::Tensor CausalMask(std::int64_t length, const at::TensorOptions& options) {
  return at::full({length, length}, kMinusInfinity, options).triu(1);
}

// (B, T): true where the position holds a token.
at::Tensor TokenMask(const Batch& batch) {
  return at::arange(batch.tokens.size(1), batch.lengths.options()) < batch.lengths.unsqueeze(1);
}

}  // namespace

Decoder::Decoder(const spec::Job& job, const ModelConfig& config, ParameterSet* parameters,
                 std::unique_ptr<PositionalEncoding> pe)
    : config_(config), parameters_(*parameters), pe_(std::move(pe)) {
  embedding_ =
      parameters_.Add("embedding.weight", {config_.vocabulary, config_.d_model}, Init::Normal(1));
  if (pe_ == nullptr) pe_ = MakePe({job, config_, parameters});
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    layers_.push_back(AddLayer("layers." + std::to_string(layer)));
  }
  if (config_.final_norm) final_norm_ = AddNorm("final_norm");
  head_ = AddLinear("head", config_.classes, config_.d_model, true);
}

Decoder::Linear Decoder::AddLinear(const std::string& name, std::int64_t out, std::int64_t in,
                                   bool bias) {
  const Init init = Init::Uniform(1 / std::sqrt(static_cast<double>(in)));
  Linear linear{parameters_.Add(name + ".weight", {out, in}, init), std::nullopt};
  if (bias) linear.bias = parameters_.Add(name + ".bias", {out}, init);
  return linear;
}

Decoder::Norm Decoder::AddNorm(const std::string& name) {
  return {parameters_.Add(name + ".weight", {config_.d_model}, Init::Constant(1)),
          parameters_.Add(name + ".bias", {config_.d_model}, Init::Constant(0))};
}

Decoder::Layer Decoder::AddLayer(const std::string& name) {
  const std::int64_t d = config_.d_model;
  const std::string attention = name + ".attention.";
  const Init init = Init::Uniform(1 / std::sqrt(static_cast<double>(d)));
  Layer layer;
  layer.attention_norm = AddNorm(attention + "norm");
  if (!pe_->Projects()) {
    layer.qkv.weight = parameters_.AddStack(
        {attention + "query.weight", attention + "key.weight", attention + "value.weight"}, {d, d},
        init);
    if (config_.attention_bias) {
      layer.qkv.bias = parameters_.AddStack(
          {attention + "query.bias", attention + "key.bias", attention + "value.bias"}, {d}, init);
    }
  }
  layer.output = AddLinear(attention + "output", d, d, config_.attention_bias);
  layer.ffn_norm = AddNorm(name + ".ffn.norm");
  layer.ffn_in = AddLinear(name + ".ffn.in", config_.d_ff, d, true);
  layer.ffn_out = AddLinear(name + ".ffn.out", d, config_.d_ff, true);
  return layer;
}

at::Tensor Decoder::Apply(const Linear& linear, const at::Tensor& x) const {
  const at::Tensor& weight = parameters_[linear.weight];
  return linear.bias ? at::linear(x, weight, parameters_[*linear.bias]) : at::linear(x, weight);
}

at::Tensor Decoder::ApplyRows(const Linear& linear, const at::Tensor& x, std::int64_t begin,
                              std::int64_t count) const {
  const at::Tensor weight = parameters_[linear.weight].narrow(0, begin, count);
  if (!linear.bias) return at::linear(x, weight);
  return at::linear(x, weight, parameters_[*linear.bias].narrow(0, begin, count));
}

at::Tensor Decoder::Apply(const Norm& norm, const at::Tensor& x) const {
  return at::layer_norm(x, {config_.d_model}, parameters_[norm.weight], parameters_[norm.bias],
                        config_.layer_norm_eps);
}

bool Decoder::LastRowOnly(std::int64_t layer, const Batch& batch) const {
  return config_.readout == Readout::kLast && layer == config_.layers - 1 &&
         !batch.lengths.defined();
}

at::Tensor Decoder::Embed(const Batch& batch) const {
  const at::Tensor x = at::embedding(parameters_[embedding_], batch.tokens);
  const at::Tensor term = pe_->InputTerm(batch.tokens.size(1));
  return term.defined() ? x + term : x;
}

Projection Decoder::ProjectPlainly(const Layer& parts, const at::Tensor& query_source,
                                   const at::Tensor& kv_source) const {
  const std::int64_t d = config_.d_model;
  std::vector<at::Tensor> flat;  // q, k, v side by side
  if (query_source.is_same(kv_source)) {
    flat = Apply(parts.qkv, kv_source).split(d, -1);
  } else {
    flat = ApplyRows(parts.qkv, kv_source, d, 2 * d).split(d, -1);
    flat.insert(flat.begin(), ApplyRows(parts.qkv, query_source, 0, d));
  }
  for (at::Tensor& part : flat) {
    part = part.view({part.size(0), part.size(1), config_.heads, config_.head_dim()});
  }
  return {flat[0], flat[1], flat[2]};
}

Decoder::KeysValues Decoder::ProjectLayer(std::int64_t layer, const at::Tensor& x,
                                          const at::Tensor& input, const Batch& batch,
                                          std::optional<std::int64_t> without_slice) const {
  if (without_slice && (*without_slice < 0 || *without_slice >= LatentSlices())) {
    throw std::logic_error("the latents have no slice " + std::to_string(*without_slice));
  }
  const Layer& parts = layers_[layer];
  const std::int64_t length = x.size(1);
  const bool own = config_.kv_source == KvSource::kSelf;
  const bool last = LastRowOnly(layer, batch);
  const at::Tensor normed = own || !last ? Apply(parts.attention_norm, x)
                                         : Apply(parts.attention_norm, x.narrow(1, length - 1, 1));
  const at::Tensor query_source =
      last && own ? normed.narrow(1, length - 1, 1) : normed;  // (B, T', D)
  const at::Tensor& kv_source = own ? normed : input;          // (B, T, D)
  const Projection made = pe_->Projects()
                              ? pe_->Project(layer, query_source, kv_source, without_slice)
                              : ProjectPlainly(parts, query_source, kv_source);
  return {pe_->Rotate(Side::kQuery, layer, made.query, length - made.query.size(1)),
          pe_->Rotate(Side::kKey, layer, made.key, 0), made.value};
}

at::Tensor Decoder::LogitTerm(std::int64_t layer, std::int64_t rows, const Batch& batch,
                              const at::TensorOptions& options) const {
  const std::int64_t length = batch.tokens.size(1);
  at::Tensor term = pe_->LogitBias(layer, length);  // (H, T, T)
  if (term.defined()) term = term.narrow(1, length - rows, rows);
  if (config_.causal && rows > 1) {
    const at::Tensor mask = CausalMask(length, options).narrow(0, length - rows, rows);
    term = term.defined() ? term + mask : mask.unsqueeze(0);
  }
  if (batch.lengths.defined() && config_.mask_padding) {
    const at::Tensor mask =
        at::zeros({batch.tokens.size(0), 1, 1, length}, options)
            .masked_fill(TokenMask(batch).logical_not().unsqueeze(1).unsqueeze(1), kMinusInfinity);
    term = term.defined() ? term + mask : mask;
  }
  return term;
}

at::Tensor Decoder::Heads(std::int64_t layer, const KeysValues& projected, const Batch& batch,
                          const Dropout* dropout) const {
  const std::int64_t rows = projected.query_rows.size(1);
  const std::int64_t length = batch.tokens.size(1);
  AttentionInputs inputs{projected.query_rows, projected.key, projected.value};
  inputs.logit_term = LogitTerm(layer, rows, batch, projected.key.options().requires_grad(false));
  inputs.key_term = pe_->PairTerm(Side::kKey, layer, rows, length);
  inputs.value_term = pe_->PairTerm(Side::kValue, layer, rows, length);
  return Attend(inputs, layer, dropout);
}

at::Tensor Decoder::AfterAttention(std::int64_t layer, const at::Tensor& x, const at::Tensor& heads,
                                   const Dropout* dropout) const {
  at::Tensor out = Apply(layers_[layer].output, heads);
  if (dropout != nullptr) out = dropout->Apply(out, layer, DropoutSite::kOutput);
  return x.narrow(1, x.size(1) - heads.size(1), heads.size(1)) + out;
}

at::Tensor Decoder::HeadContribution(std::int64_t layer, std::int64_t head,
                                     const at::Tensor& heads) const {
  const std::int64_t d = config_.head_dim();
  const at::Tensor& weight = parameters_[layers_[layer].output.weight];  // (D, H d)
  return at::linear(heads.narrow(2, head * d, d), weight.narrow(1, head * d, d));
}

at::Tensor Decoder::AfterFeedForward(std::int64_t layer, const at::Tensor& x_mid,
                                     const Dropout* dropout) const {
  const Layer& parts = layers_[layer];
  at::Tensor inner = Apply(parts.ffn_in, Apply(parts.ffn_norm, x_mid));
  inner = config_.activation == Activation::kRelu ? at::relu(inner) : at::gelu(inner);
  if (dropout != nullptr) inner = dropout->Apply(inner, layer, DropoutSite::kFfnInner);
  at::Tensor out = Apply(parts.ffn_out, inner);
  if (dropout != nullptr) out = dropout->Apply(out, layer, DropoutSite::kFfn);
  return x_mid + out;
}

at::Tensor Decoder::ReadOut(const at::Tensor& x, const Batch& batch) const {
  at::Tensor pooled = x;  // (B, T', D) or (B, D)
  if (config_.readout == Readout::kLast) {
    pooled = batch.lengths.defined()
                 ? x.gather(1, (batch.lengths - 1).view({-1, 1, 1}).expand({-1, 1, x.size(2)}))
                       .squeeze(1)
                 : x.select(1, x.size(1) - 1);
  }
  if (final_norm_) pooled = Apply(*final_norm_, pooled);
  if (config_.readout == Readout::kMean ||
      (config_.readout == Readout::kMaskedMean && !batch.lengths.defined())) {
    pooled = pooled.mean(1);
  } else if (config_.readout == Readout::kMaskedMean) {
    const at::Tensor mask = TokenMask(batch).unsqueeze(2).to(x.scalar_type());
    pooled = (pooled * mask).sum(1) / batch.lengths.unsqueeze(1).to(x.scalar_type());
  }
  return Apply(head_, pooled);
}

at::Tensor Decoder::Logits(const Batch& batch, const Dropout* dropout) const {
  const at::Tensor input = Embed(batch);
  at::Tensor x = input;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const at::Tensor heads = Heads(layer, ProjectLayer(layer, x, input, batch), batch, dropout);
    x = AfterFeedForward(layer, AfterAttention(layer, x, heads, dropout), dropout);
  }
  return ReadOut(x, batch);
}

}  // namespace pelab::trainer
