// Members: models of several seeds computed side by side, against each model alone. For every
// encoding and both protocols, with dropout, padded batches and gradients.
#include "worker/trainer/parameters/members.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

const std::vector<std::int64_t> kSeeds = {3, 11, 4};
constexpr std::int64_t kExamples = 5;  // examples of each member

// A decoder with members of these seeds.
struct MembersModel {
  MembersModel(const experiment::Job& job, const std::vector<std::int64_t>& seeds,
               at::ScalarType type)
      : decoder(job, ModelConfigFrom(job, 7), &parameters) {
    parameters.Materialize(seeds, at::kCPU, type == at::kBFloat16 ? at::kFloat : type,
                           type == at::kBFloat16);
  }
  ParameterSet parameters;
  Decoder decoder;
};

// Different tokens, lengths and classes for every member.
Batch TokensOf(std::int64_t members, std::int64_t first, bool padded) {
  const at::Tensor tokens =
      (RandomTensor("tokens", {3 * kExamples, 16}).abs() * 1e4).remainder(40).to(at::kInt);
  const at::Tensor lengths =
      at::tensor(std::vector<std::int64_t>{16, 3, 9, 1, 12, 16, 2, 7, 16, 5, 11, 1, 16, 8, 4});
  const auto part = [&](const at::Tensor& x) {
    return x.narrow(0, first * kExamples, members * kExamples);
  };
  return {part(tokens), padded ? part(lengths) : at::Tensor()};
}
at::Tensor ClassesOf(std::int64_t members, std::int64_t first) {
  return at::tensor(std::vector<std::int64_t>{0, 6, 3, 3, 1, 0, 0, 2, 5, 1, 4, 6, 0, 2, 2})
      .narrow(0, first * kExamples, members * kExamples);
}

struct MembersOutcome {
  at::Tensor logits;
  std::vector<ClassifiedFigures> figures;
};

// Forward and backward in two parts, like micro-batches: the first examples of every member, then
// the others.
MembersOutcome OneBatchOf(MembersModel* model, const Batch& batch, const at::Tensor& classes) {
  const std::int64_t members = model->parameters.members();
  const Dropout dropout(model->decoder.config(), model->parameters.seeds(), 5);
  ClassifiedSums sums(at::kCPU, members);
  const at::Tensor scored = sums.CountScored(classes, 0);
  std::vector<at::Tensor> all;
  for (const auto& [begin, count] : {std::pair{0, 2}, std::pair{2, 3}}) {
    const auto part = [&, b = begin, n = count](const at::Tensor& x) {
      if (!x.defined()) return x;
      return x.unflatten(0, {members, kExamples}).narrow(1, b, n).flatten(0, 1).contiguous();
    };
    const Dropout own = dropout.From(begin);
    const at::Tensor logits =
        model->decoder.Logits({part(batch.tokens), part(batch.lengths)}, &own);
    logits.backward(sums.AddAndDifferentiate(logits.detach(), part(classes), 0, scored));
    all.push_back(logits.detach().unflatten(0, {members, count}));
  }
  model->parameters.GatherGradients();
  return {at::cat(all, 1).flatten(0, 1), sums.Take()};
}

class EveryMember : public testing::TestWithParam<std::tuple<std::string, Variant>> {};

// Expects that each member's results are those of the member alone: to the bit, or within `most`.
void ExpectAsAlone(const experiment::Job& job, at::ScalarType type, bool padded, double most) {
  const auto members = static_cast<std::int64_t>(kSeeds.size());
  MembersModel together(job, kSeeds, type);
  const MembersOutcome all =
      OneBatchOf(&together, TokensOf(members, 0, padded), ClassesOf(members, 0));
  for (std::int64_t m = 0; m < members; ++m) {
    SCOPED_TRACE("member " + std::to_string(m));
    MembersModel alone(job, {kSeeds[m]}, type);
    ASSERT_EQ(together.parameters.count(), alone.parameters.count());
    EXPECT_TRUE(together.parameters.TakeMember(together.parameters.flat(), m)
                    .equal(alone.parameters.flat()))
        << "they start alike";
    const MembersOutcome one = OneBatchOf(&alone, TokensOf(1, m, padded), ClassesOf(1, m));
    const at::Tensor logits = all.logits.narrow(0, m * kExamples, kExamples);
    const at::Tensor gradient =
        together.parameters.TakeMember(together.parameters.flat_gradient(), m);
    EXPECT_GT(gradient.abs().max().item<double>(), 0);
    EXPECT_LE(RelativeError(logits, one.logits), most);
    EXPECT_LE(RelativeError(gradient, alone.parameters.flat_gradient()), most);
    EXPECT_NEAR(all.figures[m].loss, one.figures[0].loss, most * one.figures[0].loss);
    EXPECT_NEAR(all.figures[m].mean_loss, one.figures[0].mean_loss, most);
    EXPECT_EQ(all.figures[m].correct, one.figures[0].correct);
    EXPECT_EQ(all.figures[m].scored, one.figures[0].scored);
  }
}

