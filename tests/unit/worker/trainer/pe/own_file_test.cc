// Files of own encodings: what `configure` and `reset` do, and which files are refused.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/catalog/own.h"
#include "tests/unit/worker/trainer/pe/own_fixture.h"
#include "worker/trainer/pe/own_module.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kBias = R"(
def distance_bias(self, layer: int, length: int) -> Tensor:
    return torch.zeros([1, 2 * length - 1])
)";
const char* const kOptions = R"([
    {"name": "alpha", "type": "real", "min": 0, "max": 1, "default": 0.5},
    {"name": "count", "type": "int", "min": 1, "max": 9, "default": 2},
    {"name": "flag", "type": "bool", "default": false},
    {"name": "form", "type": "choice", "choices": ["linear", "log", "root"], "default": "log"}])";

TEST(OwnFile, ConfigureGetsTheSizesAndTheOptions) {
  const OwnFiles files;
  const OwnText text = {std::string(kBias) + R"(
def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
    numbers = [options["alpha"], options["count"], options["flag"], options["form"]]
    for name in ["layers", "heads", "d_model", "head_size", "max_len", "causal"]:
        numbers.append(float(sizes[name]))
    self.numbers = torch.tensor(numbers)
)",
                        {"distance_bias"},
                        {{"numbers", at::zeros({1})}},
                        {},
                        {},
                        kOptions};
  const TestModel model(files.Job("clean", text, {}, "alpha=0.25,count=3,flag=true,form=root"), 4);
  EXPECT_EQ(
      LargestDifference(model.Parameter("pe.numbers"),
                        at::tensor({0.25, 3., 1., 2., 2., 2., 16., 8., 16., 1.}, at::kDouble)),
      0);
}

OwnText WithReset() {
  return {R"(
def configure(self, sizes: Dict[str, int], options: Dict[str, float]):
    self.drawn = torch.randn([3])
def reset(self, seed: int):
    self.weight += torch.randn([3])
    self.fixed = torch.randn([16])
    self.seed[0] = float(seed)
def input_term(self, length: int) -> Tensor:
    return self.fixed.expand([length, 16])
)",
          {"input_term"},
          {{"weight", at::ones({3})}, {"seed", at::zeros({1})}, {"drawn", at::zeros({1})}},
          {{"fixed", at::zeros({16})}}};
}

TEST(OwnFile, ResetDependsOnTheSeedAlone) {
  const OwnFiles files;
  const experiment::Job job = files.Job("clean", WithReset());
  const OwnMembers first(job, {3, 4, 3}, at::kDouble), again(job, {4}, at::kDouble);
  const auto values = [](const OwnMembers& model, const std::string& name, std::int64_t member) {
    for (const auto& named : model.parameters.NamedTensors(member)) {
      if (named.name == name) return named.tensor;
    }
    return at::Tensor();
  };
  EXPECT_TRUE(values(first, "pe.weight", 0).equal(values(first, "pe.weight", 2)));
  EXPECT_TRUE(values(first, "pe.weight", 1).equal(values(again, "pe.weight", 0)));
  EXPECT_GT(LargestDifference(values(first, "pe.weight", 0), values(first, "pe.weight", 1)), 0.1);
  EXPECT_EQ(values(first, "pe.seed", 1).item<double>(), 4);
  EXPECT_TRUE(values(first, "pe.drawn", 0).equal(values(first, "pe.drawn", 1)))
      << "configure draws the same for every seed";
}

// A buffer that `reset` draws belongs to the seed, as the parameters do.
TEST(OwnFile, ResetMaySetOtherTensors) {
  const OwnFiles files;
  OwnText text = WithReset();
  for (const bool with_parameters : {true, false}) {
    if (!with_parameters) {
      text.parameters.clear();
      text.buffers["weight"] = at::ones({3});
      text.buffers["seed"] = at::zeros({1});
      text.buffers["drawn"] = at::zeros({1});
    }
    const experiment::Job job = files.Job("clean", text);
    const auto term = [&](const std::vector<std::int64_t>& seeds) {
      ParameterSet parameters;
      parameters.Add("one", {1}, Init::Constant(0));
      const ModelConfig config = ModelConfigFrom(job, 4);
      const auto pe = MakePe({job, config, &parameters});
      parameters.Materialize(seeds, at::kCPU, at::kDouble);
      return pe->InputTerm(8);
    };
    const at::Tensor both = term({3, 4});
    EXPECT_EQ(both.sizes(), (std::vector<std::int64_t>{2, 8, 16}));
    EXPECT_TRUE(both[0].equal(term({3})));
    EXPECT_TRUE(both[1].equal(term({4})));
    EXPECT_FALSE(both[0].equal(both[1]));
  }
}

