// The optimizer, evaluation, checkpoints, and the training loop's reproducibility.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "tests/support/temp_dir.h"
#include "tests/unit/worker/trainer/model_fixture.h"
#include "worker/trainer/analysis/registry.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/stop.h"
#include "worker/trainer/train/micro_batch.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

TEST(AdamW, MatchesTheGoldenSteps) {
  const nlohmann::json cases = Golden("training.json")["adamw"];
  ASSERT_EQ(cases.size(), 4u);
  for (const auto& golden : cases) {
    SCOPED_TRACE("beta1 " + golden["beta1"].dump() + ", weight decay " +
                 golden["weight_decay"].dump());
    ParameterSet parameters;
    parameters.Add("p", {4}, Init::Constant(0));
    parameters.Materialize(0, at::kCPU, at::kDouble);
    at::Tensor flat = parameters.flat();
    flat.copy_(Flat(golden["start"]));
    AdamW optimizer(SmallJob("clean", "nope", "distance",
                             {{"train.beta1", golden["beta1"].get<double>()},
                              {"train.beta2", golden["beta2"].get<double>()},
                              {"train.epsilon", golden["epsilon"].get<double>()},
                              {"train.weight_decay", golden["weight_decay"].get<double>()}}),
                    &parameters);
    for (std::size_t step = 0; step < golden["rates"].size(); ++step) {
      at::Tensor gradient = parameters.flat_gradient();
      gradient.copy_(Flat(golden["gradients"][step]));
      optimizer.Step(static_cast<std::int64_t>(step), golden["rates"][step]);
      EXPECT_LT(LargestDifference(flat, Flat(golden["values"][step])), 1e-13) << "step " << step;
      EXPECT_EQ(parameters.flat_gradient().abs().max().item<double>(), 0);
    }
  }
}

TEST(Parameters, StartFromTheirNamesAndSeed) {
  const auto values = [](std::int64_t seed, bool with_other) {
    ParameterSet parameters;
    if (with_other) parameters.Add("other", {3}, Init::Uniform(1));
    parameters.Add("w", {100, 200}, Init::Normal(0.5));
    parameters.AddStack({"a", "b"}, {50, 100}, Init::Uniform(0.25));
    parameters.Materialize(seed, at::kCPU, at::kDouble);
    std::map<std::string, at::Tensor> named;
    for (const auto& entry : parameters.NamedTensors()) named[entry.name] = entry.tensor;
    return named;
  };
  auto one = values(1, false), again = values(1, true), two = values(2, false);
  EXPECT_EQ(LargestDifference(one["w"], again["w"]), 0) << "independent of what else there is";
  EXPECT_EQ(LargestDifference(one["b"], again["b"]), 0);
  EXPECT_GT(LargestDifference(one["w"], two["w"]), 0.1);
  EXPECT_GT(LargestDifference(one["a"], one["b"]), 0.1);
  EXPECT_NEAR(one["w"].std().item<double>(), 0.5, 0.5 * 5 / std::sqrt(2 * 20000));
  EXPECT_NEAR(one["w"].mean().item<double>(), 0, 0.5 * 5 / std::sqrt(20000));
  EXPECT_LE(one["a"].abs().max().item<double>(), 0.25);
  EXPECT_NEAR(one["a"].pow(2).mean().item<double>(), 0.25 * 0.25 / 3, 0.002);
}

struct Bench {
  explicit Bench(const experiment::Job& of)
      : job(of),
        dataset(MakeDataset(job)),
        labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, at::kCPU),
        model(job, labels.classes,
              job.Choice("train.precision") == "bf16" ? at::kBFloat16 : at::kFloat),
        trainer(model.job, &model.decoder, &model.parameters, &data) {}
  experiment::Job job;
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  TestModel model;
  Trainer trainer;
};

TEST(Training, FixedRandomTableIsNotTrainedAndTheTrainableOneIs) {
  for (const bool trainable : {false, true}) {
    Bench bench(SmallJob("clean", "random", "distance", {{"pe.trainable", trainable}}));
    const at::Tensor before = bench.model.Parameter("pe.table").clone();
    const at::Tensor head = bench.model.Parameter("head.weight").clone();
    bench.trainer.RunEpoch(0);
    EXPECT_GT(LargestDifference(head, bench.model.Parameter("head.weight")), 0);
    if (trainable) {
      EXPECT_GT(LargestDifference(before, bench.model.Parameter("pe.table")), 0);
    } else {
      EXPECT_EQ(LargestDifference(before, bench.model.Parameter("pe.table")), 0);
    }
  }
}

