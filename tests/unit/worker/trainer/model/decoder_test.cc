// The decoder and its positional encodings: against tests/golden/decoder.py, and by properties.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

catalog::Value ValueOf(const nlohmann::json& value) {
  if (value.is_array()) return value.get<std::vector<std::int64_t>>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

experiment::Job JobOf(const nlohmann::json& golden) {
  catalog::Values set = {{"task.length", std::int64_t{6}}, {"model.dropout", 0.0}};
  for (const auto& [name, value] : golden["config"].items()) {
    if (name == "vocabulary") {
      set["task.vocabulary"] = ValueOf(value);
    } else if (name != "classes") {
      set["model." + name] = ValueOf(value);
    }
  }
  for (const auto& [name, value] : golden["pe"].items()) {
    if (name != "name") set["pe." + name] = ValueOf(value);
  }
  return experiment::MakeJob("clean", golden["pe"]["name"].get<std::string>(), "distance", 0, set);
}

// Every encoding under every protocol, and one switch at a time. Double precision uses the plain
// attention, single precision the kernel.
TEST(Decoder, MatchesTheGoldenForwardPasses) {
  const nlohmann::json cases = Golden("decoder.json")["forward"];
  ASSERT_GE(cases.size(), 92u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden["pe"].dump() + " " + golden["config"].dump());
    Batch batch{Ints(golden["tokens"]), {}};
    if (golden["padded"]) batch.lengths = Flat(golden["lengths"]).to(at::kLong);
    const at::Tensor expected = Flat(golden["logits"]);
    TestModel exact(JobOf(golden), golden["config"]["classes"]);
    exact.FillByFormula();
    EXPECT_LT(LargestDifference(exact.decoder.Logits(batch, nullptr), expected), 1e-10);
    TestModel single(JobOf(golden), golden["config"]["classes"], at::kFloat);
    single.FillByFormula();
    EXPECT_LT(LargestDifference(single.decoder.Logits(batch, nullptr), expected), 1e-4);
  }
}

TEST(Pe, MatchesTheGoldenInputTermsAndLogits) {
  const nlohmann::json cases = Golden("decoder.json")["pe"];
  ASSERT_GE(cases.size(), 36u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden["pe"].dump());
    const experiment::Job job = JobOf(golden);
    const ModelConfig config = ModelConfigFrom(job, 5);
    ParameterSet parameters;
    const auto pe = MakePe({job, config, &parameters});
    parameters.Materialize(0, at::kCPU, at::kDouble);
    for (const auto& named : parameters.NamedTensors()) {
      for (std::int64_t i = 0; i < named.tensor.numel(); ++i) {
        named.tensor.data_ptr<double>()[i] = FormulaWeight(named.name, i);
      }
    }
    const std::int64_t length = golden["length"];
    const auto piece = [&](const std::string& name) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < length * config.d_model; ++i)
        values.push_back(FormulaWeight(name, i));
      return at::tensor(values, at::kDouble).view({1, length, config.heads, config.head_dim()});
    };
    const at::Tensor term = pe->InputTerm(length);
    EXPECT_LT(
        LargestDifference(term.defined() ? term : at::zeros({length, config.d_model}, at::kDouble),
                          Flat(golden["input_term"])),
        1e-12);
    std::vector<at::Tensor> layers;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      layers.push_back(PeLogits(pe.get(), layer, piece("query"), piece("key")).squeeze(0));
    }
    EXPECT_LT(LargestDifference(at::stack(layers), Flat(golden["logits"])), 1e-12);
  }
}

TEST(Pe, RegistryIsTheCatalogs) {
  std::set<std::pair<std::string, int>> catalog, registry;
  for (const auto& entry : catalog::Pes()) catalog.emplace(entry.name, entry.version);
  for (const auto& entry : PeRegistry()) registry.emplace(entry.name, entry.version);
  EXPECT_EQ(registry, catalog);
}

TEST(Pe, UnknownVersionIsRefused) {
  experiment::Job job = SmallJob("clean", "rope", "distance");
  job.pe_version = 2;
  EXPECT_THAT([&] { TestModel model(job, 4); },
              testing::ThrowsMessage<TrainerError>(
                  testing::HasSubstr("no pe \"rope\" version 2; known: nope")));
}

