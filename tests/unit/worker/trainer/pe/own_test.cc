// Own encodings against the built-in ones that they imitate, and by properties.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/worker/trainer/pe/own_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/analysis/head_ablation.h"
#include "worker/trainer/model/attention.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/pe/tables.h"
#include "worker/trainer/train/micro_batch.h"

namespace pelab::trainer {
namespace {

constexpr const char* kSizes = R"(
def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
    self.heads = sizes["heads"]
    self.width = sizes["head_size"]
    self.d_model = sizes["d_model"]
    self.max_len = sizes["max_len"]
)";
const std::map<std::string, std::int64_t> kNumbers = {
    {"heads", 1}, {"width", 1}, {"d_model", 1}, {"max_len", 1}};

// Slopes 2^(-8h/H) for a power of two.
constexpr const char* kAlibiRow = R"(
def row(self, length: int) -> Tensor:
    distance = torch.arange(1 - length, length).double().abs()
    head = torch.arange(1, self.heads + 1).double()
    return -torch.pow(2.0, -8.0 * head / float(self.heads)).unsqueeze(1) * distance
def pairs(self, rows: int, keys: int) -> Tensor:
    key = torch.arange(keys)
    return self.row(keys)[:, key.unsqueeze(0) - key[keys - rows:].unsqueeze(1) + keys - 1]
)";

OwnText AlibiByDistance() {
  return {std::string(kSizes) + kAlibiRow + R"(
def distance_bias(self, layer: int, length: int) -> Tensor:
    return self.row(length)
)",
          {"distance_bias"},
          {},
          {},
          kNumbers};
}
OwnText AlibiByPair() {
  return {std::string(kSizes) + kAlibiRow + R"(
def pair_bias(self, layer: int, query: Tensor, key: Tensor) -> Tensor:
    return self.pairs(query.size(2), key.size(2))
)",
          {"pair_bias"},
          {},
          {},
          kNumbers};
}
OwnText AlibiByLogits() {
  return {std::string(kSizes) + kAlibiRow + R"(
def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
    return logits + self.pairs(query.size(2), key.size(2)).to(logits.dtype)
)",
          {"logits"},
          {},
          {},
          kNumbers};
}

constexpr const char* kAngles = R"(
def table(self, length: int) -> Tensor:
    t = torch.arange(0, self.width, 2).double() / float(self.width)
    position = torch.arange(length).double().unsqueeze(1)
    return (position * torch.pow(10000.0, -t)).unsqueeze(1)
)";
OwnText RopeByAngles() {
  return {std::string(kSizes) + kAngles + R"(
def angles(self, length: int) -> Tensor:
    return self.table(length)
)",
          {"angles"},
          {},
          {},
          kNumbers};
}
OwnText RopeByTransform() {
  return {std::string(kSizes) + kAngles + R"(
def transform(self, layer: int, side: int, x: Tensor, length: int) -> Tensor:
    angle = self.table(length)[length - x.size(1):].to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(turned, -1).flatten(-2)
)",
          {"transform"},
          {},
          {},
          kNumbers};
}
OwnText Sinusoidal() {
  return {std::string(kSizes) + R"(
def input_term(self, length: int) -> Tensor:
    t = torch.arange(0, self.d_model, 2).double() / float(self.d_model)
    angle = torch.arange(length).double().unsqueeze(1) * torch.pow(10000.0, -t)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
)",
          {"input_term"},
          {},
          {},
          kNumbers};
}
// The table of SmallJob's sizes; the rows of the buckets are a buffer of the file.
OwnText T5(bool causal) {
  std::vector<std::int64_t> rows;
  for (std::int64_t distance = -15; distance <= 15; ++distance) {
    rows.push_back(T5Bucket(distance, causal, 32, 128));
  }
  return {R"(
def distance_bias(self, layer: int, length: int) -> Tensor:
    return self.bias[self.rows[16 - length:15 + length]].t()
)",
          {"distance_bias"},
          {{"bias", at::zeros({32, 2})}},
          {{"rows", at::tensor(rows, at::kLong)}}};
}

