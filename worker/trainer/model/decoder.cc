#include "worker/trainer/model/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker/trainer/model/attention.h"
#include "worker/trainer/parameters/members.h"
#include "worker/trainer/pe/registry.h"

namespace pelab::trainer {
namespace {

// (B, T): true at positions that hold a token.
at::Tensor TokenMask(const Batch& batch) {
  return at::arange(batch.tokens.size(1), batch.lengths.options()) < batch.lengths.unsqueeze(1);
}

// Splits one product (B, T, 3, H, d) into queries, keys and values.
Decoder::KeysValues Parted(const at::Tensor& packed) {
  const std::vector<at::Tensor> parts = packed.unbind(2);
  return {parts[0], parts[1], parts[2], packed, {}};
}

// Combines queries with the keys and values of one product (B, T, 2, H, d).
Decoder::KeysValues Joined(const at::Tensor& query, const at::Tensor& key_value) {
  const std::vector<at::Tensor> parts = key_value.unbind(2);
  return {query, parts[0], parts[1], {}, key_value};
}

}  // namespace

Decoder::Decoder(const experiment::Job& job, const ModelConfig& config, ParameterSet* parameters,
                 Trial trial)
    : config_(config), parameters_(*parameters) {
  embedding_ =
      parameters_.Add("embedding.weight", {config_.vocabulary, config_.d_model}, Init::Normal(1));
  pe_ = MakePe({job, config_, parameters, trial});
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
  at::Tensor product = Product(linear, x);
  if (!linear.bias) return product;
  const at::Tensor bias = parameters_[*linear.bias].to(product.scalar_type());
  return AddByMember(product, product.dim() > 2 ? ForRows(bias) : bias);
}

at::Tensor Decoder::Product(const Linear& linear, const at::Tensor& x) const {
  return ProductWith(x, parameters_.Factor(linear.weight));
}

at::Tensor Decoder::BiasOf(const Linear& linear) const {
  return linear.bias ? parameters_[*linear.bias] : at::Tensor();
}

NormWeights Decoder::WeightsOf(const Norm& norm) const {
  return {parameters_[norm.weight], parameters_[norm.bias], config_.layer_norm_eps};
}

at::Tensor Decoder::Normed(const Norm& norm, const Residual& x) const {
  return x.normed.defined() ? x.normed : pelab::trainer::Norm(x.x, WeightsOf(norm));
}

bool Decoder::LastRowOnly(std::int64_t layer, const Batch& batch) const {
  return config_.readout == Readout::kLast && layer == config_.layers - 1 &&
         !batch.lengths.defined();
}

at::Tensor Decoder::Embed(const Batch& batch) const {
  const at::Tensor x = LookUpOwn(parameters_.Factor(embedding_), batch.tokens);
  const at::Tensor term = pe_->InputTerm(batch.tokens.size(1));
  return term.defined() ? AddByMember(x, term.to(x.scalar_type())) : x;
}

at::Tensor Decoder::ByHead(const at::Tensor& x, std::int64_t count) const {
  return x.view({x.size(0), x.size(1), count, config_.heads, config_.head_dim()});
}

Decoder::KeysValues Decoder::ProjectPlainly(const Layer& parts, const at::Tensor& query_source,
                                            const at::Tensor& kv_source) const {
  const at::Tensor& weight = parameters_.Factor(parts.qkv.weight);
  if (query_source.is_same(kv_source)) return Parted(ByHead(ProductWith(kv_source, weight), 3));
  const auto weights = weight.split_with_sizes({config_.d_model, 2 * config_.d_model}, -2);
  return Joined(ByHead(ProductWith(query_source, weights[0]), 1).squeeze(2),
                ByHead(ProductWith(kv_source, weights[1]), 2));
}

std::vector<at::Tensor> Decoder::ProjectInput(const at::Tensor& input) const {
  if (config_.kv_source != KvSource::kInput || pe_->Projects()) return {};
  std::vector<at::Tensor> weights;
  for (const Layer& parts : layers_) {
    const at::Tensor& weight = parameters_.Factor(parts.qkv.weight);
    weights.push_back(weight.narrow(-2, config_.d_model, 2 * config_.d_model));
  }
  const at::Tensor all = ByHead(ProductWith(input, at::cat(weights, -2)), 2 * config_.layers);
  return all.view({all.size(0), all.size(1), config_.layers, 2, all.size(3), all.size(4)})
      .unbind(2);
}

Decoder::KeysValues Decoder::ProjectQueries(std::int64_t layer, const Residual& x,
                                            const at::Tensor& key_value, const Batch& batch) const {
  const Layer& parts = layers_[layer];
  const at::Tensor weight = parameters_.Factor(parts.qkv.weight).narrow(-2, 0, config_.d_model);
  return Joined(ByHead(ProductWith(QuerySource(layer, x, batch), weight), 1).squeeze(2), key_value);
}

at::Tensor Decoder::QuerySource(std::int64_t layer, const Residual& x, const Batch& batch) const {
  const at::Tensor normed = Normed(layers_[layer].attention_norm, x);
  return LastRowOnly(layer, batch) ? normed.narrow(1, normed.size(1) - 1, 1) : normed;
}

Decoder::KeysValues Decoder::ProjectLayer(std::int64_t layer, const Residual& x,
                                          const at::Tensor& input, const Batch& batch,
                                          std::optional<std::int64_t> without_slice) const {
  if (without_slice && (*without_slice < 0 || *without_slice >= LatentSlices())) {
    throw std::logic_error("the latents have no slice " + std::to_string(*without_slice));
  }
  const Layer& parts = layers_[layer];
  // Unless only the last row is needed or keys and values come from the input, both sources are the
  // same tensor.
  const at::Tensor query_source = QuerySource(layer, x, batch);  // (B, T', D)
  at::Tensor kv_source = input;                                  // (B, T, D)
  if (config_.kv_source == KvSource::kSelf) {
    kv_source = LastRowOnly(layer, batch) ? Normed(parts.attention_norm, x) : query_source;
  }
  if (!pe_->Projects()) return ProjectPlainly(parts, query_source, kv_source);
  const Projection made = pe_->Project(layer, query_source, kv_source, without_slice);
  return {made.query, made.key, made.value, {}, {}};
}

void Decoder::Transform(std::int64_t layer, std::int64_t length, AttentionInputs* inputs) const {
  inputs->query =
      pe_->Transform(layer, Side::kQuery, WithHeadBias(inputs->query, inputs->query_bias), length);
  inputs->key =
      pe_->Transform(layer, Side::kKey, WithHeadBias(inputs->key, inputs->key_bias), length);
  inputs->query_bias = inputs->key_bias = at::Tensor();
  inputs->packed = inputs->packed_key_value = at::Tensor();
}

at::Tensor Decoder::Heads(std::int64_t layer, const KeysValues& projected, const Batch& batch,
                          const Dropout* dropout) const {
  const std::int64_t rows = projected.query_rows.size(1);
  const std::int64_t length = batch.tokens.size(1);
  AttentionInputs inputs{projected.query_rows, projected.key, projected.value, projected.packed,
                         projected.packed_key_value};
  const Linear& qkv = layers_[layer].qkv;
  if (!pe_->Projects() && qkv.bias) {
    const auto biases = parameters_[*qkv.bias].split(config_.d_model, -1);
    inputs.query_bias = biases[0];
    inputs.key_bias = biases[1];
    inputs.value_bias = biases[2];
  }
  if (pe_->Transforms()) Transform(layer, length, &inputs);
  inputs.query_rotations = pe_->Rotations(Side::kQuery);
  inputs.key_rotations = pe_->Rotations(Side::kKey);
  inputs.distance_bias = pe_->DistanceBias(layer, length);
  inputs.key_distance = pe_->DistanceTerm(Side::kKey, layer, length);
  inputs.value_distance = pe_->DistanceTerm(Side::kValue, layer, length);
  if (pe_->ChangesLogits()) {
    inputs.change_logits = [this, layer](const at::Tensor& query, const at::Tensor& key,
                                         const at::Tensor& logits) {
      return pe_->ChangeLogits(layer, query, key, logits);
    };
  }
  inputs.distance_factor = pe_->DistanceFactor(layer, length);
  inputs.causal = config_.causal && rows > 1;
  if (config_.mask_padding) inputs.lengths = batch.lengths;
  return Attend(inputs, layer, dropout);
}

Residual Decoder::AfterAttention(std::int64_t layer, const Residual& x, const at::Tensor& heads,
                                 const Dropout* dropout) const {
  const Layer& parts = layers_[layer];
  const std::int64_t rows = heads.size(1);
  const NormWeights norm = WeightsOf(parts.ffn_norm);
  return AddProduct(x.x.narrow(1, x.x.size(1) - rows, rows), Product(parts.output, heads),
                    BiasOf(parts.output), &norm, {dropout, layer, DropoutSite::kOutput});
}

Residual Decoder::WithoutHeads(std::int64_t layer, const at::Tensor& x_mid, const at::Tensor& heads,
                               const std::vector<std::int64_t>& of) const {
  const Layer& parts = layers_[layer];
  const std::int64_t d = config_.head_dim();
  const at::Tensor& weight = parameters_.Factor(parts.output.weight);  // (D, H d)
  std::vector<std::int64_t> sizes = heads.sizes().vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(of.size()));
  const at::Tensor contributions = at::empty(sizes, heads.options());
  for (std::size_t i = 0; i < of.size(); ++i) {
    contributions.select(0, static_cast<std::int64_t>(i))
        .copy_(ProductWith(heads.narrow(2, of[i] * d, d), weight.narrow(1, of[i] * d, d)));
  }
  return TakeAway(x_mid, contributions.flatten(0, 1), WeightsOf(parts.ffn_norm));
}

