#include "worker/trainer/config/config.h"

#include <string>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

constexpr const char* kSiteNames[kDropoutSites] = {"attention", "output", "ffn_inner", "ffn"};

Readout ReadoutFrom(const std::string& name) {
  if (name == "masked_mean") return Readout::kMaskedMean;
  return name == "mean" ? Readout::kMean : Readout::kLast;
}

// An own encoding with one of these methods needs the plain attention.
bool KeepsLogits(const experiment::Job& job) {
  return job.HasField("pe.methods") &&
         (job.Has("pe.methods", "pair_bias") || job.Has("pe.methods", "logits") ||
          job.Has("pe.methods", "distance_factor"));
}

}  // namespace

ModelConfig ModelConfigFrom(const experiment::Job& job, std::int64_t classes) {
  ModelConfig config;
  config.layers = job.Int("model.layers");
  config.heads = job.Int("model.heads");
  config.d_model = job.Int("model.d_model");
  config.d_ff = job.Int("model.d_ff");
  config.max_len = job.Int("model.max_len");
  config.vocabulary = job.Int("task.vocabulary");
  config.classes = classes;
  config.dropout = job.Real("model.dropout");
  for (int site = 0; site < kDropoutSites; ++site) {
    config.dropout_at[site] = job.Has("model.dropout_sites", kSiteNames[site]);
  }
  config.activation =
      job.Choice("model.activation") == "relu" ? Activation::kRelu : Activation::kGelu;
  config.attention_bias = job.Bool("model.attention_bias");
  config.layer_norm_eps = job.Real("model.layer_norm_eps");
  config.causal = job.Choice("model.mask") == "causal";
  config.mask_padding = job.Choice("model.key_padding") == "masked";
  config.kv_source = job.Choice("model.kv_source") == "self" ? KvSource::kSelf : KvSource::kInput;
  config.readout =
      job.HasField("model.readout") ? ReadoutFrom(job.Choice("model.readout")) : Readout::kEach;
  config.final_norm = job.Bool("model.final_norm");
  config.keeps_logits = KeepsLogits(job);
  config.pe_reads_length = job.pe == catalog::OwnPe().name;
  if (config.d_model % config.heads != 0) {
    throw TrainerError(ErrorKind::kBadSpec, "model.d_model " + std::to_string(config.d_model) +
                                                " is not divisible by model.heads " +
                                                std::to_string(config.heads));
  }
  return config;
}

}  // namespace pelab::trainer