// Every hook, with parameters in each.
OwnText Everything() {
  return {R"(
def reset(self, seed: int):
    self.term = 0.3 * torch.randn([16, 16])
    self.turn = torch.randn([2, 4])
    self.mix = 0.3 * torch.randn([2, 8, 8])
    self.bias = torch.randn([2, 31])
    self.pair = 0.3 * torch.randn([8, 8])
    self.gain = torch.rand([2]) + 0.5
    self.factor = torch.rand([1, 31]) + 0.5
def input_term(self, length: int) -> Tensor:
    return self.term[:length]
def angles(self, length: int) -> Tensor:
    position = torch.arange(length, dtype=self.turn.dtype, device=self.turn.device)
    return position.view([length, 1, 1]) * self.turn
def transform(self, layer: int, side: int, x: Tensor, length: int) -> Tensor:
    position = torch.arange(length - x.size(1), length, dtype=x.dtype).view([-1, 1, 1])
    return x + 0.1 * position * x.matmul(self.mix[side])
def distance_bias(self, layer: int, length: int) -> Tensor:
    return float(layer + 1) * self.bias[:, 16 - length:15 + length]
def pair_bias(self, layer: int, query: Tensor, key: Tensor) -> Tensor:
    return torch.tanh(query.matmul(self.pair).matmul(key.transpose(2, 3)))
def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
    return logits * self.gain.view([2, 1, 1])
def distance_factor(self, layer: int, length: int) -> Tensor:
    return self.factor[:, 16 - length:15 + length]
)",
          {"input_term", "transform", "angles", "distance_bias", "pair_bias", "logits",
           "distance_factor"},
          {{"term", at::zeros({16, 16})},
           {"turn", at::zeros({2, 4})},
           {"mix", at::zeros({2, 8, 8})},
           {"bias", at::zeros({2, 31})},
           {"pair", at::zeros({8, 8})},
           {"gain", at::zeros({2})},
           {"factor", at::zeros({1, 31})}}};
}

struct Twin {
  std::string name;
  OwnText own;
  Variant built_in;
};
std::ostream& operator<<(std::ostream& out, const Twin& twin) { return out << twin.name; }

catalog::Value Word(const char* text) { return std::string(text); }

std::vector<Twin> Twins() {
  const Variant alibi{"", "alibi", {{"pe.slopes", Word("geometric")}}};
  const Variant rope{"", "rope", {{"pe.base", 10000.0}, {"pe.input_sinusoid", false}}};
  return {{"alibi_by_distance", AlibiByDistance(), alibi},
          {"alibi_by_pair", AlibiByPair(), alibi},
          {"alibi_by_logits", AlibiByLogits(), alibi},
          {"rope_by_angles", RopeByAngles(), rope},
          {"rope_by_transform", RopeByTransform(), rope},
          {"sinusoidal", Sinusoidal(), {"", "absolute", {{"pe.form", Word("sinusoidal")}}}},
          {"t5", T5(/*causal=*/true), {"", "relative", {{"pe.form", Word("t5")}}}}};
}

struct OwnOutcome {
  at::Tensor logits, gradient;
};

OwnOutcome OwnOutcomeOf(OwnMembers* model, bool padded) {
  const auto members = model->parameters.members();
  const Batch batch = RandomBatch(3 * members, 16, 40, padded);
  const Dropout dropout(model->decoder.config(), model->parameters.seeds(), 2);
  const at::Tensor logits = model->decoder.Logits(batch, &dropout);
  const at::Tensor classes = at::arange(3 * members, at::kLong).remainder(4);
  at::cross_entropy_loss(logits.to(at::kDouble), classes).backward();
  model->parameters.GatherGradients();
  return {logits.detach(), model->parameters.flat_gradient()};
}

class OwnTwin : public testing::TestWithParam<Twin> {};
INSTANTIATE_TEST_SUITE_P(, OwnTwin, testing::ValuesIn(Twins()),
                         [](const auto& info) { return info.param.name; });

// Same weights, same logits and gradients: padded or not, every read-out, one member or two.
TEST_P(OwnTwin, ComputesWhatTheBuiltInEncodingDoes) {
  const OwnFiles files;
  for (const char* readout : {"masked_mean", "last"}) {
    for (const char* kv_source : {"self", "input"}) {
      const catalog::Values set = {{"model.readout", Word(readout)},
                                   {"model.kv_source", Word(kv_source)},
                                   {"model.mask", Word("causal")},
                                   {"model.dropout", 0.2}};
      const experiment::Job own_job = files.Job("clean", GetParam().own, set);
      const experiment::Job job = VariantJob("clean", GetParam().built_in, set);
      for (const auto& [type, most] : {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-5),
                                       std::pair(at::kBFloat16, 0.05)}) {
        for (const std::vector<std::int64_t>& seeds : {std::vector<std::int64_t>{3}, {3, 11}}) {
          for (const bool padded : {true, false}) {
            OwnMembers own(own_job, seeds, type), built_in(job, seeds, type);
            own.parameters.flat().copy_(built_in.parameters.flat());
            own.parameters.Round();
            const OwnOutcome expected = OwnOutcomeOf(&built_in, padded);
            const OwnOutcome found = OwnOutcomeOf(&own, padded);
            EXPECT_LT(RelativeError(found.logits, expected.logits.to(at::kDouble)), most);
            EXPECT_LT(RelativeError(found.gradient, expected.gradient.to(at::kDouble)), most)
                << readout << " " << kv_source << " " << type << " " << seeds.size() << padded;
          }
        }
      }
    }
  }
}

