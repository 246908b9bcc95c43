// Head ablation: the shared fan-out against one whole pass a head, and both against taking the head
// out of the weights.
#include "worker/trainer/analysis/head_ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/trainer/model_for_test.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

struct Variant {
  const char* pe;
  catalog::Values set;
  bool padded;
};

std::vector<Variant> Variants() {
  const auto text = [](const char* value) { return catalog::Value(std::string(value)); };
  std::vector<Variant> variants;
  for (const bool padded : {false, true}) {
    for (const char* source : {"self", "input"}) {
      for (const char* readout : {"masked_mean", "mean", "last"}) {
        variants.push_back({"rope",
                            {{"model.kv_source", text(source)}, {"model.readout", text(readout)}},
                            padded});
      }
      variants.push_back(
          {"relative", {{"model.kv_source", text(source)}, {"model.mask", text("none")}}, padded});
      variants.push_back(
          {"alibi", {{"model.kv_source", text(source)}, {"model.attention_bias", false}}, padded});
    }
  }
  return variants;
}

TestModel MakeModel(const Variant& variant, at::ScalarType dtype) {
  catalog::Values set = variant.set;
  set["model.layers"] = std::int64_t{3};
  set["model.heads"] = std::int64_t{4};
  return TestModel(SmallJob("clean", variant.pe, "distance", set), 4, dtype);
}

TEST(HeadAblation, FanOutIsTheNaiveWay) {
  for (const Variant& variant : Variants()) {
    const Batch batch = RandomBatch(5, 16, 40, variant.padded);
    for (const Hygiene hygiene : {Hygiene::kClean, Hygiene::kAuthors}) {
      SCOPED_TRACE(testing::Message() << variant.pe << ", padded " << variant.padded << ", hygiene "
                                      << static_cast<int>(hygiene));
      const TestModel exact = MakeModel(variant, at::kDouble),
                      single = MakeModel(variant, at::kFloat);
      const at::Tensor naive = AblatedLogitsNaive(exact.decoder, batch, hygiene);
      ASSERT_EQ(naive.sizes(), (std::vector<std::int64_t>{3, 4, 5, 4}));
      EXPECT_LT(LargestDifference(AblatedLogits(exact.decoder, batch, hygiene), naive), 1e-11);
      EXPECT_LT(LargestDifference(AblatedLogits(single.decoder, batch, hygiene), naive), 1e-4);
    }
  }
}

// Zeroing a head's rows of W_V and b_V takes away its output and leaves the output projection's
// bias.
TEST(HeadAblation, IsThatOfAModelWithoutTheHeadsValues) {
  for (const Variant& variant : Variants()) {
    const Batch batch = RandomBatch(5, 16, 40, variant.padded);
    const TestModel model = MakeModel(variant, at::kDouble);
    const at::Tensor ablated = AblatedLogits(model.decoder, batch, Hygiene::kClean);
    const at::Tensor intact = model.decoder.Logits(batch, nullptr).detach();
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      for (std::int64_t head = 0; head < 4; ++head) {
        const TestModel without = MakeModel(variant, at::kDouble);
        const std::string name = "layers." + std::to_string(layer) + ".attention.value.";
        without.Parameter(name + "weight").narrow(0, 4 * head, 4).zero_();
        if (model.config.attention_bias)
          without.Parameter(name + "bias").narrow(0, 4 * head, 4).zero_();
        const at::Tensor expected = without.decoder.Logits(batch, nullptr);
        EXPECT_LT(LargestDifference(ablated[layer][head], expected), 1e-11)
            << "layer " << layer << ", head " << head;
        EXPECT_GT(LargestDifference(intact, expected), 1e-6) << "the head matters";
      }
    }
  }
}

