// Leaving out padding that nothing reads gives the same step as computing it.
#include "worker/trainer/train/sections.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "tests/unit/worker/trainer/pe/own_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/train/evaluate.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

// Fields under which nothing reads padding. About half of the published data is padding.
catalog::Values Unread(const char* readout, const catalog::Values& set = {}) {
  catalog::Values values = {{"model.key_padding", std::string("masked")},
                            {"model.readout", std::string(readout)},
                            {"model.max_len", std::int64_t{48}},
                            {"task.length", std::int64_t{48}},
                            {"model.dropout", 0.2},
                            {"train.batch_size", std::int64_t{80}}};
  for (const auto& [field, value] : set) values[field] = value;
  return values;
}

struct Subject {
  Subject(const experiment::Job& job, const StepOptions& ways, at::ScalarType type = at::kDouble)
      : dataset(MakeDataset(job)),
        labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, at::kCPU),
        model(job, labels.classes, type),
        trainer(model.job, &model.decoder, &model.parameters, &data, ways) {}
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  TestModel model;
  Trainer trainer;
};

StepOptions AllPositions() { return {0, true, /*leave_padding_out=*/false}; }

std::int64_t Positions(const Sections& sections) {
  std::int64_t sum = 0;
  for (const Section& section : sections) sum += section.count * section.positions;
  return sum;
}

// Expects that one epoch with and without padding gives the same weights, with dropout: two steps,
// a whole batch and a last one. Without padding it runs once for each of `micro_batches`.
void ExpectTheSameEpoch(const experiment::Job& job, at::ScalarType type,
                        const std::vector<std::int64_t>& micro_batches, double tolerance) {
  Subject all(job, AllPositions(), type);
  EXPECT_EQ(Positions(all.trainer.BatchesOf(0).sections[0]), 80 * 48);
  const at::Tensor order = all.trainer.BatchesOf(0).indices.clone();
  const EpochResult expected = all.trainer.RunEpoch(0)[0];
  for (const std::int64_t micro_batch : micro_batches) {
    SCOPED_TRACE(testing::Message() << type << ", micro-batches of " << micro_batch);
    Subject without(job, {micro_batch}, type);
    const EpochBatches batches = without.trainer.BatchesOf(0);
    ASSERT_TRUE(batches.indices.equal(order));
    ASSERT_EQ(batches.sections.size(), 2U);
    EXPECT_LT(Positions(batches.sections[0]), 80 * 48) << "there is padding to leave out";
    const EpochResult got = without.trainer.RunEpoch(0)[0];
    EXPECT_NEAR(got.train_loss, expected.train_loss, tolerance * expected.train_loss);
    EXPECT_EQ(got.train_total, expected.train_total);
    EXPECT_LT(RelativeError(without.model.parameters.flat(), all.model.parameters.flat()),
              tolerance);
  }
}

class EveryPeSections : public testing::TestWithParam<Variant> {};