TEST(OwnEncoding, ParametersAreThoseOfTheFileUnderTheirNames) {
  const OwnFiles files;
  const TestModel model(files.Job("clean", Everything()), 4);
  const TestModel nope(SmallJob("clean", "nope", "distance"), 4);
  EXPECT_EQ(model.parameters.count() - nope.parameters.count(), 256 + 8 + 128 + 62 + 64 + 2 + 31);
  EXPECT_EQ(model.Parameter("pe.mix").sizes(), (std::vector<std::int64_t>{2, 8, 8}));
}

TEST(OwnEncoding, GradientsAreThoseOfFiniteDifferences) {
  const OwnFiles files;
  for (const char* protocol : {"clean", "published"}) {
    SCOPED_TRACE(protocol);
    TestModel model(files.Job(protocol, Everything(), {{"model.activation", Word("gelu")}}), 4);
    const Batch batch = RandomBatch(3, 8, 40, true);
    const auto loss = [&] {
      return at::cross_entropy_loss(model.decoder.Logits(batch, nullptr),
                                    at::tensor({1, 0, 3}, at::kLong));
    };
    loss().backward();
    const at::Tensor gradient = model.parameters.flat_gradient().clone();
    const at::NoGradGuard no_grad;
    std::int64_t first = 40 * 16;  // after the embedding
    for (const auto& named : model.parameters.NamedTensors()) {
      if (named.name.rfind("pe.", 0) != 0) continue;
      const at::Tensor direction = RandomTensor(named.name, named.tensor.sizes()).to(at::kDouble);
      const at::Tensor own = gradient.narrow(0, first, named.tensor.numel()).view_as(direction);
      first += named.tensor.numel();
      constexpr double kStep = 1e-5;
      at::Tensor values = named.tensor;
      values += direction * kStep;
      const double up = loss().item<double>();
      values -= direction * (2 * kStep);
      const double down = loss().item<double>();
      values += direction * kStep;
      const double slope = (own * direction).sum().item<double>();
      EXPECT_GT(std::abs(slope), 1e-5) << named.name;
      EXPECT_NEAR((up - down) / (2 * kStep), slope, 1e-8 + 1e-5 * std::abs(slope)) << named.name;
    }
  }
}

TEST(OwnEncoding, AMemberIsComputedAsAlone) {
  const OwnFiles files;
  for (const bool padded : {true, false}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      const experiment::Job job = files.Job("clean", Everything(), {{"model.dropout", 0.2}});
      OwnMembers together(job, {3, 11}, type);
      const Batch batch = RandomBatch(6, 16, 40, padded);
      const Dropout dropout(together.decoder.config(), {3, 11}, 2);
      const at::Tensor logits = together.decoder.Logits(batch, &dropout);
      const at::Tensor direction = RandomTensor("logits", logits.sizes()).to(type);
      logits.backward(direction);
      for (const std::int64_t m : {0, 1}) {
        OwnMembers alone(job, {m == 0 ? 3 : 11}, type);
        EXPECT_TRUE(together.parameters.TakeMember(together.parameters.flat(), m)
                        .equal(alone.parameters.flat()));
        const auto part = [&](const at::Tensor& x) {
          return x.defined() ? x.narrow(0, 3 * m, 3) : x;
        };
        const Dropout own_dropout(alone.decoder.config(), alone.parameters.seeds(), 2);
        const at::Tensor own =
            alone.decoder.Logits({part(batch.tokens), part(batch.lengths)}, &own_dropout);
        own.backward(part(direction));
        EXPECT_TRUE(part(logits).equal(own)) << LargestDifference(part(logits), own);
        const at::Tensor gradient =
            together.parameters.TakeMember(together.parameters.flat_gradient(), m);
        EXPECT_LE(RelativeError(gradient, alone.parameters.flat_gradient().to(at::kDouble)),
                  type == at::kDouble ? 1e-12 : 0);
      }
    }
  }
}

