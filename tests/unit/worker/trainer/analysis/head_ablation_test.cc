// Head ablation. The shared computation is compared with one whole pass per entry, both with
// removing the head from the weights, and the counts with plain loops over examples.
#include "worker/trainer/analysis/head_ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/analysis.h"
#include "tests/unit/worker/trainer/analysis/ablation_fixture.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/train/evaluate.h"

namespace pelab::trainer {
namespace {

struct Setting {
  std::string protocol;
  std::string pe;
  catalog::Values set;
  bool padded;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  out << setting.protocol << " " << setting.pe << ", padded " << setting.padded;
  for (const auto& [field, value] : setting.set) {
    out << ", " << field << " " << catalog::ToText(value);
  }
  return out;
}

// Every encoding under both protocols' masks, with both sources of keys and values and every
// readout.
std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const PeEntry& pe : PeRegistry()) {
    for (const char* protocol : {"clean", "published"}) {
      for (const char* source : {"self", "input"}) {
        for (const char* readout : {"masked_mean", "mean", "last"}) {
          for (const bool padded : {false, true}) {
            // Without padding the two means are the same.
            if (!padded && std::string(readout) == "mean") continue;
            Setting setting = {
                protocol,
                std::string(pe.name),
                {{"model.kv_source", Word(source)}, {"model.readout", Word(readout)}},
                padded};
            if (!catalog::FindPe(pe.name)->causal_because.empty())
              setting.set["model.mask"] = Word("causal");
            settings.push_back(setting);
          }
        }
      }
    }
  }
  return settings;
}

// A few settings, for tests that are slow for each.
std::vector<Setting> FewSettings() {
  return {{"clean", "rope", {}, false},
          {"clean", "alibi", {{"model.attention_bias", false}}, true},
          {"published", "relative", {{"model.readout", Word("last")}}, false},
          {"published", "absolute", {}, true}};
}

constexpr std::int64_t kLayers = 3;
constexpr std::int64_t kHeads = 4;

// A third of the settings have a layer between the first and the last, which costs twice the time.
// They are neighbours, so that they meet every replacement.
std::int64_t LayersOf(std::size_t setting) { return setting / 3 % 3 == 0 ? kLayers : 2; }

TestModel MakeModel(const Setting& setting, at::ScalarType dtype = at::kDouble,
                    std::int64_t layers = kLayers) {
  catalog::Values set = setting.set;
  set["model.layers"] = layers;
  set["model.heads"] = kHeads;
  return TestModel(SmallJob(setting.protocol, setting.pe, "distance", set), 4, dtype);
}

// Replacement values for heads' outputs: the same for every example (1), or one for each (B).
Replacement SomeReplacement(const Decoder& decoder, const Batch& batch, std::int64_t examples) {
  std::vector<at::Tensor> layers;
  const at::NoGradGuard no_grad;
  Residual x = decoder.Embed(batch);
  for (std::int64_t layer = 0; layer < decoder.config().layers; ++layer) {
    const at::Tensor heads = decoder.Heads(
        layer, decoder.ProjectLayer(layer, x, decoder.Embed(batch), batch), batch, nullptr);
    x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr), nullptr);
    const at::Tensor turned = heads.flip(0) * 0.7 - 0.1;
    layers.push_back(examples == 1 ? turned.mean(0, true) : turned);
  }
  return Replacement(layers);
}

