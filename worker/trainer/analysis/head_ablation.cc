#include "worker/trainer/analysis/head_ablation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>

#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

// `batch` repeated for `times` variants, variant by variant: (times B, …).
Batch Repeat(const Batch& batch, std::int64_t times) {
  return {batch.tokens.repeat({times, 1}),
          batch.lengths.defined() ? batch.lengths.repeat({times}) : at::Tensor()};
}

// The heads' outputs with head `head` set to zero: (B, T', D).
at::Tensor WithoutHead(const Decoder& decoder, const at::Tensor& heads, std::int64_t head) {
  const std::int64_t d = decoder.config().head_dim();
  at::Tensor ablated = heads.clone();
  ablated.narrow(2, head * d, d).zero_();
  return ablated;
}

at::Tensor RunLayer(const Decoder& decoder, std::int64_t layer, const at::Tensor& x,
                    const at::Tensor& input, const Batch& batch) {
  const at::Tensor heads =
      decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr);
  return decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
}

// Calls `visit(layer, logits)` for every layer with (H B, C), head by head, and returns the intact logits (B, C).
at::Tensor FanOut(const Decoder& decoder, const Batch& batch, Hygiene hygiene,
                  const std::function<void(std::int64_t, const at::Tensor&)>& visit) {
  const std::int64_t layers = decoder.config().layers;
  const std::int64_t heads_count = decoder.config().heads;
  const at::Tensor input = decoder.Embed(batch);
  const Batch wide = Repeat(batch, heads_count);
  const at::Tensor wide_input = decoder.config().kv_source == KvSource::kInput
                                    ? input.repeat({heads_count, 1, 1})
                                    : at::Tensor();
  at::Tensor x = input;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const at::Tensor heads =
        decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr);
    const at::Tensor intact = decoder.AfterAttention(layer, x, heads, nullptr);
    std::vector<at::Tensor> variants;
    for (std::int64_t head = 0; head < heads_count; ++head) {
      variants.push_back(intact - decoder.HeadContribution(layer, head, heads));
    }
    at::Tensor fan = decoder.AfterFeedForward(layer, at::cat(variants), nullptr);
    for (std::int64_t later = layer + 1; later < layers; ++later) {
      fan = RunLayer(decoder, later, fan, wide_input, wide);
    }
    visit(layer, decoder.ReadOut(fan, wide));
    const at::Tensor& onward = hygiene == Hygiene::kAuthors ? variants.back() : intact;
    x = decoder.AfterFeedForward(layer, onward, nullptr);
  }
  return decoder.ReadOut(x, batch);
}

}  // namespace

HeadAblationOptions HeadAblationOptionsFrom(const spec::Analysis& analysis) {
  const auto choice = [&](const char* name) {
    return std::get<std::string>(analysis.parameters.at(name));
  };
  if (const std::string method = choice("head_ablation.method"); method != "zero") {
    throw TrainerError(ErrorKind::kBadSpec,
                       "this trainer has no head_ablation.method \"" + method + "\"; known: zero");
  }
  HeadAblationOptions options;
  options.hygiene =
      choice("head_ablation.hygiene") == "authors" ? Hygiene::kAuthors : Hygiene::kClean;
  options.all_data = choice("head_ablation.data") == "all";
  options.max_examples =
      std::get<std::int64_t>(analysis.parameters.at("head_ablation.max_examples"));
  return options;
}

HeadAblationResult AblateHeads(const Decoder& decoder, const DeviceData& data,
                               const HeadAblationOptions& options) {
  const at::NoGradGuard no_grad;
  const std::int64_t layers = decoder.config().layers;
  const std::int64_t heads = decoder.config().heads;
  const std::int64_t begin = options.all_data ? 0 : data.train_examples();
  const std::int64_t end =
      options.max_examples == 0 ? data.size() : std::min(data.size(), begin + options.max_examples);
  const std::int64_t most = ChunkExamples(decoder.config(), data.length(), heads);
  const std::int64_t ignored = data.ignored_class();
  std::vector<at::Tensor> correct(layers);  // (H), 64-bit, on the device
  for (std::int64_t at = begin; at < end; at += most) {
    ThrowIfStopped();
    const LabelledBatch batch = data.Range(at, std::min(end, at + most));
    FanOut(decoder, batch.inputs, options.hygiene,
           [&](std::int64_t layer, const at::Tensor& logits) {
             at::Tensor right = logits.argmax(1).view({heads, -1}).eq(batch.classes);
             if (ignored != kNoIgnoredClass) right = right.logical_and(batch.classes.ne(ignored));
             const at::Tensor counts = right.sum(1);
             correct[layer] = correct[layer].defined() ? correct[layer] + counts : counts;
           });
  }
  const Score intact = Evaluate(decoder, data, begin, end);
  HeadAblationResult result{intact.total, intact.correct, {}};
  for (const at::Tensor& counts : correct) {
    const at::Tensor host = counts.cpu();
    const std::int64_t* const first = host.data_ptr<std::int64_t>();
    result.correct.emplace_back(first, first + heads);
  }
  return result;
}

at::Tensor AblatedLogits(const Decoder& decoder, const Batch& batch, Hygiene hygiene) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> logits;
  FanOut(decoder, batch, hygiene, [&](std::int64_t, const at::Tensor& wide) {
    logits.push_back(wide.view({decoder.config().heads, -1, wide.size(1)}));
  });
  return at::stack(logits);
}

at::Tensor AblatedLogitsNaive(const Decoder& decoder, const Batch& batch, Hygiene hygiene) {
  const at::NoGradGuard no_grad;
  const std::int64_t layers = decoder.config().layers;
  const std::int64_t heads_count = decoder.config().heads;
  std::vector<at::Tensor> logits;
  for (std::int64_t ablated_layer = 0; ablated_layer < layers; ++ablated_layer) {
    for (std::int64_t head = 0; head < heads_count; ++head) {
      const at::Tensor input = decoder.Embed(batch);
      at::Tensor x = input;
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        at::Tensor heads =
            decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, batch), batch, nullptr);
        if (layer == ablated_layer) heads = WithoutHead(decoder, heads, head);
        if (hygiene == Hygiene::kAuthors && layer < ablated_layer) {
          heads = WithoutHead(decoder, heads, heads_count - 1);
        }
        x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr),
                                     nullptr);
      }
      logits.push_back(decoder.ReadOut(x, batch));
    }
  }
  return at::stack(logits).view({layers, heads_count, logits[0].size(0), logits[0].size(1)});
}

}  // namespace pelab::trainer