TEST(OwnFile, WithoutResetTheFileHasTheInitialValues) {
  const OwnFiles files;
  const OwnText text = {kBias, {"distance_bias"}, {{"weight", at::tensor({1.5f, -2.25f})}}};
  const TestModel model(files.Job("clean", text), 4);
  EXPECT_EQ(LargestDifference(model.Parameter("pe.weight"), at::tensor({1.5, -2.25})), 0);
}

TEST(OwnFile, ParametersOfPartsHaveTheirPathsAndSharedOnesAreOne) {
  const OwnFiles files;
  torch::jit::Module part("Part"), other("Other"), whole("Whole");
  const at::Tensor shared = at::full({1, 31}, 0.5);
  part.register_parameter("weight", shared, false);
  other.register_parameter("weight", shared, false);
  whole.register_module("left", part);
  whole.register_module("right", other);
  whole.define(R"(
def distance_bias(self, layer: int, length: int) -> Tensor:
    return self.left.weight * self.right.weight
)");
  const OwnText text = {"", {"distance_bias"}};
  const std::string sha256 = files.Write(BytesOf(whole, Declaration(text)));
  TestModel model(SmallJob("clean", "own", "distance", OwnFiles::Fields(text, sha256)), 4);
  const TestModel nope(SmallJob("clean", "nope", "distance"), 4);
  EXPECT_EQ(model.parameters.count() - nope.parameters.count(), 31);
  ParameterSet parameters;
  const auto pe = MakePe({model.job, model.config, &parameters});
  parameters.Materialize(0, at::kCPU, at::kDouble);
  pe->DistanceBias(0, 16).sum().backward();
  // The derivative of w^2 at 0.5.
  EXPECT_LT(LargestDifference(parameters.flat_gradient(), at::ones({31})), 1e-12);
  EXPECT_EQ(parameters.NamedTensors()[0].name, "pe.left.weight");
}