void ExpectFanOutIsNaive(const TestModel& exact, const TestModel& single, const Batch& batch,
                         const Ablation& ablation, const Ablation& in_floats) {
  const std::int64_t entries = EntriesOf(exact.decoder, ablation.target);
  const at::Tensor naive = AblatedLogitsNaive(exact.decoder, batch, ablation);
  ASSERT_EQ(naive.sizes(),
            (std::vector<std::int64_t>{exact.decoder.config().layers, entries, 5, 4}));
  EXPECT_LT(LargestDifference(AblatedLogits(exact.decoder, batch, ablation), naive), 1e-11);
  const at::Tensor quick = AblatedLogits(single.decoder, batch, in_floats);
  EXPECT_LT(LargestDifference(quick, naive), 1e-4);
  const at::Tensor top = std::get<0>(naive.topk(2, -1));
  const at::Tensor decided = (top.select(-1, 0) - top.select(-1, 1)).ge(1e-4);
  const at::Tensor different = quick.argmax(-1).ne(naive.argmax(-1)).logical_and(decided);
  EXPECT_EQ(different.sum().item<std::int64_t>(), 0);
}

// Every encoding meets each pair in several settings, and every setting with several encodings: the
// pairs of an encoding's settings are those of the encoding before it, moved on by one.
TEST(HeadAblation, FanOutIsTheNaiveWay) {
  const at::NoGradGuard no_grad;
  const std::vector<Setting> settings = Settings();
  const std::size_t of_one = settings.size() / PeRegistry().size();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    const auto [hygiene, replaced_by] = PairOf(i / of_one + i % of_one);
    SCOPED_TRACE(testing::Message() << setting << ", hygiene " << static_cast<int>(hygiene)
                                    << ", replaced by " << replaced_by);
    const TestModel exact = MakeModel(setting, at::kDouble, LayersOf(i));
    const TestModel single = MakeModel(setting, at::kFloat, LayersOf(i));
    const Batch batch = RandomBatch(5, 16, 40, setting.padded);
    Ablation ablation{Target::kHead, hygiene, {}, {}}, in_floats = ablation;
    if (replaced_by > 0) {
      ablation.heads = SomeReplacement(exact.decoder, batch, replaced_by);
      in_floats.heads = SomeReplacement(single.decoder, batch, replaced_by);
    }
    ExpectFanOutIsNaive(exact, single, batch, ablation, in_floats);
  }
}

// Models with latents of 1 ½, 2 and 5 slices, for 4 heads of 4 channels.
std::vector<Setting> LatentSettings() {
  std::vector<Setting> settings;
  for (const std::int64_t latent : {6, 8, 20}) {
    for (const char* protocol : {"clean", "published"}) {
      for (const char* source : {"self", "input"}) {
        settings.push_back({protocol,
                            "mla",
                            {{"pe.latent", latent},
                             {"model.kv_source", Word(source)},
                             {"model.readout", Word(latent == 6 ? "last" : "masked_mean")}},
                            latent == 8});
      }
    }
  }
  return settings;
}

TEST(HeadAblation, FanOutOfLatentSlicesIsTheNaiveWay) {
  const at::NoGradGuard no_grad;
  for (const Setting& setting : LatentSettings()) {
    const TestModel exact = MakeModel(setting), single = MakeModel(setting, at::kFloat);
    const Batch batch = RandomBatch(5, 16, 40, setting.padded);
    const Batch other = RandomBatch(5, 16, 30, setting.padded);
    for (const Hygiene hygiene : {Hygiene::kClean, Hygiene::kAuthors}) {
      for (const bool resampled : {false, true}) {
        SCOPED_TRACE(testing::Message() << setting << ", hygiene " << static_cast<int>(hygiene)
                                        << ", resampled " << resampled);
        Ablation ablation{Target::kLatentSlice, hygiene, {}, {}}, in_floats = ablation;
        if (resampled) {
          ablation.slices = SliceReplacement::Of(RunTraced(exact.decoder, other));
          in_floats.slices = SliceReplacement::Of(RunTraced(single.decoder, other));
        }
        ExpectFanOutIsNaive(exact, single, batch, ablation, in_floats);
      }
    }
  }
}

