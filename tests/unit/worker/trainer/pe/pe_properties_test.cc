// Properties of the positional encodings at any size: over random shapes, seeds and weights.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

constexpr int kDraws = 8;

at::Tensor RandomDoubles(CounterRandom* random, const std::vector<std::int64_t>& shape) {
  const at::Tensor x = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = random->Normal();
  return x;
}

std::int64_t Between(CounterRandom* random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random->Below(static_cast<std::uint32_t>(most - least + 1)));
}

struct Shape {
  std::int64_t heads, head_dim, length, max_len;
};

Shape DrawShape(CounterRandom* random, std::int64_t least_heads = 1) {
  Shape shape;
  shape.heads = Between(random, least_heads, 6);  // powers of two and others
  shape.head_dim = 2 * Between(random, 1, 8);
  shape.length = Between(random, 4, 20);
  shape.max_len = shape.length + Between(random, 0, 9);
  return shape;
}

catalog::Values ValuesOf(const Shape& shape, std::int64_t seed) {
  return {{"model.heads", shape.heads},
          {"model.d_model", shape.heads * shape.head_dim},
          {"model.max_len", shape.max_len},
          {"task.length", shape.length},
          {"task.data_seed", seed}};
}

// One encoding of this shape, in double precision; with a causal mask if the seed is even.
struct LonePe {
  LonePe(const char* protocol, const Variant& variant, const Shape& shape, std::int64_t seed)
      : job(VariantJob(protocol, variant, ValuesOf(shape, seed))), config(ModelConfigFrom(job, 4)) {
    config.causal = seed % 2 == 0;
    pe = MakePe({job, config, &parameters});
    parameters.Materialize(seed, at::kCPU, at::kDouble);
  }
  experiment::Job job;
  ModelConfig config;
  ParameterSet parameters;
  std::unique_ptr<PositionalEncoding> pe;
};

Variant Named(const std::string& name) {
  for (const Variant& variant : Variants()) {
    if (variant.name == name) return variant;
  }
  ADD_FAILURE() << "no variant " << name;
  return {};
}

// Logits (H, T, T) of queries and keys that are the same at every position, so that only position
// matters.
at::Tensor LogitsOfConstantContent(const LonePe& lone, const Shape& shape, CounterRandom* random) {
  const std::vector<std::int64_t> all = {1, shape.length, shape.heads, shape.head_dim};
  const at::Tensor q = RandomDoubles(random, {1, 1, shape.heads, shape.head_dim}).expand(all);
  const at::Tensor k = RandomDoubles(random, {1, 1, shape.heads, shape.head_dim}).expand(all);
  return PeLogits(lone.pe.get(), 1, q, k).squeeze(0);
}

// How far the logits are from depending on i - j alone: the largest change along a diagonal.
double Unevenness(const at::Tensor& logits) {
  const std::int64_t most = logits.size(-1) - 1;
  return LargestDifference(logits.narrow(-2, 1, most).narrow(-1, 1, most),
                           logits.narrow(-2, 0, most).narrow(-1, 0, most));
}

TEST(PeProperties, LogitsDependOnDistanceAlone) {
  for (const char* name : {"nope", "rope", "rope_abs", "xpos", "partial_rope", "partial_rope_list",
                           "alibi", "relative", "shaw", "shaw_values"}) {
    for (const char* protocol : {"clean", "published"}) {
      CounterRandom random(1, std::string("test/distance/") + name + protocol);
      double spread = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        const Shape shape = DrawShape(&random, 2);
        const LonePe lone(protocol, Named(name), shape, draw);
        const at::Tensor logits = LogitsOfConstantContent(lone, shape, &random);
        EXPECT_LT(Unevenness(logits), 1e-11 * (1 + logits.abs().max().item<double>()))
            << name << " " << protocol << " H " << shape.heads << " d " << shape.head_dim << " T "
            << shape.length;
        spread = std::max(spread, (logits - logits.mean({1, 2}, true)).abs().max().item<double>());
      }
      // All encodings but nope depend on i - j.
      if (std::string(name) == "nope") {
        EXPECT_LT(spread, 1e-12);
      } else {
        EXPECT_GT(spread, 1e-3) << name;
      }
    }
  }
}