// The message of the refusal at the construction of a model or at its first pass.
std::string Refusal(const experiment::Job& job, ErrorKind kind = ErrorKind::kBadSpec) {
  try {
    TestModel model(job, 4);
    model.decoder.Logits(RandomBatch(2, 16, 40, false), nullptr);
  } catch (const TrainerError& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "not refused";
}

TEST(OwnFile, ThatIsNotThereIsAnErrorOfInput) {
  const OwnFiles files;
  const OwnText text = {kBias, {"distance_bias"}};
  const std::string hash(64, 'a');
  const experiment::Job job = SmallJob("clean", "own", "distance", OwnFiles::Fields(text, hash));
  EXPECT_THAT(Refusal(job, ErrorKind::kIo), AllOf(HasSubstr("encoding test: cannot read"),
                                                  HasSubstr(hash), HasSubstr("No such file")));
  UseFilesIn("");
  EXPECT_THAT(Refusal(job, ErrorKind::kIo), HasSubstr("allowed: --files DIR"));
  UseFilesIn(".");
}

TEST(OwnFile, WithOtherBytesIsRefused) {
  const OwnFiles files;
  const OwnText text = {kBias, {"distance_bias"}};
  const std::string hash(64, 'b');
  const auto refusal = [&](const std::string& sha256) {
    return Refusal(SmallJob("clean", "own", "distance", OwnFiles::Fields(text, sha256)));
  };
  files.WriteAs(hash, "other bytes");
  EXPECT_THAT(refusal(hash), AllOf(HasSubstr("has the SHA-256 " + Sha256Hex("other bytes")),
                                   HasSubstr("allowed: " + hash)));
  EXPECT_THAT(refusal(files.Write(std::string("short"))), HasSubstr("is no TorchScript archive"));
  EXPECT_THAT(refusal(files.Write(std::string(1000, 'x'))),
              HasSubstr("encoding test: its file is no TorchScript archive that LibTorch can read: "
                        "PytorchStreamReader failed reading zip archive: "));
  const std::string whole = BytesOf(ModuleOf(text), Declaration(text));
  EXPECT_THAT(refusal(files.Write(whole.substr(0, whole.size() / 2))),
              HasSubstr("is no TorchScript archive"));
  EXPECT_THAT(refusal(files.Write(BytesOf(ModuleOf(text), ""))),
              HasSubstr("its file has no declaration; allowed: an archive with the extra file "
                        "pelab.json"));
  EXPECT_THAT(refusal(files.Write(BytesOf(ModuleOf(text), "{}"))),
              HasSubstr("pelab.json of its file: the declaration's format must be 1"));
}

TEST(OwnFile, WhoseDeclarationIsNotTheJobsIsRefused) {
  const OwnFiles files;
  OwnText text = {kBias, {"distance_bias"}, {}, {}, {}, kOptions};
  const auto refusal = [&](const catalog::Values& set, const std::string& options) {
    return Refusal(files.Job("clean", text, set, options));
  };
  const std::string all = "alpha=0.5,count=2,flag=false,form=log";
  EXPECT_EQ(refusal({}, all), "not refused");
  EXPECT_THAT(refusal({{"pe.encoding", std::string("other")}}, all),
              HasSubstr("encoding other: its file declares the name test; allowed: that of the "
                        "job, other"));
  EXPECT_THAT(refusal({{"pe.methods", std::vector<std::string>{"angles"}}}, all),
              HasSubstr("the methods distance_bias; allowed: that of the job, angles"));
  EXPECT_THAT(refusal({{"pe.causal_only", true}}, all), HasSubstr("causal_only false"));
  EXPECT_THAT(refusal({}, "alpha=0.5"),
              HasSubstr("the options alpha, count, flag, form; allowed: that of the job, alpha"));
  EXPECT_THAT(refusal({}, "alpha=1.5,count=2,flag=false,form=log"),
              HasSubstr("the option alpha is 1.5; allowed: "));
  EXPECT_THAT(refusal({}, "alpha=0.5,count=2.5,flag=false,form=log"),
              HasSubstr("the option count is 2.5; allowed: "));
  for (const char* form : {"lin", "2", "true"}) {
    EXPECT_THAT(refusal({}, "alpha=0.5,count=2,flag=false,form=" + std::string(form)),
                HasSubstr("encoding test: the option form is " + std::string(form) +
                          "; allowed: one of linear, log, root"));
  }
}

TEST(OwnFile, WhoseNeedsTheJobDoesNotMeetIsRefused) {
  const OwnFiles files;
  OwnText text = {kBias, {"distance_bias"}};
  const auto refusal = [&](const std::string& needs, const catalog::Values& set = {}) {
    text.needs = needs;
    return Refusal(files.Job("clean", text, set));
  };
  const std::string heads = R"({"model.heads": {"min": 2, "max": 4}})";
  const std::string mask = R"({"model.mask": ["causal"]})";
  EXPECT_EQ(refusal(heads), "not refused");
  EXPECT_EQ(refusal(mask), "not refused");
  EXPECT_EQ(refusal(R"({"task.triggers": [3]})"), "not refused") << "of another task";
  EXPECT_THAT(refusal(heads, {{"model.heads", std::int64_t{8}}}),
              HasSubstr("encoding test: model.heads is 8; allowed: what its file needs, from 2 to "
                        "4"));
  EXPECT_THAT(refusal(mask, {{"model.mask", std::string("none")}}),
              HasSubstr("model.mask is none; allowed: what its file needs, causal"));
  EXPECT_THAT(refusal(R"({"model.headz": [2]})"),
              HasSubstr("pelab.json of its file: the declaration's needs name \"model.headz\"; did "
                        "you mean model.heads?"));
}

TEST(OwnFile, ATrialDoesNotAskForItsNeeds) {
  const OwnFiles files;
  OwnText text = {kBias, {"distance_bias"}};
  text.needs = R"({"model.mask": ["none"]})";
  const experiment::Job job = files.Job("clean", text);
  EXPECT_THAT(Refusal(job), HasSubstr("model.mask is causal"));
  ParameterSet parameters;
  EXPECT_NO_THROW(Decoder(job, ModelConfigFrom(job, 4), &parameters, Trial::kTried));
}

TEST(OwnFile, WhoseModuleIsWrongIsRefused) {
  const OwnFiles files;
  const auto refusal = [&](const std::string& code, const std::string& method,
                           const std::map<std::string, at::Tensor>& parameters = {}) {
    return Refusal(files.Job("clean", {code, {method}, parameters}));
  };
  EXPECT_THAT(refusal(kBias, "angles"),
              HasSubstr("its file declares the method angles, but its module has none; allowed: "
                        "angles(int) -> Tensor"));
  EXPECT_THAT(refusal("def angles(self, length):\n    return length\n", "angles"),
              HasSubstr("the file's method is angles(Tensor) -> Tensor; allowed: angles(int) -> "
                        "Tensor"));
  EXPECT_THAT(refusal("def angles(self, length: int) -> int:\n    return length\n", "angles"),
              HasSubstr("angles(int) -> int; allowed: angles(int) -> Tensor"));
  EXPECT_THAT(
      refusal("def distance_bias(self, layer: int) -> Tensor:\n    return "
              "torch.zeros([1])\n",
              "distance_bias"),
      HasSubstr("distance_bias(int) -> Tensor; allowed: distance_bias(int, int) -> Tensor"));
  EXPECT_THAT(refusal(std::string(kBias) + "def reset(self):\n    pass\n", "distance_bias"),
              HasSubstr("the file's method is reset(); allowed: reset(int)"));
  EXPECT_THAT(refusal(R"(
def noise(self, length: int) -> Tensor:
    return torch.zeros([1, length]).normal_()
def distance_bias(self, layer: int, length: int) -> Tensor:
    return self.noise(2 * length - 1)
)",
                      "distance_bias"),
              HasSubstr("the method distance_bias calls normal, which draws random numbers; "
                        "allowed: in configure and reset only"));
  EXPECT_THAT(refusal(R"(
def distance_bias(self, layer: int, length: int) -> Tensor:
    return torch.from_file("/etc/hostname", False, 1)
)",
                      "distance_bias"),
              HasSubstr("distance_bias calls from_file; allowed: no access to files"));
  EXPECT_THAT(refusal(kBias, "distance_bias", {{"scale", at::ones({})}}),
              HasSubstr("the parameter scale has no dimension; allowed: at least one; give it the "
                        "shape (1)"));
  EXPECT_THAT(refusal(kBias, "distance_bias", {{"scale", at::ones({0})}}),
              HasSubstr("the parameter scale has no elements"));
  EXPECT_THAT(refusal(std::string(kBias) + R"(
def reset(self, seed: int):
    self.scale = torch.ones([seed])
)",
                      "distance_bias", {{"scale", at::ones({1})}}),
              HasSubstr("its method reset changes the shapes of parameters"));
}