TEST(OwnEncoding, ComputesInBfloat16AboutAsInSinglePrecision) {
  const OwnFiles files;
  const experiment::Job job = files.Job("clean", Everything());
  OwnMembers rounded(job, {3}, at::kBFloat16), exact(job, {3}, at::kDouble);
  const OwnOutcome expected = OwnOutcomeOf(&exact, true), found = OwnOutcomeOf(&rounded, true);
  EXPECT_EQ(found.logits.scalar_type(), at::kBFloat16);
  EXPECT_LT(RelativeError(found.logits, expected.logits), 0.1);
  EXPECT_LT(RelativeError(found.gradient, expected.gradient), 0.2);
}

// The analyses continue from the middle of a pass.
TEST(OwnEncoding, AblationByContinuingIsThatByWholePasses) {
  const OwnFiles files;
  for (const char* protocol : {"clean", "published"}) {
    const TestModel model(files.Job(protocol, Everything()), 4);
    for (const bool padded : {true, false}) {
      const Batch batch = RandomBatch(3, 16, 40, padded);
      EXPECT_LT(LargestDifference(AblatedLogits(model.decoder, batch, {}),
                                  AblatedLogitsNaive(model.decoder, batch, {})),
                1e-10);
    }
  }
}

// One attention layer: 1 example, 1 head, 3 positions, width 2.
TEST(OwnEncoding, AttentionIsByDefinition) {
  const OwnFiles files;
  const OwnText text = {R"(
def pair_bias(self, layer: int, query: Tensor, key: Tensor) -> Tensor:
    return query[..., 0].unsqueeze(3) * key[..., 1].unsqueeze(2) * float(layer)
def logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor) -> Tensor:
    return logits * 2.0 + key[..., 0].unsqueeze(2)
def distance_factor(self, layer: int, length: int) -> Tensor:
    return torch.tensor([[3.0, 2.0, 1.0, 0.5, 0.25]])
)",
                        {"pair_bias", "logits", "distance_factor"}};
  const experiment::Job job = files.Job("clean", text);
  const ModelConfig config = ModelConfigFrom(job, 4);
  EXPECT_TRUE(config.keeps_logits);
  const ModelConfig of_nope = ModelConfigFrom(SmallJob("clean", "nope", "distance"), 4);
  EXPECT_GT(ActivationBytes(config, 128), ActivationBytes(of_nope, 128));
  ParameterSet parameters;
  parameters.Add("one", {1}, Init::Constant(0));
  const auto pe = MakePe({job, config, &parameters});
  parameters.Materialize(0, at::kCPU, at::kDouble);
  const auto random = [](const char* name) {
    return RandomTensor(name, {1, 3, 1, 2}).to(at::kDouble);
  };
  const at::Tensor query = random("query"), key = random("key"), value = random("value");
  constexpr std::int64_t kLayer = 3;
  for (const bool causal : {true, false}) {
    AttentionInputs inputs{query, key, value};
    inputs.causal = causal;
    inputs.change_logits = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& logits) {
      return pe->ChangeLogits(kLayer, q, k, logits);
    };
    inputs.distance_factor = pe->DistanceFactor(kLayer, 3);
    EXPECT_FALSE(FusedAttentionFits(inputs));
    const at::Tensor found = Attend(inputs, kLayer, nullptr);
    for (int i = 0; i < 3; ++i) {
      const double factors[] = {3, 2, 1, 0.5, 0.25};
      double sum = 0, expected[2] = {0, 0};
      for (int j = 0; j < 3 && (j <= i || !causal); ++j) {
        const auto at = [](const at::Tensor& x, int position, int channel) {
          return x[0][position][0][channel].item<double>();
        };
        const double product = at(query, i, 0) * at(key, j, 0) + at(query, i, 1) * at(key, j, 1);
        const double biased = product / std::sqrt(2.0) + at(query, i, 0) * at(key, j, 1) * kLayer;
        const double weight = std::exp(2 * biased + at(key, j, 0));
        sum += weight;
        for (const int c : {0, 1}) expected[c] += weight * factors[j - i + 2] * at(value, j, c);
      }
      for (const int c : {0, 1}) {
        EXPECT_NEAR(found[0][i][c].item<double>(), expected[c] / sum, 1e-12);
      }
    }
  }
}

TEST(OwnEncoding, AFactorOfOneChangesNothing) {
  const OwnFiles files;
  const OwnText ones = {R"(
def distance_factor(self, layer: int, length: int) -> Tensor:
    return torch.ones([1, 2 * length - 1])
)",
                        {"distance_factor"}};
  TestModel with(files.Job("clean", ones), 4), without(SmallJob("clean", "nope", "distance"), 4);
  const Batch batch = RandomBatch(3, 16, 40, true);
  EXPECT_TRUE(with.decoder.Logits(batch, nullptr).equal(without.decoder.Logits(batch, nullptr)));
}

}  // namespace
}  // namespace pelab::trainer