// Removes a slice from the weights by zeroing its columns of the three up-projections.
void ZeroSlice(const TestModel& model, std::int64_t layer, std::int64_t slice) {
  for (const char* part : {"query", "key", "value"}) {
    const at::Tensor weight = model.Parameter("layers." + std::to_string(layer) + ".attention." +
                                              std::string(part) + ".weight");
    const std::int64_t begin = slice * model.config.head_dim();
    weight.narrow(1, begin, std::min(model.config.head_dim(), weight.size(1) - begin)).zero_();
  }
}

TEST(HeadAblation, SlicesAreThoseOfAModelWithoutTheirColumns) {
  const at::NoGradGuard no_grad;
  for (const Setting& setting : LatentSettings()) {
    SCOPED_TRACE(testing::Message() << setting);
    const Batch batch = RandomBatch(5, 16, 40, setting.padded);
    const TestModel model = MakeModel(setting), without = MakeModel(setting);
    const std::int64_t entries = EntriesOf(model.decoder, Target::kLatentSlice);
    EXPECT_EQ(entries, std::min<std::int64_t>(4, (model.job.Int("pe.latent") + 3) / 4));
    const at::Tensor ablated =
        AblatedLogits(model.decoder, batch, {Target::kLatentSlice, Hygiene::kClean, {}, {}});
    const at::Tensor authors =
        AblatedLogits(model.decoder, batch, {Target::kLatentSlice, Hygiene::kAuthors, {}, {}});
    at::Tensor weights = without.parameters.flat().detach();
    const at::Tensor saved = weights.clone();
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      for (std::int64_t slice = 0; slice < entries; ++slice) {
        weights.copy_(saved);
        ZeroSlice(without, layer, slice);
        EXPECT_LT(LargestDifference(ablated[layer][slice], without.decoder.Logits(batch, nullptr)),
                  1e-11)
            << "layer " << layer << ", slice " << slice;
        for (std::int64_t earlier = 0; earlier < layer && entries == 4; ++earlier) {
          ZeroSlice(without, earlier, 3);
        }
        EXPECT_LT(LargestDifference(authors[layer][slice], without.decoder.Logits(batch, nullptr)),
                  1e-11)
            << "layer " << layer << ", slice " << slice;
      }
    }
    EXPECT_GT(LargestDifference(ablated[0][0], model.decoder.Logits(batch, nullptr)), 1e-6);
  }
}

// Keys of the first layer with a slice taken from other examples, computed from the weights alone.
TEST(HeadAblation, AReplacedSliceIsThatOfTheDonorsLatent) {
  const at::NoGradGuard no_grad;
  const Setting setting = {"published", "mla", {{"pe.latent", std::int64_t{8}}}, false};
  const TestModel model = MakeModel(setting);
  const Batch batch = RandomBatch(5, 16, 40, false), other = RandomBatch(5, 16, 30, false);
  const std::string name = "layers.0.attention.";
  const auto latent = [&](const Batch& of) {
    const at::Tensor x =
        at::layer_norm(model.decoder.Embed(of), {16}, model.Parameter(name + "norm.weight"),
                       model.Parameter(name + "norm.bias"), model.config.layer_norm_eps);
    return at::linear(x, model.Parameter(name + "latent_kv.weight"));
  };
  at::Tensor mixed = latent(batch).clone();
  mixed.narrow(2, 4, 4).copy_(latent(other).narrow(2, 4, 4));
  const at::Tensor wanted =
      at::linear(mixed, model.Parameter(name + "key.weight")).view({5, 16, 4, 4});
  const Trace donors = RunTraced(model.decoder, other);
  const auto added = SliceReplacement::Of(donors).Added(model.decoder, 0, 1);
  const at::Tensor input = model.decoder.Embed(batch);
  const auto without = model.decoder.ProjectLayer(0, input, input, batch, 1);
  const at::Tensor keys = without.key + added->key;
  EXPECT_LT(LargestDifference(keys.narrow(3, 0, 4), wanted), 1e-12);
  EXPECT_LT(LargestDifference(keys.narrow(3, 4, keys.size(3) - 4),
                              without.key.narrow(3, 4, keys.size(3) - 4)),
            1e-12)
      << "the rotary keys stay";
  const auto own = SliceReplacement::Of(RunTraced(model.decoder, batch));
  const at::Tensor same =
      AblatedLogits(model.decoder, batch, {Target::kLatentSlice, Hygiene::kClean, {}, own});
  EXPECT_LT(LargestDifference(same[2][1], model.decoder.Logits(batch, nullptr)), 1e-12);
}