// A pair's logit is RoPE's times zeta_t^((i-j)/s), so it fades with distance.
TEST(PeProperties, XposIsRopeThatFades) {
  CounterRandom random(3, "test/xpos");
  for (int draw = 0; draw < kDraws; ++draw) {
    const Shape shape = DrawShape(&random);
    const LonePe xpos("clean", Named("xpos"), shape, draw);
    const LonePe rope("clean", Named("rope"), shape, draw);
    const auto pair = Between(&random, 0, shape.head_dim / 2 - 1);
    at::Tensor q = at::zeros({1, shape.length, shape.heads, shape.head_dim}, at::kDouble);
    q.narrow(3, 2 * pair, 2).copy_(RandomDoubles(&random, {1, shape.length, shape.heads, 2}));
    const at::Tensor faded = PeLogits(xpos.pe.get(), 0, q, q)[0];
    const at::Tensor plain = PeLogits(rope.pe.get(), 0, q, q)[0];
    const double zeta =
        (2.0 * static_cast<double>(pair) / static_cast<double>(shape.head_dim) + 0.4) / 1.4;
    ASSERT_LT(zeta, 1);
    for (std::int64_t i = 0; i < shape.length; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        const double factor = std::pow(zeta, static_cast<double>(i - j) / 20.0);
        EXPECT_LT(LargestDifference(faded.select(1, i).select(1, j),
                                    plain.select(1, i).select(1, j) * factor),
                  1e-12);
      }
    }
  }
}

TEST(PeProperties, PartialRopeTurnsTheChosenHeadsAndNoOthers) {
  CounterRandom random(4, "test/partial");
  for (int draw = 0; draw < kDraws; ++draw) {
    const Shape shape = DrawShape(&random);
    std::set<std::int64_t> chosen;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      if (random.Below(2) == 1) chosen.insert(head);
    }
    Variant variant = Named("partial_rope_list");
    variant.set["pe.head_list"] = std::vector<std::int64_t>(chosen.begin(), chosen.end());
    const bool list = draw % 2 == 0 && !chosen.empty();
    if (!list) {
      const auto first = Between(&random, 0, shape.heads);
      variant = {"first", "partial_rope", {{"pe.heads", first}}};
      chosen.clear();
      for (std::int64_t head = 0; head < first; ++head) chosen.insert(head);
    }
    const LonePe partial("clean", variant, shape, draw);
    const LonePe rope("clean", Named("rope"), shape, draw);
    const at::Tensor x = RandomDoubles(&random, {2, shape.length, shape.heads, shape.head_dim});
    const at::Tensor found = Turned(partial.pe.get(), Side::kKey, x);
    const at::Tensor turned = Turned(rope.pe.get(), Side::kKey, x);
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const at::Tensor& expected = chosen.count(head) != 0 ? turned : x;
      EXPECT_LT(LargestDifference(found.select(2, head), expected.select(2, head)), 1e-14)
          << "head " << head;
    }
    // The test can tell: under rope every head rotates.
    EXPECT_GT((turned - x).abs().amax({0, 1, 3}).min().item<double>(), 1e-3);
  }
}

TEST(PeProperties, PartialRopeRefusesHeadsThatAreNotThere) {
  const auto make = [](const catalog::Values& set) {
    const Shape shape{2, 8, 16, 16};
    return [=] { const LonePe lone("clean", {"", "partial_rope", set}, shape, 0); };
  };
  const auto says = [](const char* text) {
    return testing::ThrowsMessage<TrainerError>(testing::HasSubstr(text));
  };
  EXPECT_THAT(make({{"pe.heads", std::int64_t{3}}}), says("rotates head 2; allowed: 0 to 1"));
  EXPECT_THAT(
      make({{"pe.select", std::string("list")}, {"pe.head_list", std::vector<std::int64_t>{0, 7}}}),
      says("rotates head 7; allowed: 0 to 1"));
}

