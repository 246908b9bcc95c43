// The decoder and its positional encodings: against tests/golden/decoder.py, and by properties.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "tests/unit/trainer/model_for_test.h"
#include "worker/trainer/model/attention.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

catalog::Value ValueOf(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

spec::Job JobOf(const nlohmann::json& golden) {
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
  return spec::MakeJob("clean", golden["pe"]["name"].get<std::string>(), "distance", 0, set);
}

// Every PE under every protocol, and one switch at a time; double precision takes the plain
// attention, single the kernel.
TEST(Decoder, MatchesTheGoldenForwardPasses) {
  const nlohmann::json cases = Golden("decoder.json")["forward"];
  ASSERT_EQ(cases.size(), 50u);
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
  ASSERT_EQ(cases.size(), 24u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden["pe"].dump());
    const spec::Job job = JobOf(golden);
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
      const at::Tensor q =
          pe->Rotate(Side::kQuery, layer, piece("query"), 0).squeeze(0).transpose(0, 1);
      const at::Tensor k =
          pe->Rotate(Side::kKey, layer, piece("key"), 0).squeeze(0).transpose(0, 1);
      at::Tensor logits =
          at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(config.head_dim()));
      const at::Tensor bias = pe->LogitBias(layer, length);
      layers.push_back(bias.defined() ? logits + bias : logits);
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
  spec::Job job = SmallJob("clean", "rope", "distance");
  job.pe_version = 2;
  EXPECT_THAT([&] { TestModel model(job, 4); },
              testing::ThrowsMessage<TrainerError>(
                  testing::HasSubstr("no pe \"rope\" version 2; known: nope")));
}

// A rotation of the last positions alone is that of the whole.
TEST(Pe, RopeTurnsByDistanceAndAgreesOnPartsOfASequence) {
  const spec::Job job = SmallJob("clean", "rope", "distance");
  const ModelConfig config = ModelConfigFrom(job, 4);
  ParameterSet parameters;
  parameters.Add("unused", {1}, Init::Constant(0));
  const auto pe = MakePe({job, config, &parameters});
  parameters.Materialize(0, at::kCPU, at::kDouble);
  const at::Tensor x = at::sin(at::arange(16 * 16, at::kDouble)).view({1, 16, 2, 8});
  const at::Tensor whole = pe->Rotate(Side::kQuery, 0, x, 0);
  EXPECT_LT(LargestDifference(pe->Rotate(Side::kQuery, 0, x.narrow(1, 11, 5), 11),
                              whole.narrow(1, 11, 5)),
            1e-15);
  const at::Tensor q = x.narrow(1, 0, 1).expand({1, 16, 2, 8}),
                   k = x.narrow(1, 1, 1).expand({1, 16, 2, 8});
  const at::Tensor logits =
      at::matmul(pe->Rotate(Side::kQuery, 0, q, 0).transpose(1, 2),
                 pe->Rotate(Side::kKey, 0, k, 0).permute({0, 2, 3, 1}));  // (1, H, T, T)
  EXPECT_LT(LargestDifference(logits.narrow(2, 3, 13).narrow(3, 3, 13),
                              logits.narrow(2, 0, 13).narrow(3, 0, 13)),
            1e-12);
  EXPECT_GT(LargestDifference(logits.select(3, 0).select(2, 1), logits.select(3, 0).select(2, 9)),
            1e-3);
}

TEST(Pe, BiasesAreToeplitz) {
  for (const auto& [pe_name, protocol] :
       std::vector<std::pair<const char*, const char*>>{{"alibi", "clean"},
                                                        {"alibi", "published"},
                                                        {"relative", "clean"},
                                                        {"relative", "published"}}) {
    const spec::Job job = SmallJob(protocol, pe_name, "counting");
    const ModelConfig config = ModelConfigFrom(job, 4);
    ParameterSet parameters;
    const auto pe = MakePe({job, config, &parameters});
    parameters.Materialize(0, at::kCPU, at::kDouble);
    for (const std::int64_t length : {16, 5}) {
      const at::Tensor bias = pe->LogitBias(0, length);
      ASSERT_EQ(bias.sizes(), (std::vector<std::int64_t>{2, length, length}));
      EXPECT_EQ(LargestDifference(bias.narrow(1, 1, length - 1).narrow(2, 1, length - 1),
                                  bias.narrow(1, 0, length - 1).narrow(2, 0, length - 1)),
                0)
          << pe_name;
      EXPECT_GT(LargestDifference(bias.select(2, 0).select(1, 0), bias.select(2, 0).select(1, 2)),
                0)
          << pe_name;
    }
  }
}

class EveryPe : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, EveryPe,
                         testing::Values("nope", "absolute", "random", "relative", "alibi", "rope"),
                         [](const auto& info) { return info.param; });

// Changing a later token changes nothing before it.
TEST_P(EveryPe, IsCausalUnderACausalMask) {
  TestModel model(SmallJob("clean", GetParam(), "distance"), 4);
  const Batch batch = RandomBatch(2, 16, 40, false);
  Batch changed{batch.tokens.clone(), {}};
  changed.tokens.narrow(1, 10, 6).fill_(7);
  const auto hidden = [&](const Batch& of, const Decoder& decoder) {
    const at::Tensor input = decoder.Embed(of);
    at::Tensor x = input;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const at::Tensor heads =
          decoder.Heads(layer, decoder.ProjectLayer(layer, x, input, of), of, nullptr);
      x = decoder.AfterFeedForward(layer, decoder.AfterAttention(layer, x, heads, nullptr),
                                   nullptr);
    }
    return x;
  };
  const at::Tensor before = hidden(batch, model.decoder), after = hidden(changed, model.decoder);
  EXPECT_LT(LargestDifference(before.narrow(1, 0, 10), after.narrow(1, 0, 10)), 1e-12);
  EXPECT_GT(LargestDifference(before.narrow(1, 10, 6), after.narrow(1, 10, 6)), 1e-3);
}