TEST(HeadAblation, SlicesBeyondTheLatentsAreNoEntries) {
  const Subject subject(SmallJob("published", "mla", "counting"));  // latents of 8, 2 heads of 8
  HeadAblationOptions options;
  options.authors_target = true;
  for (const Method method : {Method::kZero, Method::kMean, Method::kResample}) {
    options.method = method;
    const HeadAblationResult result = AblateHeads(subject.model.decoder, subject.data, 0, options);
    for (const auto& layer : result.entries) {
      ASSERT_EQ(layer.size(), 2u);
      EXPECT_TRUE(layer[0].has_value());
      EXPECT_FALSE(layer[1].has_value());
    }
  }
  options.authors_target = false;
  const HeadAblationResult heads = AblateHeads(subject.model.decoder, subject.data, 0, options);
  EXPECT_TRUE(heads.entries[0][1].has_value());
}

// The mean of a slice's part by plain loops, and its effect on one example.
TEST(HeadAblation, MeansOfSlicesLeaveOutPads) {
  const at::NoGradGuard no_grad;
  const Subject subject(PaddedJob("published", "mla"));
  const std::int64_t count = 23;
  const SliceReplacement means =
      SliceReplacement::Means(subject.model.decoder, subject.data, count);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    const auto mean = means.Added(subject.model.decoder, layer, 0);
    at::Tensor sum = at::zeros({16, 2, 8}, at::kDouble);
    std::vector<std::int64_t> filled(16, 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const Batch one = subject.data.Range(i, i + 1).inputs;
      const auto added = SliceReplacement::Of(RunTraced(subject.model.decoder, one))
                             .Added(subject.model.decoder, layer, 0);
      for (std::int64_t t = 0; t < subject.dataset.lengths[i]; ++t) {
        sum[t] += added->value[0][t];
        ++filled[t];
      }
    }
    for (std::int64_t t = 0; t < 16; ++t) {
      if (filled[t] == 0) continue;
      EXPECT_LT(LargestDifference(mean->value[0][t], sum[t] / static_cast<double>(filled[t])),
                1e-12);
    }
  }
}

// Every encoding meets half of the settings, and the next one the other half.
TEST(HeadAblation, IsThatOfAModelWithoutTheHeadsValues) {
  const at::NoGradGuard no_grad;
  const std::vector<Setting> settings = Settings();
  const std::size_t of_one = settings.size() / PeRegistry().size();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    if (setting.set.at("model.readout") == Word("mean")) continue;
    if ((i / of_one + i % of_one) % 2 == 1) continue;
    SCOPED_TRACE(testing::Message() << setting);
    const Batch batch = RandomBatch(5, 16, 40, setting.padded);
    const TestModel model = MakeModel(setting, at::kDouble, LayersOf(i));
    const at::Tensor ablated = AblatedLogits(model.decoder, batch, {});
    const at::Tensor intact = model.decoder.Logits(batch, nullptr);
    const TestModel without = MakeModel(setting, at::kDouble, LayersOf(i));
    at::Tensor weights = without.parameters.flat().detach();
    const at::Tensor saved = weights.clone();
    for (std::int64_t layer = 0; layer < LayersOf(i); ++layer) {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        weights.copy_(saved);
        ZeroValues(without, layer, head);
        const at::Tensor expected = without.decoder.Logits(batch, nullptr);
        EXPECT_LT(LargestDifference(ablated[layer][head], expected), 1e-11)
            << "layer " << layer << ", head " << head;
        EXPECT_GT(LargestDifference(intact, expected), 1e-6) << "the head matters";
      }
    }
  }
}