Residual Decoder::AfterFeedForward(std::int64_t layer, const Residual& x_mid,
                                   const Dropout* dropout) const {
  const Layer& parts = layers_[layer];
  const at::Tensor inner =
      BiasActivate(Product(parts.ffn_in, Normed(parts.ffn_norm, x_mid)), BiasOf(parts.ffn_in),
                   config_.activation, {dropout, layer, DropoutSite::kFfnInner});
  const bool last = layer + 1 == config_.layers;
  NormWeights norm;
  if (!last) norm = WeightsOf(layers_[layer + 1].attention_norm);
  if (last && final_norm_) norm = WeightsOf(*final_norm_);
  return AddProduct(x_mid.x, Product(parts.ffn_out, inner), BiasOf(parts.ffn_out),
                    norm.gamma.defined() ? &norm : nullptr, {dropout, layer, DropoutSite::kFfn});
}

at::Tensor Decoder::ReadOut(const Residual& x, const Batch& batch) const {
  at::Tensor pooled = final_norm_ ? Normed(*final_norm_, x) : x.x;  // (B, T', D) or (B, D)
  if (config_.readout == Readout::kEach) {
    pooled = pooled.flatten(0, 1);
  } else if (config_.readout == Readout::kLast) {
    pooled =
        batch.lengths.defined()
            ? pooled.gather(1, (batch.lengths - 1).view({-1, 1, 1}).expand({-1, 1, pooled.size(2)}))
                  .squeeze(1)
            : pooled.select(1, pooled.size(1) - 1);
  } else if (config_.readout == Readout::kMean || !batch.lengths.defined()) {
    pooled = pooled.mean(1);
  } else {
    const at::Tensor mask = TokenMask(batch).unsqueeze(2).to(pooled.scalar_type());
    pooled = (pooled * mask).sum(1) / batch.lengths.unsqueeze(1).to(pooled.scalar_type());
  }
  return Apply(head_, pooled);
}

at::Tensor Decoder::Logits(const Batch& batch, const Dropout* dropout) const {
  const at::Tensor input = Embed(batch);
  const std::vector<at::Tensor> shared = ProjectInput(input);
  Residual x = input;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const KeysValues projected = shared.empty() ? ProjectLayer(layer, x, input, batch)
                                                : ProjectQueries(layer, x, shared[layer], batch);
    const at::Tensor heads = Heads(layer, projected, batch, dropout);
    x = AfterFeedForward(layer, AfterAttention(layer, x, heads, dropout), dropout);
  }
  return ReadOut(x, batch);
}

}  // namespace pelab::trainer