// Values a^V and keys a^K come from different tables, and all distances beyond the clip are equal.
TEST(PeProperties, ShawClipsDistances) {
  CounterRandom random(5, "test/shaw");
  for (int draw = 0; draw < kDraws; ++draw) {
    const Shape shape = DrawShape(&random);
    Variant variant = Named("shaw_values");
    const std::int64_t most = Between(&random, 1, shape.length + 2);
    variant.set["pe.max_distance"] = most;
    const LonePe lone("clean", variant, shape, draw);
    const at::Tensor keys = lone.pe->DistanceTerm(Side::kKey, 1, shape.length);
    const at::Tensor values = lone.pe->DistanceTerm(Side::kValue, 1, shape.length);
    const at::Tensor other = lone.pe->DistanceTerm(Side::kKey, 0, shape.length);
    EXPECT_GT(LargestDifference(keys, values), 1e-3);
    EXPECT_GT(LargestDifference(keys, other), 1e-3);
    at::Tensor table;
    for (const ParameterSet::Named& named : lone.parameters.NamedTensors()) {
      if (named.name == "layers.1.pe.key") table = named.tensor;
    }
    ASSERT_TRUE(table.defined());
    ASSERT_EQ(keys.size(0), 2 * shape.length - 1);
    for (std::int64_t distance = 1 - shape.length; distance < shape.length; ++distance) {
      const std::int64_t row = std::clamp(distance, -most, most) + most;
      EXPECT_TRUE(keys[distance + shape.length - 1].equal(table[row])) << distance;
    }
  }
}

// Rotary logits of latent attention with the same content at every position.
at::Tensor MlaLogits(const LonePe& lone, const Shape& shape, CounterRandom* random) {
  const at::Tensor x = RandomDoubles(random, {1, 1, shape.heads * shape.head_dim})
                           .expand({1, shape.length, shape.heads * shape.head_dim});
  const Projection made = lone.pe->Project(0, x, x, std::nullopt);
  return at::matmul(made.query.transpose(1, 2), made.key.permute({0, 2, 3, 1}))[0].detach();
}

TEST(PeProperties, LatentAttentionDependsOnDistanceWithARotationAndNotWithTheSlicedTable) {
  CounterRandom random(6, "test/mla");
  for (int draw = 0; draw < kDraws; ++draw) {
    const Shape shape = DrawShape(&random);
    for (const char* name : {"mla_deepseek", "mla_authors"}) {
      const LonePe lone("clean", Named(name), shape, draw);
      const at::Tensor logits = MlaLogits(lone, shape, &random);
      if (std::string(name) == "mla_deepseek") {
        EXPECT_LT(Unevenness(logits), 1e-11 * (1 + logits.abs().max().item<double>()));
        EXPECT_GT(
            LargestDifference(logits.select(2, 0).select(1, 0), logits.select(2, 0).select(1, 3)),
            1e-6);
      } else {
        EXPECT_GT(Unevenness(logits), 1e-4);
      }
    }
  }
}

// A shared rotary query gives every head the same part of the logit.
TEST(PeProperties, SharedRotaryQueriesAreTheSameForEveryHead) {
  CounterRandom random(7, "test/shared");
  const Shape shape{3, 4, 6, 8};
  for (const bool shared : {true, false}) {
    Variant variant = Named("mla_deepseek");
    variant.set["pe.rotary_query"] = std::string(shared ? "shared" : "per_head");
    const LonePe lone("clean", variant, shape, 1);
    const at::Tensor x = RandomDoubles(&random, {2, 6, 12});
    const Projection made = lone.pe->Project(1, x, x, std::nullopt);
    ASSERT_EQ(made.query.sizes(), (std::vector<std::int64_t>{2, 6, 3, 8}));
    ASSERT_EQ(made.value.sizes(), (std::vector<std::int64_t>{2, 6, 3, 4}));
    const at::Tensor rotary = made.query.narrow(3, 4, 4);
    EXPECT_EQ(rotary.select(2, 0).equal(rotary.select(2, 2)), shared);
    const at::Tensor keys = made.key.narrow(3, 4, 4);
    EXPECT_TRUE(keys.select(2, 0).equal(keys.select(2, 2)));
  }
}