TEST(HeadAblation, AuthorsHygieneKeepsTheLastHeadOfEarlierLayersOut) {
  const at::NoGradGuard no_grad;
  for (const Setting& setting : FewSettings()) {
    SCOPED_TRACE(testing::Message() << setting);
    const Batch batch = RandomBatch(5, 16, 40, setting.padded);
    const TestModel model = MakeModel(setting), without = MakeModel(setting);
    const at::Tensor authors =
        AblatedLogits(model.decoder, batch, {Target::kHead, Hygiene::kAuthors, {}, {}});
    const at::Tensor clean = AblatedLogits(model.decoder, batch, {});
    EXPECT_LT(LargestDifference(authors[0], clean[0]), 1e-12);
    ZeroValues(without, 0, kHeads - 1);
    EXPECT_LT(LargestDifference(authors[1], AblatedLogits(without.decoder, batch, {})[1]), 1e-11);
    EXPECT_GT(LargestDifference(authors[1], clean[1]), 1e-6);
    ZeroValues(without, 1, kHeads - 1);
    EXPECT_LT(LargestDifference(authors[2], AblatedLogits(without.decoder, batch, {})[2]), 1e-11);
  }
}

// Counts and losses over a data set, computed from each example alone. Class 0 is not scored under
// `published`.
TEST(HeadAblation, CountsWhatPlainLoopsSay) {
  const at::NoGradGuard no_grad;
  for (const experiment::Job& job :
       {SmallJob("published", "rope", "counting"), PaddedJob("clean", "relative")}) {
    const Subject subject(job);
    const std::vector<at::Tensor> means = PlainMeans(subject, 37);
    for (const bool all_data : {false, true}) {
      const std::int64_t begin = all_data ? 0 : 96;
      const std::vector<at::Tensor> intact = LogitsOfEach(subject, begin, begin + 37);
      const auto donors = HeadsOfDonors(subject, 5, begin, begin + 37);
      for (const Method method : {Method::kZero, Method::kMean, Method::kResample}) {
        SCOPED_TRACE(testing::Message() << job.task << " " << static_cast<int>(method) << all_data);
        HeadAblationOptions options;
        options.method = method;
        options.all_data = all_data;
        options.max_examples = 37;
        const HeadAblationResult result =
            AblateHeads(subject.model.decoder, subject.data, 5, options);
        ASSERT_EQ(result.entries.size(), 2u);
        for (std::int64_t layer = 0; layer < 2; ++layer) {
          ASSERT_EQ(result.entries[layer].size(), 2u);
          for (std::int64_t head = 0; head < 2; ++head) {
            const auto ablated = [&](std::int64_t example) {
              at::Tensor by = at::zeros_like(means[layer]);
              if (method == Method::kMean) by = means[layer];
              if (method == Method::kResample) by = donors[example - begin][layer];
              return LogitsOfOne(subject, example, [&](std::int64_t at, at::Tensor* heads) {
                if (at == layer) heads->narrow(1, 8 * head, 8).copy_(by.narrow(1, 8 * head, 8));
              });
            };
            const Plain plain = CountPlainly(subject, begin, intact, ablated);
            const PairedScore& score = *result.entries[layer][head];
            EXPECT_EQ(result.intact.total, plain.total);
            EXPECT_EQ(result.intact.correct, plain.intact_correct);
            EXPECT_NEAR(result.intact.nll, plain.intact_nll, 1e-9);
            EXPECT_EQ(score.correct, plain.correct);
            EXPECT_EQ(score.lost, plain.lost);
            EXPECT_EQ(score.gained, plain.gained);
            EXPECT_NEAR(score.nll, plain.nll, 1e-9);
            EXPECT_NEAR(score.nll_standard_error, plain.error, 1e-9);
            EXPECT_GT(plain.error, 1e-6) << "the head matters";
          }
        }
      }
    }
  }
}