TEST(OwnFile, WhoseMethodsGiveOtherThingsIsRefused) {
  const OwnFiles files;
  const auto refusal = [&](const std::string& signature, const std::string& result) {
    const std::string name = signature.substr(0, signature.find('('));
    return Refusal(files.Job(
        "clean", {"def " + signature + " -> Tensor:\n    return " + result + "\n", {name}}));
  };
  EXPECT_THAT(refusal("input_term(self, length: int)", "torch.zeros([length, 5])"),
              HasSubstr("encoding test: the method input_term gives the shape (16, 5); allowed: "
                        "(16, 16)"));
  EXPECT_THAT(refusal("distance_bias(self, layer: int, length: int)", "torch.zeros([3, length])"),
              HasSubstr("distance_bias gives the shape (3, 16); allowed: (1 or 2, 31)"));
  EXPECT_THAT(refusal("distance_factor(self, layer: int, length: int)", "torch.zeros([31])"),
              HasSubstr("distance_factor gives the shape (31); allowed: (1 or 2, 31)"));
  EXPECT_THAT(refusal("angles(self, length: int)", "torch.zeros([length, 1, 8])"),
              HasSubstr("angles gives the shape (16, 1, 8); allowed: (16, 1 or 2, 4)"));
  EXPECT_THAT(refusal("transform(self, layer: int, side: int, x: Tensor, length: int)", "x[:, 1:]"),
              HasSubstr("transform gives the shape (2, 15, 2, 8); allowed: (2, 16, 2, 8)"));
  EXPECT_THAT(
      refusal("pair_bias(self, layer: int, query: Tensor, key: Tensor)", "torch.zeros([3, 16])"),
      HasSubstr("pair_bias gives the shape (3, 16); allowed: one that broadcasts to (2, 2, 16, "
                "16)"));
  EXPECT_THAT(
      refusal("logits(self, layer: int, query: Tensor, key: Tensor, logits: Tensor)", "logits[0]"),
      HasSubstr("logits gives the shape (2, 16, 16); allowed: (2, 2, 16, 16)"));
  EXPECT_THAT(refusal("input_term(self, length: int)", "torch.zeros([length, 16]).long()"),
              HasSubstr("input_term gives elements of type Long; allowed: Float or Double"));
  EXPECT_THAT(refusal("input_term(self, length: int)", "torch.zeros([2, 3]) + torch.zeros([4])"),
              HasSubstr("the method input_term fails: The size of tensor a (3) must match"));
  EXPECT_THAT(
      refusal("transform(self, layer: int, side: int, x: Tensor, length: int)", "x.mul_(2)"),
      HasSubstr("the method transform changes its arguments or parameters in place; "
                "allowed: new tensors only"));
}