class EveryPe : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(, EveryPe, testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

// The content of padding does not matter if it is masked and not pooled; it matters if it is
// attended.
TEST_P(EveryPe, PaddingIsSeenExactlyWhereItIsAttended) {
  for (const char* padding : {"masked", "attended"}) {
    TestModel model(VariantJob("clean", GetParam(),
                               {{"model.mask", std::string("none")},
                                {"model.key_padding", std::string(padding)}}),
                    4);
    const Batch batch = RandomBatch(3, 16, 40, true);
    Batch changed{at::where(batch.tokens.eq(0), at::full({}, 9, at::kInt), batch.tokens),
                  batch.lengths};
    const double difference = LargestDifference(model.decoder.Logits(batch, nullptr),
                                                model.decoder.Logits(changed, nullptr));
    if (std::string(padding) == "masked") {
      EXPECT_LT(difference, 1e-12);
    } else {
      EXPECT_GT(difference, 1e-4);
    }
  }
}

// Without a mask and without positions the published readout depends only on the set of tokens.
TEST(Decoder, PublishedNopeIsASetFunctionAndRopeIsNot) {
  const Batch batch = RandomBatch(2, 16, 40, false);
  const Batch reversed{batch.tokens.flip(1), {}};
  TestModel nope(SmallJob("published", "nope", "distance"), 40),
      rope(SmallJob("published", "rope", "distance"), 40);
  EXPECT_LT(LargestDifference(nope.decoder.Logits(batch, nullptr),
                              nope.decoder.Logits(reversed, nullptr)),
            1e-12);
  EXPECT_GT(LargestDifference(rope.decoder.Logits(batch, nullptr),
                              rope.decoder.Logits(reversed, nullptr)),
            1e-3);
}

TEST_P(EveryPe, ParametersAtPaperSizeAreCountedExactly) {
  // Computed by hand. The numbers of `published` are those of the authors' modules where these
  // exist.
  constexpr std::int64_t kPublished = 3457086, kClean = 3328070;
  constexpr std::int64_t kShaw = 6 * 255 * 16, kTable = kShaw, kBuckets = 32 * 16;
  constexpr std::int64_t kPositions = 128 * 256;
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> extra = {
      {"random", {kPositions, 0}},
      {"absolute_learned", {kPositions, kPositions}},
      {"relative", {kTable, kBuckets}},
      {"shaw", {kShaw, kShaw}},
      {"shaw_values", {2 * kShaw, 2 * kShaw}},
      {"mla", {3324478 - kPublished, 3354182 - kClean}},
      {"mla_deepseek", {3477566 - kPublished, 3354182 - kClean}},
      {"mla_authors", {3324478 - kPublished, 3201094 - kClean}}};
  const auto found = extra.find(GetParam().name);
  const auto [published, clean] =
      found == extra.end() ? std::pair<std::int64_t, std::int64_t>() : found->second;
  const auto count = [](const experiment::Job& job, std::int64_t classes) {
    ParameterSet parameters;
    const Decoder decoder(job, ModelConfigFrom(job, classes), &parameters);
    return parameters.count();
  };
  catalog::Values set = GetParam().set;
  set.erase("pe.latent");  // the paper's value
  set.erase("pe.rotary");
  set.erase("pe.max_distance");
  const auto at_paper_size = [&](const char* protocol) {
    return experiment::MakeJob(protocol, GetParam().pe, "distance", 0, set);
  };
  EXPECT_EQ(count(at_paper_size("published"), 574), kPublished + published);
  EXPECT_EQ(count(at_paper_size("clean"), 70), kClean + clean);
}

// Central differences in double precision, for every parameter tensor of both protocols, with
// padding.
TEST_P(EveryPe, GradientsAreThoseOfFiniteDifferences) {
  for (const char* protocol : {"clean", "published"}) {
    SCOPED_TRACE(protocol);
    TestModel model(VariantJob(protocol, GetParam(), {{"model.activation", std::string("gelu")}}),
                    4);
    const Batch batch = RandomBatch(3, 8, 40, true);
    const at::Tensor classes = at::tensor({1, 0, 3}, at::kLong);
    const auto loss = [&] {
      return at::cross_entropy_loss(model.decoder.Logits(batch, nullptr), classes);
    };
    loss().backward();
    const at::Tensor gradient = model.parameters.flat_gradient().clone();
    const at::NoGradGuard no_grad;
    CounterRandom random(5, "test/directions");
    at::Tensor flat = model.parameters.flat();
    // Checks single coordinates whose gradient is not near zero, and random directions through all
    // of them.
    const at::Tensor live = gradient.abs().gt(1e-4).nonzero().flatten();
    ASSERT_GT(live.numel(), 500);
    for (int trial = 0; trial < 60; ++trial) {
      at::Tensor direction = at::zeros_like(flat);
      if (trial < 50) {
        const auto at =
            live[random.Below(static_cast<std::uint32_t>(live.numel()))].item<std::int64_t>();
        direction[at] = 1;
      } else {
        for (std::int64_t i = 0; i < flat.numel(); ++i)
          direction.data_ptr<double>()[i] = random.Normal();
        direction /= direction.norm();
      }
      constexpr double kStep = 1e-5;
      flat += direction * kStep;
      const double up = loss().item<double>();
      flat -= direction * (2 * kStep);
      const double down = loss().item<double>();
      flat += direction * kStep;
      const double slope = (gradient * direction).sum().item<double>();
      EXPECT_NEAR((up - down) / (2 * kStep), slope, 1e-7 + 1e-5 * std::abs(slope));
    }
  }
}

// Single precision uses the attention kernel. Its gradients must equal those of double precision
// within rounding, also with dropout, whose masks are the same in both.
TEST_P(EveryPe, SinglePrecisionGradientsFollowDoublePrecision) {
  for (const char* protocol : {"clean", "published"}) {
    const experiment::Job job = VariantJob(protocol, GetParam(), {{"model.dropout", 0.25}});
    const Batch batch = RandomBatch(3, 16, 40, true);
    const auto gradient = [&](at::ScalarType dtype) {
      TestModel model(job, 4, dtype);
      const Dropout dropout(model.decoder.config(), 1, 2);
      at::cross_entropy_loss(model.decoder.Logits(batch, &dropout),
                             at::tensor({1, 0, 3}, at::kLong))
          .backward();
      return model.parameters.flat_gradient().to(at::kDouble);
    };
    const at::Tensor exact = gradient(at::kDouble);
    EXPECT_GT(exact.abs().max().item<double>(), 1e-2);
    EXPECT_LT(LargestDifference(gradient(at::kFloat), exact), 2e-5) << protocol;
  }
}

}  // namespace
}  // namespace pelab::trainer