TEST(Training, RepeatsBitForBitAndGoesOnFromASnapshot) {
  for (const auto& [protocol, precision] : std::vector<std::pair<std::string, std::string>>{
           {"clean", "float32"}, {"published", "float32"}, {"clean", "bf16"}}) {
    const experiment::Job job = SmallJob(protocol, "relative", "distance",
                                         {{"model.dropout", 0.2}, {"train.precision", precision}});
    Bench whole(job), again(job), resumed(job);
    const EpochResult first = whole.trainer.RunEpoch(0)[0];
    EXPECT_EQ(again.trainer.RunEpoch(0)[0].train_loss, first.train_loss);
    const TempDir folder;
    WriteCheckpoint(folder.path(), {"spec", "1 thread"}, whole.trainer.Snapshot(1));
    EXPECT_FALSE(ReadCheckpoint(folder.path(), {"another spec", "1 thread"}));
    EXPECT_FALSE(ReadCheckpoint(folder.path(), {"spec", "2 threads"}));
    const auto checkpoint = ReadCheckpoint(folder.path(), {"spec", "1 thread"});
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->epoch, 1);
    resumed.trainer.Restore(*checkpoint);
    const EpochResult second = whole.trainer.RunEpoch(1)[0], other = resumed.trainer.RunEpoch(1)[0];
    EXPECT_EQ(second.train_loss, other.train_loss);
    EXPECT_EQ(second.test.loss, other.test.loss);
    EXPECT_TRUE(whole.model.parameters.flat().equal(resumed.model.parameters.flat()));
  }
}

TEST(Training, IsTheSameOnTwoThreads) {
  const experiment::Job job = SmallJob("clean", "rope", "distance", {{"model.dropout", 0.2}});
  const auto loss = [&](int threads) {
    ConfigureDeterminism(threads);
    Bench bench(job);
    return bench.trainer.RunEpoch(0)[0].train_loss;
  };
  const double one = loss(1);
  EXPECT_NEAR(loss(2), one, 1e-5 * one)
      << "sums may be grouped otherwise, masks and data may not differ";
  ConfigureDeterminism(1);
}

TEST(MicroBatch, IsWhatHasRoomOnACpu) {
  const experiment::Job paper = experiment::MakeJob("clean", "rope", "distance", 0);
  const ModelConfig config = ModelConfigFrom(paper, 70);
  const auto parts = [&](std::int64_t batch) {
    return ChooseMicroBatch(config, /*length=*/128, batch, at::kCPU);
  };
  EXPECT_EQ(parts(21), 0) << "has room as it is";
  for (const std::int64_t batch : {22, 64, 100, 512, 1024}) {
    const std::int64_t part = parts(batch);
    ASSERT_GT(part, 0) << batch;
    EXPECT_LE(part * ActivationBytes(config, 128), std::int64_t{256} << 20) << batch;
    const std::int64_t count = (batch + part - 1) / part;
    EXPECT_LT(count * part - batch, count) << batch << ": parts of one size, within an example";
  }
  EXPECT_EQ(ChooseMicroBatch(config, 128, 1024, at::Device("cuda:0")), 0);
  ModelConfig huge = config;
  huge.layers = 1000;
  EXPECT_EQ(ChooseMicroBatch(huge, 128, 8, at::kCPU), 1);
}

TEST(Training, PartsOfABatchAddUpToTheWhole) {
  // Published counting leaves class 0 out of the loss, so parts differ in their number of scored
  // examples. A micro-batch of 7 divides no batch evenly.
  for (const char* protocol : {"clean", "published"}) {
    const experiment::Job job = SmallJob(protocol, "rope", "counting", {{"model.dropout", 0.2}});
    Bench whole(job), parts(job);
    Trainer in_parts(parts.model.job, &parts.model.decoder, &parts.model.parameters, &parts.data,
                     {/*micro_batch=*/7});
    const EpochResult expected = whole.trainer.RunEpoch(0)[0], got = in_parts.RunEpoch(0)[0];
    EXPECT_NEAR(got.train_loss, expected.train_loss, 1e-5 * expected.train_loss) << protocol;
    EXPECT_EQ(got.train_total, expected.train_total) << protocol;
    EXPECT_NEAR(got.test.loss, expected.test.loss, 1e-3 * expected.test.loss) << protocol;
  }
}