// Doubles use plain operations, floats the kernels. Where a gradient is almost zero, AdamW's first
// steps are its sign, so the tolerance for floats is larger.
TEST_P(EveryPeSections, AnEpochIsTheSameWithoutPadding) {
  const std::pair<const char*, std::int64_t> settings[] = {{"masked_mean", 11}, {"last", 0}};
  for (const auto& [readout, micro_batch] : settings) {
    SCOPED_TRACE(readout);
    const experiment::Job job = VariantJob("published", GetParam(), Unread(readout));
    ExpectTheSameEpoch(job, at::kDouble, {0}, 1e-9);
    ExpectTheSameEpoch(job, at::kFloat, {micro_batch}, 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, EveryPeSections, testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

// Leaving out other positions would change the step, so the test above can fail.
TEST(Sections, DropoutCountsThePositionsThatAreLeftOut) {
  ModelConfig config;
  config.layers = 2;
  config.dropout = 0.5;
  for (bool& site : config.dropout_at) site = true;
  const Dropout whole(config, 3, 7);
  const Dropout part = whole.From(2), trimmed = part.Trimmed(5, 9);
  const at::Tensor rows = at::ones({3, 9, 4}), pairs = at::ones({3, 2, 9, 9});
  const at::Tensor all_rows = part.Apply(rows, 1, DropoutSite::kFfn);
  EXPECT_TRUE(
      trimmed.Apply(rows.narrow(1, 0, 5), 1, DropoutSite::kFfn).equal(all_rows.narrow(1, 0, 5)));
  EXPECT_FALSE(
      part.Apply(rows.narrow(1, 0, 5), 1, DropoutSite::kFfn).equal(all_rows.narrow(1, 0, 5)));
  const at::Tensor all_pairs = part.Apply(pairs, 1, DropoutSite::kAttention);
  EXPECT_TRUE(trimmed.Apply(pairs.narrow(2, 0, 5).narrow(3, 0, 5), 1, DropoutSite::kAttention)
                  .equal(all_pairs.narrow(2, 0, 5).narrow(3, 0, 5)));
}

TEST(Sections, OrderByLengthKeepsTheBatches) {
  const Subject subject(VariantJob("published", {"mla", "mla", {}}, Unread("masked_mean")), {});
  const at::Tensor plain = subject.data.Order({3}, 1);
  const at::Tensor ordered = plain.clone();
  OrderByLength(subject.data, 40, ordered);
  for (std::int64_t at = 0; at < 96; at += 40) {
    const std::int64_t count = std::min<std::int64_t>(40, 96 - at);
    std::vector<std::int64_t> expected(plain.data_ptr<std::int64_t>() + at,
                                       plain.data_ptr<std::int64_t>() + at + count);
    // By insertion: an example goes after all that are not longer.
    std::vector<std::int64_t> sorted;
    for (const std::int64_t index : expected) {
      auto place = sorted.end();
      while (place != sorted.begin() &&
             subject.dataset.lengths[*(place - 1)] > subject.dataset.lengths[index]) {
        --place;
      }
      sorted.insert(place, index);
    }
    const std::vector<std::int64_t> got(ordered.data_ptr<std::int64_t>() + at,
                                        ordered.data_ptr<std::int64_t>() + at + count);
    EXPECT_EQ(got, sorted) << "batch from " << at;
  }
}

// By hand: lengths 1 … 64 in steps of eight.
TEST(Sections, AreAsLongAsTheirLongestInWholeEights) {
  Dataset dataset;
  dataset.length = 60;
  dataset.train_examples = 64;
  for (int i = 0; i < 65; ++i) {
    dataset.lengths.push_back(std::min(i + 1, 60));
    dataset.labels.push_back(0);
  }
  dataset.tokens.assign(65 * 60, 5);
  const DeviceData data(dataset, LabelSpace{1, 0, true}, at::kCPU);
  std::vector<std::int64_t> indices(64);
  for (int i = 0; i < 64; ++i) indices[i] = i;
  const auto described = [](const Sections& sections) {
    std::string text;
    for (const Section& s : sections) {
      text += std::to_string(s.begin) + "+" + std::to_string(s.count) + ":" +
              std::to_string(s.positions) + " ";
    }
    return text;
  };
  EXPECT_EQ(described(SectionsOf(data, indices.data(), 64)), "0+32:32 32+32:60 ");
  EXPECT_EQ(described(SectionsOf(data, indices.data(), 33)), "0+33:40 ");
  EXPECT_EQ(described(SectionsOf(data, indices.data() + 3, 1)), "0+1:8 ");
  // At most 10 examples of 60 positions: 600 positions, 18 examples of 32.
  EXPECT_EQ(described(InParts(SectionsOf(data, indices.data(), 64), 10, 60)),
            "0+18:32 18+14:32 32+10:60 42+10:60 52+10:60 62+2:60 ");
}

// Sections with the same shapes in every epoch, as a captured graph of the step needs them.
TEST(Sections, AlikeOnesHaveRoomForEveryBatchOfEveryEpoch) {
  const Subject subject(VariantJob("published", {"mla", "mla", {}}, Unread("masked_mean")), {});
  const Batching own(subject.model.config, &subject.data, {3}, 40, false, 0);
  const Batching alike(subject.model.config, &subject.data, {3}, 40, false, 4);
  const EpochBatches shared = alike.Of(0);
  ASSERT_EQ(shared.sections.size(), 3U);
  EXPECT_EQ(Positions(shared.sections[0]), Positions(shared.sections[1]));
  std::vector<std::int64_t> most(3, 0);
  for (int epoch = 0; epoch < 4; ++epoch) {
    const EpochBatches batches = own.Of(epoch);
    EXPECT_TRUE(batches.indices.equal(alike.Of(epoch).indices));
    for (std::size_t b = 0; b < 3; ++b) {
      const std::size_t like = b == 2 ? 2 : 0;
      ASSERT_EQ(batches.sections[b].size(), shared.sections[b].size());
      most[like] = std::max(most[like], batches.sections[b][0].positions);
      EXPECT_LE(batches.sections[b][0].positions, shared.sections[b][0].positions);
    }
  }
  EXPECT_EQ(shared.sections[0][0].positions, most[0]) << "and no more";
  EXPECT_EQ(shared.sections[2][0].positions, most[2]);
}

// Nothing is left out if padding is read, if there is none, or if other members are computed beside
// it.
TEST(Sections, OnlyPaddingThatNobodyReadsIsLeftOut) {
  const auto leaves_out = [](const experiment::Job& job, int members = 1) {
    const Dataset dataset = MakeDataset(job);
    const LabelSpace labels = LabelSpaceOf(job, dataset);
    const DeviceData data(std::vector<const Dataset*>(members, &dataset), labels, at::kCPU);
    return LeavesPaddingOut(ModelConfigFrom(job, labels.classes), data);
  };
  const auto word = [](const char* value) { return catalog::Value(std::string(value)); };
  EXPECT_TRUE(leaves_out(SmallJob("published", "mla", "distance")));
  EXPECT_TRUE(leaves_out(SmallJob("published", "mla", "counting")));
  EXPECT_FALSE(leaves_out(SmallJob("published", "mla", "distance"), 2));
  EXPECT_FALSE(leaves_out(SmallJob("published", "rope", "distance")));
  EXPECT_FALSE(
      leaves_out(SmallJob("published", "mla", "distance", {{"model.readout", word("mean")}})));
  EXPECT_FALSE(leaves_out(SmallJob("clean", "mla", "distance")));
}

// Each example's logits are those with padding, for any chunk size; and so is the score.
TEST(Sections, EvaluationGoesWithoutPadding) {
  const Subject subject(
      VariantJob("published", {"mla", "mla", {}},
                 Unread("masked_mean", {{"task.test_examples", std::int64_t{1500}}})),
      {});
  const at::NoGradGuard no_grad;
  const LabeledBatch all = subject.data.Range(96, 1596);
  const at::Tensor expected = subject.model.decoder.Logits(all.inputs, nullptr);
  std::int64_t seen = 0, positions = 0;
  double sum = 0;
  ForChunks(subject.model.decoder, subject.data, 96, 1596, [&](const LabeledBatch& chunk) {
    seen += chunk.classes.size(0);
    positions += chunk.inputs.tokens.numel();
    const at::Tensor logits = subject.model.decoder.Logits(chunk.inputs, nullptr);
    sum += at::log_softmax(logits, 1).gather(1, chunk.classes.unsqueeze(1)).sum().item<double>();
  });
  EXPECT_EQ(seen, 1500);
  EXPECT_LT(positions, 1500 * 48 * 7 / 8);
  const at::Tensor logs = at::log_softmax(expected, 1).gather(1, all.classes.unsqueeze(1));
  EXPECT_NEAR(sum, logs.sum().item<double>(), 1e-9 * std::abs(sum));
  const Score score = Evaluate(subject.model.decoder, subject.data, 96, 1596);
  EXPECT_EQ(score.total, 1500);
  EXPECT_EQ(score.correct, expected.argmax(1).eq(all.classes).sum().item<std::int64_t>());
  EXPECT_NEAR(score.loss, -sum / 1500, 1e-9);
}

// Its methods may use the value of the length: packed or alone, in training and in evaluation, it
// must be the same one.
TEST(Sections, AnOwnEncodingGetsTheLengthOfTheData) {
  const OwnFiles files;
  const OwnText text{
      "def distance_bias(self, layer: int, length: int):\n"
      "  return torch.arange(2 * length - 1).unsqueeze(0) / length\n",
      {"distance_bias"}};
  const experiment::Job job = files.Job("published", text, Unread("masked_mean"));
  Subject own(job, {});
  EXPECT_EQ(Positions(own.trainer.BatchesOf(0).sections[0]), 80 * 48);
  ModelConfig config = own.model.config;
  EXPECT_FALSE(LeavesPaddingOut(config, own.data));
  config.pe_reads_length = false;
  EXPECT_TRUE(LeavesPaddingOut(config, own.data)) << "there is padding to leave out";
}

}  // namespace
}  // namespace pelab::trainer