TEST_P(EveryMember, IsComputedAsAlone) {
  const auto& [protocol, variant] = GetParam();
  const experiment::Job job = VariantJob(protocol, variant, {{"model.dropout", 0.2}});
  ExpectAsAlone(job, at::kDouble, true, 1e-12);  // plain operations
  // only the last position, if only that one is read
  ExpectAsAlone(job, at::kDouble, false, 1e-12);
  ExpectAsAlone(job, at::kBFloat16, true, 0.02);  // likewise
}

// With the CPU's fused kernels and matrix products, a member has the same bits as alone.
TEST_P(EveryMember, HasTheBitsItHasAlone) {
  const auto& [protocol, variant] = GetParam();
  const experiment::Job job = VariantJob(protocol, variant, {{"model.dropout", 0.2}});
  ExpectAsAlone(job, at::kFloat, true, 0);
  ExpectAsAlone(job, at::kFloat, false, 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, EveryMember,
                         testing::Combine(testing::Values("clean", "published"),
                                          testing::ValuesIn(Variants())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// Data, order, dropout, schedule, evaluation and checkpoints of whole epochs.
// 16-bit factors on a CPU: sums in 32 bits, rounded once, and so their gradients.
TEST(Members, ProductsOf16BitsAreRoundedOnce) {
  for (const std::int64_t members : {1, 3}) {
    const auto rounded = [](const char* name, const std::vector<std::int64_t>& shape) {
      return RandomTensor(name, shape).to(at::kBFloat16);
    };
    std::vector<std::int64_t> shape = {6, 200};
    if (members > 1) shape.insert(shape.begin(), members);
    const at::Tensor x = rounded("x", {3, 4, 200}), weight = rounded("weight", shape);
    const at::Tensor to_out = rounded("to_out", {3, 4, 6});
    const auto gradients = [&](at::ScalarType type) {
      const at::Tensor a = x.detach().to(type, false, true).requires_grad_();
      const at::Tensor b = weight.detach().to(type, false, true).requires_grad_();
      const at::Tensor out = ProductWith(a, b);
      out.backward(to_out.to(type));
      return std::vector<at::Tensor>{out.detach(), a.grad(), b.grad()};
    };
    const std::vector<at::Tensor> narrow = gradients(at::kBFloat16), wide = gradients(at::kFloat);
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      EXPECT_EQ(narrow[i].scalar_type(), at::kBFloat16);
      EXPECT_TRUE(narrow[i].equal(wide[i].to(at::kBFloat16))) << members << " members, " << i;
    }
  }
}

TEST(Members, TrainForEpochsAsAlone) {
  std::vector<experiment::Job> jobs;
  std::vector<Dataset> data;
  for (const std::int64_t seed : kSeeds) {
    experiment::Job job = SmallJob("clean", "relative", "counting", {{"model.dropout", 0.2}});
    job.seed = seed;
    job.values["task.data_seed"] = seed;
    data.push_back(MakeDataset(job));
    jobs.push_back(std::move(job));
  }
  std::vector<const Dataset*> sets;
  for (const Dataset& set : data) sets.push_back(&set);
  const LabelSpace labels = LabelSpaceOf(jobs[0], data[0]);
  const auto model = [&](const std::vector<std::int64_t>& seeds) {
    auto made = std::make_unique<ParameterSet>();
    auto decoder =
        std::make_unique<Decoder>(jobs[0], ModelConfigFrom(jobs[0], labels.classes), made.get());
    made->Materialize(seeds, at::kCPU, at::kFloat);
    return std::pair(std::move(made), std::move(decoder));
  };
  const auto [parameters, decoder] = model(kSeeds);
  const DeviceData all(sets, labels, at::kCPU);
  Trainer together(jobs[0], decoder.get(), parameters.get(), &all, {/*micro_batch=*/20});
  std::vector<std::vector<EpochResult>> epochs = {together.RunEpoch(0), together.RunEpoch(1)};
  for (std::size_t m = 0; m < kSeeds.size(); ++m) {
    SCOPED_TRACE("member " + std::to_string(m));
    const auto [own, own_decoder] = model({kSeeds[m]});
    const DeviceData own_data(data[m], labels, at::kCPU);
    Trainer alone(jobs[m], own_decoder.get(), own.get(), &own_data, {20});
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const EpochResult expected = alone.RunEpoch(epoch)[0], got = epochs[epoch][m];
      EXPECT_EQ(got.train_loss, expected.train_loss);
      EXPECT_EQ(got.train_correct, expected.train_correct);
      EXPECT_EQ(got.train_total, expected.train_total);
      EXPECT_EQ(got.test.loss, expected.test.loss);
      EXPECT_EQ(got.test.correct, expected.test.correct);
    }
    const Checkpoint kept = together.Snapshot(2, static_cast<std::int64_t>(m));
    const Checkpoint expected = alone.Snapshot(2);
    EXPECT_TRUE(kept.parameters.equal(expected.parameters));
    EXPECT_TRUE(kept.first_moment.equal(expected.first_moment));
    EXPECT_TRUE(kept.second_moment.equal(expected.second_moment));
    for (const ParameterSet::Named& named : own->NamedTensors()) {
      bool found = false;
      for (const auto& of : parameters->NamedTensors(static_cast<std::int64_t>(m))) {
        if (of.name != named.name) continue;
        found = true;
        EXPECT_TRUE(of.tensor.equal(named.tensor)) << named.name;
      }
      EXPECT_TRUE(found) << named.name;
    }
  }
  // A member continues from its own checkpoint, at any position among the members.
  const auto [later, later_decoder] = model({kSeeds[2], kSeeds[1]});
  const std::vector<const Dataset*> turned = {sets[2], sets[1]};
  const DeviceData turned_data(turned, labels, at::kCPU);
  Trainer resumed(jobs[0], later_decoder.get(), later.get(), &turned_data, {20});
  Trainer first(jobs[0], decoder.get(), parameters.get(), &all, {20});
  resumed.Restore(together.Snapshot(1, 2), 0);
  EXPECT_TRUE(resumed.Snapshot(1, 0).parameters.equal(together.Snapshot(1, 2).parameters));
  EXPECT_FALSE(resumed.Snapshot(1, 1).parameters.equal(together.Snapshot(1, 1).parameters));
}

TEST(Members, OneThatIsNotANumberLeavesTheOthersAlone) {
  const experiment::Job job = SmallJob("clean", "rope", "distance");
  MembersModel sound(job, kSeeds, at::kFloat), broken(job, kSeeds, at::kFloat);
  {
    const at::NoGradGuard no_grad;
    broken.parameters.PutMember(
        at::full({broken.parameters.count()}, std::numeric_limits<float>::quiet_NaN()), 1,
        broken.parameters.flat());
  }
  const MembersOutcome expected = OneBatchOf(&sound, TokensOf(3, 0, true), ClassesOf(3, 0));
  const MembersOutcome got = OneBatchOf(&broken, TokensOf(3, 0, true), ClassesOf(3, 0));
  EXPECT_TRUE(std::isnan(got.figures[1].loss));
  for (const std::int64_t m : {0, 2}) {
    EXPECT_EQ(got.figures[m].loss, expected.figures[m].loss);
    EXPECT_TRUE(broken.parameters.TakeMember(broken.parameters.flat_gradient(), m)
                    .equal(sound.parameters.TakeMember(sound.parameters.flat_gradient(), m)));
  }
}

}  // namespace
}  // namespace pelab::trainer
