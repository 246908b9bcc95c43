#include "worker/trainer/pe/own_checks.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>

namespace pelab::trainer {
namespace {

// A method and the types of its arguments as TorchScript writes them.
struct OwnSignature {
  const char* name;
  std::vector<std::string> arguments;
  bool gives_tensor = true;
};

const std::vector<OwnSignature>& OwnSignatures() {
  static const auto* const signatures = new std::vector<OwnSignature>{
      {"configure", {"Dict[str, int]", "Dict[str, float]"}, false},
      {"reset", {"int"}, false},
      {"input_term", {"int"}},
      {"transform", {"int", "int", "Tensor", "int"}},
      {"angles", {"int"}},
      {"distance_bias", {"int", "int"}},
      {"pair_bias", {"int", "Tensor", "Tensor"}},
      {"logits", {"int", "Tensor", "Tensor", "Tensor"}},
      {"distance_factor", {"int", "int"}},
  };
  return *signatures;
}

// "distance_bias(int, int) -> Tensor"
std::string SignatureText(const std::string& name, const std::vector<std::string>& arguments,
                          const std::string& result) {
  std::string text;
  for (const std::string& argument : arguments) text += (text.empty() ? "" : ", ") + argument;
  return name + "(" + text + ")" + (result.empty() ? "" : " -> " + result);
}

void CheckSignature(const torch::jit::Method& method, const OwnSignature& allowed,
                    const OwnSource& source) {
  const c10::FunctionSchema& schema = method.function().getSchema();
  std::vector<std::string> arguments;
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // 0 is self
    arguments.push_back(schema.arguments()[i].type()->annotation_str());
  }
  std::string result;
  if (allowed.gives_tensor) result = schema.returns().at(0).type()->annotation_str();
  const std::string needed = allowed.gives_tensor ? "Tensor" : "";
  if (arguments == allowed.arguments && result == needed) return;
  FailOwn(source.name, "the file's method is " + SignatureText(allowed.name, arguments, result) +
                           "; allowed: " + SignatureText(allowed.name, allowed.arguments, needed));
}

void ForEachNode(at::ArrayRef<torch::jit::Block*> blocks,
                 const std::function<void(const torch::jit::Node&)>& visit) {
  for (torch::jit::Block* block : blocks) {
    for (torch::jit::Node* node : block->nodes()) {
      visit(*node);
      ForEachNode(node->blocks(), visit);
    }
  }
}

// "aten::normal_" and "aten::normal" are both "normal".
std::string OperationName(const torch::jit::Node& node) {
  std::string name = node.kind().toUnqualString();
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  return node.kind().is_aten() ? name : "";
}

bool DrawsRandomNumbers(const std::string& operation) {
  static const auto* const names = new std::set<std::string>{"rand",
                                                             "rand_like",
                                                             "randn",
                                                             "randn_like",
                                                             "randint",
                                                             "randint_like",
                                                             "randperm",
                                                             "random",
                                                             "normal",
                                                             "uniform",
                                                             "bernoulli",
                                                             "multinomial",
                                                             "exponential",
                                                             "cauchy",
                                                             "geometric",
                                                             "log_normal",
                                                             "poisson",
                                                             "binomial",
                                                             "rrelu",
                                                             "dropout",
                                                             "alpha_dropout",
                                                             "feature_dropout",
                                                             "feature_alpha_dropout"};
  return names->count(operation) > 0;
}

// `graph` is inlined, so that the functions that the method calls are part of it.
void RefuseRandomNumbers(const torch::jit::Method& method, const OwnSource& source) {
  const std::shared_ptr<torch::jit::Graph> graph = method.graph()->copy();
  torch::jit::Inline(*graph);
  ForEachNode(graph->block(), [&](const torch::jit::Node& node) {
    const std::string operation = OperationName(node);
    if (!DrawsRandomNumbers(operation)) return;
    FailOwn(source.name, "the method " + method.name() + " calls " + operation +
                             ", which draws random numbers; allowed: in configure and reset only");
  });
}

// The order of the calls is not fixed, and a resumed training begins with a new module.
void RefuseChanges(const torch::jit::Method& method, const OwnSource& source) {
  const std::shared_ptr<torch::jit::Graph> graph = method.graph()->copy();
  torch::jit::Inline(*graph);
  ForEachNode(graph->block(), [&](const torch::jit::Node& node) {
    if (node.kind() != c10::prim::SetAttr) return;
    FailOwn(source.name, "the method " + method.name() + " sets self." + node.s(c10::attr::name) +
                             "; allowed: in configure and reset only");
  });
}

// A worker runs files that others wrote.
void RefuseFiles(const torch::jit::Module& module, const OwnSource& source) {
  for (const torch::jit::Function* function :
       module._ivalue()->compilation_unit()->get_functions()) {
    ForEachNode(torch::jit::toGraphFunction(*function).graph()->block(),
                [&](const torch::jit::Node& node) {
                  const std::string operation = OperationName(node);
                  if (operation != "from_file" && operation != "save") return;
                  FailOwn(source.name, "the file's function " + function->name() + " calls " +
                                           operation + "; allowed: no access to files");
                });
  }
}

std::string ShapeText(const AllowedShape& shape) {
  std::string text;
  for (const std::vector<std::int64_t>& sizes : shape) {
    std::string one;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i > 0 && sizes[i] == sizes[0]) continue;
      one += (one.empty() ? "" : " or ") + std::to_string(sizes[i]);
    }
    text += (text.empty() ? "" : ", ") + one;
  }
  return "(" + text + ")";
}