TEST(Training, CheckpointOfAnotherModelIsRefused) {
  Bench small(SmallJob("clean", "nope", "distance"));
  Bench large(SmallJob("clean", "nope", "distance", {{"model.d_ff", std::int64_t{64}}}));
  EXPECT_THAT([&] { large.trainer.Restore(small.trainer.Snapshot(0)); },
              testing::ThrowsMessage<TrainerError>(testing::HasSubstr("the checkpoint has")));
}

TEST(Training, DamagedCheckpointIsAnIoError) {
  const TempDir folder;
  Bench bench(SmallJob("clean", "nope", "distance"));
  WriteCheckpoint(folder.path(), {"spec", ""}, bench.trainer.Snapshot(1));
  const std::string text = ReadFile(folder / kCheckpointName);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{4}, text.size() / 2, text.size() - 1}) {
    WriteFileAtomically(folder.path(), kCheckpointName, text.substr(0, size));
    EXPECT_THROW(ReadCheckpoint(folder.path(), {"spec", ""}), TrainerError) << size;
  }
}

TEST(Training, EvaluatesATenthOfTheTrainingExamples) {
  EXPECT_EQ(EvaluatedTrainingExamples(1), 1);
  EXPECT_EQ(EvaluatedTrainingExamples(249), 249);
  EXPECT_EQ(EvaluatedTrainingExamples(2000), 250);
  EXPECT_EQ(EvaluatedTrainingExamples(7000), 700);
  EXPECT_EQ(EvaluatedTrainingExamples(70'000), 1000);
}

TEST(Training, OrderIsAPermutationOfItsEpoch) {
  Bench bench(SmallJob("clean", "nope", "distance"));
  const at::Tensor order = bench.data.Order({1}, 0);
  EXPECT_TRUE(std::get<0>(order.flatten().sort()).equal(at::arange(96, at::kLong)));
  EXPECT_TRUE(order.equal(bench.data.Order({1}, 0)));
  EXPECT_FALSE(order.equal(bench.data.Order({1}, 1)));
  EXPECT_FALSE(order.equal(bench.data.Order({2}, 0)));
}

TEST(Training, StopsBetweenBatches) {
  Bench bench(SmallJob("clean", "nope", "distance"));
  SetStopRequested(true);
  EXPECT_THROW(bench.trainer.RunEpoch(0), Stopped);
  EXPECT_THROW(Evaluate(bench.model.decoder, bench.data, 0, 1), Stopped);
  SetStopRequested(false);
  EXPECT_NO_THROW(bench.trainer.RunEpoch(0));
}

// Loss and counts computed plainly from the logits, with class 0 left out and not.
TEST(Evaluation, CountsTheScoredExamplesAndAveragesTheirLoss) {
  for (const char* protocol : {"clean", "published"}) {
    SCOPED_TRACE(protocol);
    Bench bench(
        SmallJob(protocol, "rope", "counting", {{"task.test_examples", std::int64_t{300}}}));
    const Score score = Evaluate(bench.model.decoder, bench.data, 96, bench.data.size());
    const LabeledBatch batch = bench.data.Range(96, bench.data.size());
    const at::Tensor logits = bench.model.decoder.Logits(batch.inputs, nullptr).to(at::kDouble);
    const std::int64_t width = logits.size(1);
    double loss = 0;
    std::int64_t correct = 0, total = 0;
    for (std::int64_t i = 0; i < logits.size(0); ++i) {
      const double* const row = logits.data_ptr<double>() + i * width;
      const std::int64_t label = batch.classes[i].item<std::int64_t>();
      if (label == 0 && std::string(protocol) == "published") continue;
      double sum = 0;
      for (std::int64_t c = 0; c < width; ++c) sum += std::exp(row[c]);
      loss += std::log(sum) - row[label];
      correct += std::max_element(row, row + width) - row == label;
      ++total;
    }
    EXPECT_EQ(score.total, total);
    EXPECT_EQ(score.correct, correct);
    EXPECT_NEAR(score.loss, loss / static_cast<double>(total), 1e-5);
    if (std::string(protocol) == "published") {
      EXPECT_LT(total, 300);
    }
  }
}

TEST(Analyses, RegistryIsTheCatalogs) {
  std::set<std::pair<std::string, int>> catalog, registry;
  for (const auto& entry : catalog::Analyses()) catalog.emplace(entry.name, entry.version);
  for (const auto& entry : AnalysisRegistry()) registry.emplace(entry.name, entry.version);
  EXPECT_EQ(registry, catalog);
}

}  // namespace
}  // namespace pelab::trainer