// Leaving out slice s equals zeroing columns [s d, (s+1) d) of the three up-projections.
TEST(PeProperties, LeavingOutALatentSliceIsZeroingItsColumns) {
  for (const char* name : {"mla_deepseek", "mla_authors"}) {
    for (const char* source : {"self", "input"}) {
      const experiment::Job job =
          VariantJob("clean", Named(name), {{"model.kv_source", std::string(source)}});
      TestModel model(job, 4);
      const Batch batch = RandomBatch(2, 16, 40, false);
      const at::Tensor x = model.decoder.Embed(batch);
      const at::Tensor input = x * 0.5;
      const std::int64_t latent = job.Int("pe.latent"), d = model.config.head_dim();
      // 12 or 10 channels in slices of 8: the last one is narrower.
      ASSERT_EQ(model.decoder.LatentSlices(), 2);
      for (std::int64_t slice = 0; slice < 2; ++slice) {
        const auto without = model.decoder.ProjectLayer(1, x, input, batch, slice);
        TestModel cut(job, 4);
        for (const char* part : {"query", "key", "value"}) {
          cut.Parameter(std::string("layers.1.attention.") + part + ".weight")
              .narrow(1, slice * d, std::min(d, latent - slice * d))
              .zero_();
        }
        const auto expected = cut.decoder.ProjectLayer(1, x, input, batch);
        const auto intact = model.decoder.ProjectLayer(1, x, input, batch);
        EXPECT_LT(LargestDifference(without.query_rows, expected.query_rows), 1e-12);
        EXPECT_LT(LargestDifference(without.key, expected.key), 1e-12);
        EXPECT_LT(LargestDifference(without.value, expected.value), 1e-12);
        EXPECT_GT(LargestDifference(without.value, intact.value), 1e-3);
        // The rotary channels use the whole latent.
        EXPECT_TRUE(without.query_rows.narrow(3, d, without.query_rows.size(3) - d)
                        .equal(intact.query_rows.narrow(3, d, intact.query_rows.size(3) - d)));
      }
      EXPECT_THROW(model.decoder.ProjectLayer(1, x, input, batch, 2), std::logic_error);
    }
  }
  const TestModel rope(SmallJob("clean", "rope", "distance"), 4);
  EXPECT_EQ(rope.decoder.LatentSlices(), 0);
}

// An input without examples gives queries only. So keys and values that do not change are computed
// once.
TEST(PeProperties, QueriesComeWithoutKeys) {
  for (const Variant& variant : Variants()) {
    TestModel model(VariantJob("clean", variant, {{"model.kv_source", std::string("input")}}), 4);
    const Batch batch = RandomBatch(2, 16, 40, false);
    const at::Tensor x = model.decoder.Embed(batch);
    const auto both = model.decoder.ProjectLayer(1, x, x, batch);
    const auto alone = model.decoder.ProjectLayer(1, x, x.narrow(0, 0, 0), batch);
    EXPECT_LT(LargestDifference(both.query_rows, alone.query_rows), 1e-12) << variant.name;
    EXPECT_EQ(alone.key.size(0), 0);
  }
}