// What stands in the padding does not matter where it is masked and not pooled, and does where it
// is attended.
TEST_P(EveryPe, PaddingIsSeenExactlyWhereItIsAttended) {
  for (const char* padding : {"masked", "attended"}) {
    TestModel model(SmallJob("clean", GetParam(), "distance",
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

// Without a mask and without positions the published read-out is a function of the set of tokens
// alone.
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

TEST_P(EveryPe, ParametersAtPaperSizeAreThoseOfTheAuthorsModules) {
  const std::map<std::string, std::int64_t> expected = {
      {"nope", 3457086}, {"absolute", 3457086}, {"alibi", 3457086},
      {"rope", 3457086}, {"relative", 3481566}, {"random", 3489854}};
  const spec::Job job = spec::MakeJob("published", GetParam(), "distance", 0);
  const ModelConfig config = ModelConfigFrom(job, job.Int("task.vocabulary"));
  ParameterSet parameters;
  const Decoder decoder(job, config, &parameters);
  EXPECT_EQ(parameters.count(), expected.at(GetParam()));
}

// Central differences in double precision, for every parameter tensor of both protocols, with
// padding.
TEST_P(EveryPe, GradientsAreThoseOfFiniteDifferences) {
  for (const char* protocol : {"clean", "published"}) {
    SCOPED_TRACE(protocol);
    TestModel model(
        SmallJob(protocol, GetParam(), "distance", {{"model.activation", std::string("gelu")}}), 4);
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
    // Single coordinates where the gradient is not nil, and random directions through everything.
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

// Single precision, whose attention is the kernel, gives double precision's gradient within
// rounding; with dropout too, whose masks are the same in both.
TEST_P(EveryPe, SinglePrecisionGradientsFollowDoublePrecision) {
  for (const char* protocol : {"clean", "published"}) {
    const spec::Job job = SmallJob(protocol, GetParam(), "distance", {{"model.dropout", 0.25}});
    const Batch batch = RandomBatch(3, 16, 40, true);
    const auto gradient = [&](at::ScalarType dtype) {
      TestModel model(job, 4, dtype);
      const Dropout dropout(model.decoder.config(), 1, 2, at::kCPU);
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

TEST(Attention, KernelAgreesWithThePlainPathForwardAndBackward) {
  struct Shape {
    std::int64_t batch, rows, keys, heads, width;
  };
  ModelConfig config;
  config.dropout = 0.2;
  config.dropout_at[static_cast<int>(DropoutSite::kAttention)] = true;
  for (const Shape& s :
       {Shape{2, 6, 6, 3, 4}, Shape{3, 1, 17, 2, 16}, Shape{2, 33, 33, 2, 20},
        Shape{1, 128, 128, 2, 16}, Shape{2, 5, 16, 1, 1}, Shape{1, 3, 512, 2, 7}}) {
    for (const bool with_dropout : {false, true}) {
      for (const int term_kind : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << "T' " << s.rows << ", T " << s.keys << ", d " << s.width
                                        << ", dropout " << with_dropout << ", term " << term_kind);
        const auto run = [&](bool kernel, at::ScalarType dtype) {
          const auto make = [&](std::int64_t seed, std::vector<std::int64_t> shape) {
            std::int64_t count = 1;
            for (const auto size : shape) count *= size;
            const at::Tensor x =
                at::sin(at::arange(count, at::kDouble) * 1.7 + seed).view(shape).to(dtype);
            return x.set_requires_grad(true);
          };
          AttentionInputs inputs;
          const at::Tensor q = make(1, {s.batch, s.rows, s.heads, s.width}),
                           k = make(2, {s.batch, s.keys, s.heads, s.width}),
                           v = make(3, {s.batch, s.keys, s.heads, s.width});
          at::Tensor term;
          if (term_kind == 1) term = make(4, {s.heads, s.rows, s.keys});
          if (term_kind == 2) {
            term = make(4, {s.batch, 1, 1, s.keys});
          }
          inputs = {q, k, v, term};
          if (term_kind == 2 && s.keys > 4) {
            inputs.logit_term = term + at::zeros({s.keys}, dtype)
                                           .index_fill(0, at::tensor({1, 3}, at::kLong),
                                                       -std::numeric_limits<double>::infinity());
          }
          const Dropout dropout(config, 3, 4, at::kCPU);
          const Dropout* const used = with_dropout ? &dropout : nullptr;
          const at::Tensor out =
              kernel ? AttendByKernel(inputs, 1, used) : AttendPlainly(inputs, 1, used);
          (out * at::cos(at::arange(out.numel(), at::kDouble)).view(out.sizes()).to(dtype))
              .sum()
              .backward();
          std::vector<at::Tensor> results = {out.detach(), q.grad(), k.grad(), v.grad()};
          if (term.defined()) results.push_back(term.grad());
          return results;
        };
        const auto plain = run(false, at::kDouble), kernel = run(true, at::kFloat);
        for (std::size_t i = 0; i < plain.size(); ++i) {
          ASSERT_EQ(kernel[i].sizes(), plain[i].sizes());
          EXPECT_LT(LargestDifference(plain[i], kernel[i]),
                    1e-5 * (1 + plain[i].abs().max().item<double>()))
              << "result " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pelab::trainer