bool IsAllowedShape(at::IntArrayRef found, const AllowedShape& allowed, bool broadcasts) {
  if (found.size() > allowed.size() || (found.size() < allowed.size() && !broadcasts)) return false;
  const std::size_t missing = allowed.size() - found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<std::int64_t>& sizes = allowed[missing + i];
    if (broadcasts && found[i] == 1) continue;
    if (std::find(sizes.begin(), sizes.end(), found[i]) == sizes.end()) return false;
  }
  return true;
}

}  // namespace

void CheckCode(const OwnSource& source) {
  const std::string runs = "__setstate__";
  std::istringstream file(source.bytes);
  caffe2::serialize::PyTorchStreamReader reader(&file);
  for (const std::string& record : reader.getAllRecords()) {
    if (record.rfind("code/", 0) != 0) continue;
    const auto [data, size] = reader.getRecord(record);
    const std::string_view code(static_cast<const char*>(data.get()), size);
    if (code.find(runs) == std::string_view::npos) continue;
    FailOwn(source.name, "its file has the function " + runs +
                             ", which would run while the file is loaded; allowed: configure and "
                             "reset for what prepares the module");
  }
}

void CheckModule(const torch::jit::Module& module, const OwnSource& source) {
  RefuseFiles(module, source);
  for (const OwnSignature& signature : OwnSignatures()) {
    const auto method = module.find_method(signature.name);
    const bool hook = signature.gives_tensor;
    if (hook && !source.Has(signature.name)) continue;
    if (!method) {
      if (!hook) continue;
      FailOwn(source.name, std::string("its file declares the method ") + signature.name +
                               ", but its module has none; allowed: " +
                               SignatureText(signature.name, signature.arguments, "Tensor"));
    }
    CheckSignature(*method, signature, source);
    if (!hook) continue;
    RefuseRandomNumbers(*method, source);
    RefuseChanges(*method, source);
  }
}

at::Tensor CheckedResult(const OwnSource& source, const std::string& method,
                         const at::Tensor& result, const AllowedShape& allowed, bool broadcasts,
                         const at::TensorOptions& options) {
  const auto fail = [&](const std::string& found, const std::string& needed) {
    FailOwn(source.name, "the method " + method + " gives " + found + "; allowed: " + needed);
  };
  if (!result.defined()) fail("no tensor", ShapeText(allowed));
  const at::ScalarType type = result.scalar_type();
  if (type != at::kFloat && type != at::kDouble) {
    fail(std::string("elements of type ") + at::toString(type), "Float or Double");
  }
  if (!IsAllowedShape(result.sizes(), allowed, broadcasts)) {
    AllowedShape found;
    for (const std::int64_t size : result.sizes()) found.push_back({size});
    fail("the shape " + ShapeText(found),
         (broadcasts ? "one that broadcasts to " : "") + ShapeText(allowed));
  }
  if (source.refuses_not_finite) {
    if (result.isnan().any().item<bool>()) fail("NaN", "numbers");
    if (result.isposinf().any().item<bool>()) fail("infinity", "finite numbers");
  }
  return result.to(options.device(), at::typeMetaToScalarType(options.dtype()));
}

}  // namespace pelab::trainer