TEST(HeadAblation, AuthorsHygieneKeepsTheLastHeadOfEarlierLayersOut) {
  const Variant variant = Variants()[0];
  const Batch batch = RandomBatch(5, 16, 40, false);
  const TestModel model = MakeModel(variant, at::kDouble),
                  without = MakeModel(variant, at::kDouble);
  const at::Tensor authors = AblatedLogits(model.decoder, batch, Hygiene::kAuthors);
  EXPECT_LT(LargestDifference(authors[0], AblatedLogits(model.decoder, batch, Hygiene::kClean)[0]),
            1e-12);
  for (const char* part : {"weight", "bias"}) {
    without.Parameter(std::string("layers.0.attention.value.") + part).narrow(0, 12, 4).zero_();
  }
  EXPECT_LT(
      LargestDifference(authors[1], AblatedLogits(without.decoder, batch, Hygiene::kClean)[1]),
      1e-11);
  EXPECT_GT(LargestDifference(authors[1], AblatedLogits(model.decoder, batch, Hygiene::kClean)[1]),
            1e-6);
}

// Counts over a data set in several chunks, from the naive logits; class 0 is not scored under
// `published`.
TEST(HeadAblation, CountsWhatTheNaiveLogitsSay) {
  for (const char* protocol : {"clean", "published"}) {
    for (const bool all_data : {false, true}) {
      for (const std::int64_t max_examples : {0, 37}) {
        const spec::Job job = SmallJob(protocol, "rope", "counting");
        const Dataset dataset = MakeDataset(job);
        const LabelSpace labels = LabelSpaceOf(job, dataset);
        const DeviceData data(dataset, labels, at::kCPU);
        const TestModel model(job, labels.classes, at::kFloat);
        HeadAblationOptions options;
        options.all_data = all_data;
        options.max_examples = max_examples;
        const HeadAblationResult result = AblateHeads(model.decoder, data, options);
        const std::int64_t begin = all_data ? 0 : 96;
        const std::int64_t end = max_examples == 0 ? 144 : begin + max_examples;
        const LabelledBatch batch = data.Range(begin, end);
        at::Tensor scored = at::ones_like(batch.classes).to(at::kBool);
        if (!labels.score_zero) scored = batch.classes.ne(0);
        const auto count = [&](const at::Tensor& logits) {
          return logits.argmax(-1).eq(batch.classes).logical_and(scored).sum().item<std::int64_t>();
        };
        EXPECT_EQ(result.total, scored.sum().item<std::int64_t>());
        EXPECT_EQ(result.intact_correct, count(model.decoder.Logits(batch.inputs, nullptr)));
        const at::Tensor naive = AblatedLogitsNaive(model.decoder, batch.inputs, Hygiene::kClean);
        ASSERT_EQ(result.correct.size(), 2u);
        for (std::int64_t layer = 0; layer < 2; ++layer) {
          ASSERT_EQ(result.correct[layer].size(), 2u);
          for (std::int64_t head = 0; head < 2; ++head) {
            EXPECT_EQ(result.correct[layer][head], count(naive[layer][head]));
          }
        }
      }
    }
  }
}

TEST(HeadAblation, OptionsAreReadAndUnknownMethodsRefused) {
  const HeadAblationOptions authors = HeadAblationOptionsFrom(spec::MakeAnalysis(
      "published", "head_ablation", {{"head_ablation.max_examples", std::int64_t{9}}}));
  EXPECT_EQ(authors.hygiene, Hygiene::kAuthors);
  EXPECT_TRUE(authors.all_data);
  EXPECT_EQ(authors.max_examples, 9);
  const HeadAblationOptions clean =
      HeadAblationOptionsFrom(spec::MakeAnalysis("clean", "head_ablation"));
  EXPECT_EQ(clean.hygiene, Hygiene::kClean);
  EXPECT_FALSE(clean.all_data);
  spec::Analysis unknown = spec::MakeAnalysis("clean", "head_ablation");
  unknown.parameters["head_ablation.method"] = std::string("resample");
  EXPECT_THAT(
      [&] { HeadAblationOptionsFrom(unknown); },
      testing::ThrowsMessage<TrainerError>(testing::HasSubstr("\"resample\"; known: zero")));
}

}  // namespace
}  // namespace pelab::trainer