// Loading a file runs this function, before anything can look at what it does.
TEST(OwnFile, ThatRunsCodeWhileItIsLoadedIsRefusedUnloaded) {
  const TempDir folder;
  const std::string written = folder / "written";
  OwnFiles files;
  const OwnText text{
      "def distance_bias(self, layer: int, length: int) -> Tensor:\n"
      "    return torch.zeros([1, 2 * length - 1])\n"
      "def __getstate__(self) -> Tuple[Tensor, bool]:\n"
      "    return (torch.zeros([10]), False)\n"
      "def __setstate__(self, state: Tuple[Tensor, bool]) -> None:\n"
      "    x = torch.from_file(\"" +
          written +
          "\", True, 10)\n"
          "    y = state[1] or bool(x[0] > 1)\n",
      {"distance_bias"}};
  EXPECT_THAT(Refusal(files.Job("clean", text)),
              HasSubstr("its file has the function __setstate__, which would run while the file is "
                        "loaded; allowed: configure and reset"));
  EXPECT_FALSE(std::filesystem::exists(written));
}

// Another worker may have the memory.
TEST(OwnFile, ThatNeedsTooMuchMemoryIsNotAtFault) {
  const OwnFiles files;
  const OwnText text = {
      "def input_term(self, length: int) -> Tensor:\n    return torch.zeros([1 << 50])\n",
      {"input_term"}};
  EXPECT_THAT([&] { Refusal(files.Job("clean", text)); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("memory")));
}

// A device of shapes without values stands in for a GPU.
TEST(OwnFile, AllTensorsOfTheModuleMoveToTheDevice) {
  const OwnFiles files;
  torch::jit::Module part("Part"), whole("Whole");
  const at::Tensor zeros = at::zeros({4, 16});
  const auto tensor = c10::TensorType::get();
  part.register_buffer("table", zeros);
  part.register_attribute("list", c10::ListType::ofTensors(), c10::List<at::Tensor>({zeros}));
  c10::Dict<std::string, at::Tensor> dict;
  dict.insert("a", zeros);
  part.register_attribute("dict", c10::DictType::create(c10::StringType::get(), tensor), dict);
  part.register_attribute("pair", c10::TupleType::create({tensor, c10::IntType::get()}),
                          c10::ivalue::Tuple::create({zeros, 1}));
  whole.register_module("part", part);
  whole.define(R"(
def input_term(self, length: int) -> Tensor:
    return self.part.table + self.part.list[0] + self.part.dict["a"] + self.part.pair[0]
)");
  const OwnText text = {"", {"input_term"}};
  const std::string sha256 = files.Write(BytesOf(whole, Declaration(text)));
  const experiment::Job job = SmallJob("clean", "own", "distance", OwnFiles::Fields(text, sha256));
  OwnModule module(ReadOwnSource(job, ModelConfigFrom(job, 4)), std::nullopt);
  EXPECT_TRUE(module.Call("input_term", {4}).is_cpu());
  module.MoveTo(at::Device("meta"));
  EXPECT_TRUE(module.Call("input_term", {4}).is_meta());
}

TEST(OwnFile, WithAnOddHeadSizeAndAnglesIsRefused) {
  const OwnFiles files;
  const OwnText text = {"def angles(self, length: int) -> Tensor:\n    return torch.zeros([1])\n",
                        {"angles"}};
  EXPECT_THAT(Refusal(files.Job("clean", text, {{"model.d_model", std::int64_t{14}}})),
              HasSubstr("own rotates pairs, but model.d_model / model.heads is 7"));
}

TEST(OwnFile, EveryMethodOfTheCatalogIsAHook) {
  const OwnFiles files;
  for (const std::string_view method : catalog::kOwnMethods) {
    const std::string name(method);
    EXPECT_THAT(Refusal(files.Job("clean", {"def other(self):\n    pass\n", {name}})),
                HasSubstr("the method " + name + ", but its module has none; allowed: " + name));
  }
}

}  // namespace
}  // namespace pelab::trainer