// Long sequences with many heads are processed in several pieces of several chunks.
TEST(HeadAblation, ChunksChangeNothing) {
  const at::NoGradGuard no_grad;
  const std::int64_t length = 96, heads = 8, tests = 60;
  const experiment::Job job = SmallJob("clean", "rope", "distance",
                                       {{"model.heads", heads},
                                        {"model.max_len", length},
                                        {"task.length", length},
                                        {"task.test_examples", tests}});
  const Subject subject(job);
  const std::int64_t chunk = ChunkExamples(subject.model.config, length, 1, at::kCPU);
  const std::int64_t wide = ChunkExamples(subject.model.config, length, heads, at::kCPU);
  ASSERT_LT(chunk, tests);
  ASSERT_LT(wide, chunk);
  const HeadAblationResult result =
      AblateHeads(subject.model.decoder, subject.data, 0, HeadAblationOptions{});
  const LabeledBatch batch = subject.data.Range(96, 96 + tests);
  const at::Tensor naive = AblatedLogitsNaive(subject.model.decoder, batch.inputs, {});
  EXPECT_EQ(result.intact.total, tests);
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const at::Tensor right = naive[layer][head].argmax(1).eq(batch.classes);
      EXPECT_EQ(result.entries[layer][head]->correct, right.sum().item<std::int64_t>());
      const at::Tensor nll = at::cross_entropy_loss(naive[layer][head], batch.classes);
      EXPECT_NEAR(result.entries[layer][head]->nll, nll.item<double>(), 1e-9);
    }
  }
}

TEST(HeadAblation, IntactFiguresAreThoseOfEvaluation) {
  for (const Hygiene hygiene : {Hygiene::kClean, Hygiene::kAuthors}) {
    const Subject subject(SmallJob("published", "rope", "counting"));
    HeadAblationOptions options;
    options.hygiene = hygiene;
    const HeadAblationResult result = AblateHeads(subject.model.decoder, subject.data, 0, options);
    const Score score = Evaluate(subject.model.decoder, subject.data, 96, 144);
    EXPECT_EQ(result.intact.correct, score.correct);
    EXPECT_EQ(result.intact.total, score.total);
    EXPECT_LT(score.total, 48) << "class 0 is not scored";
    EXPECT_NEAR(result.intact.nll, score.loss, 1e-12);
  }
}

TEST(HeadAblation, OptionsAreReadAndUnknownMethodsRefused) {
  const HeadAblationOptions authors = HeadAblationOptionsFrom(experiment::MakeAnalysis(
      "published", "head_ablation",
      {{"head_ablation.max_examples", std::int64_t{9}}, {"head_ablation.method", Word("mean")}}));
  EXPECT_EQ(authors.hygiene, Hygiene::kAuthors);
  EXPECT_EQ(authors.method, Method::kMean);
  EXPECT_TRUE(authors.authors_target);
  EXPECT_TRUE(authors.all_data);
  EXPECT_EQ(authors.max_examples, 9);
  const HeadAblationOptions clean =
      HeadAblationOptionsFrom(experiment::MakeAnalysis("clean", "head_ablation"));
  EXPECT_EQ(clean.hygiene, Hygiene::kClean);
  EXPECT_EQ(clean.method, Method::kZero);
  EXPECT_FALSE(clean.authors_target);
  EXPECT_FALSE(clean.all_data);
  experiment::Analysis unknown = experiment::MakeAnalysis("clean", "head_ablation");
  unknown.parameters["head_ablation.method"] = std::string("erase");
  EXPECT_THAT([&] { HeadAblationOptionsFrom(unknown); },
              testing::ThrowsMessage<TrainerError>(
                  testing::HasSubstr("\"erase\"; known: zero, mean, resample")));
}

}  // namespace
}  // namespace pelab::trainer