class EveryPeProperty : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(, EveryPeProperty, testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

// Under a causal mask, changing tokens from some position on changes nothing before it: neither the
// residual stream nor the logits read there.
TEST_P(EveryPeProperty, LaterTokensChangeNoEarlierLogit) {
  CounterRandom random(8, "test/causal/" + GetParam().name);
  for (int draw = 0; draw < kDraws; ++draw) {
    const Shape shape = DrawShape(&random, 2);
    catalog::Values set = ValuesOf(shape, draw);
    set["model.mask"] = std::string("causal");
    set["model.readout"] = std::string("last");
    TestModel model(VariantJob(draw % 2 == 0 ? "clean" : "published", GetParam(), set), 5);
    const Batch batch = RandomBatch(2, shape.length, 40, false);
    const std::int64_t from = Between(&random, 1, shape.length - 1);
    Batch changed{batch.tokens.clone(), {}};
    changed.tokens.narrow(1, from, shape.length - from) =
        (changed.tokens.narrow(1, from, shape.length - from) + 7).remainder(40);
    const auto logits = [&](Batch of) {  // (B, T, C), position by position
      std::vector<at::Tensor> places;
      for (std::int64_t t = 1; t <= shape.length; ++t) {
        of.lengths = at::full({2}, t, at::kLong);
        places.push_back(model.decoder.Logits(of, nullptr));
      }
      return at::stack(places, 1).detach();
    };
    const at::Tensor before = logits(batch), after = logits(changed);
    EXPECT_LT(LargestDifference(before.narrow(1, 0, from), after.narrow(1, 0, from)), 1e-12)
        << "H " << shape.heads << " d " << shape.head_dim << " T " << shape.length << " from "
        << from;
    EXPECT_GT(LargestDifference(before.narrow(1, from, shape.length - from),
                                after.narrow(1, from, shape.length - from)),
              1e-4);
  }
}

// Every declared parameter is used. (Without rotations a key's bias adds the same to all logits of
// a query, so its gradient is rightly zero.)
TEST_P(EveryPeProperty, EveryParameterIsUsed) {
  for (const char* protocol : {"clean", "published"}) {
    TestModel model(VariantJob(protocol, GetParam()), 4);
    const Batch batch = RandomBatch(3, 16, 40, true);
    at::cross_entropy_loss(model.decoder.Logits(batch, nullptr), at::tensor({1, 0, 3}, at::kLong))
        .backward();
    std::set<std::string> names;
    std::int64_t offset = 0;
    for (const auto& named : model.parameters.NamedTensors()) {
      EXPECT_TRUE(names.insert(named.name).second) << named.name << " twice";
      if (named.name == "pe.table" && !GetParam().pe.compare("random") &&
          !model.job.Bool("pe.trainable")) {
        continue;
      }
      const double most = model.parameters.flat_gradient()
                              .narrow(0, offset, named.tensor.numel())
                              .abs()
                              .max()
                              .item<double>();
      offset += named.tensor.numel();
      if (named.name.find("key.bias") == std::string::npos) {
        EXPECT_GT(most, 1e-9) << protocol << " " << named.name;
      }
    }
    EXPECT_EQ(offset, model.parameters.count());
  }
}

TEST(PeProperties, LatentAttentionHasItsOwnWeightsAndNoOthers) {
  const auto shapes = [](const char* protocol) {
    TestModel model(SmallJob(protocol, "mla", "distance"), 4);
    std::map<std::string, std::vector<std::int64_t>> found;
    for (const auto& named : model.parameters.NamedTensors()) {
      if (named.name.rfind("layers.1.attention.", 0) == 0 || named.name == "pe.table") {
        found[named.name] = named.tensor.sizes().vec();
      }
    }
    return found;
  };
  using Shapes = std::map<std::string, std::vector<std::int64_t>>;
  const std::string a = "layers.1.attention.";
  Shapes expected = {{a + "norm.weight", {16}},         {a + "norm.bias", {16}},
                     {a + "latent_kv.weight", {8, 16}}, {a + "latent_query.weight", {8, 16}},
                     {a + "query.weight", {16, 8}},     {a + "key.weight", {16, 8}},
                     {a + "value.weight", {16, 8}},     {a + "rotary_key.weight", {8, 16}},
                     {a + "output.weight", {16, 16}}};
  Shapes published = expected;
  published["pe.table"] = {16, 16};
  published[a + "rotary_query.weight"] = {8, 8};
  EXPECT_EQ(shapes("published"), published);
  Shapes clean = expected;
  clean[a + "rotary_query.weight"] = {16, 8};
  clean[a + "latent_kv.norm"] = clean[a + "latent_query.norm"] = {8};
  for (const char* part : {"query", "key", "value", "output"}) clean[a + part + ".bias"] = {16};
  EXPECT_EQ(shapes("clean"), clean);
}

}  // namespace
}  // namespace pelab::trainer
