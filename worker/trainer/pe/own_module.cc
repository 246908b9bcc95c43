#include "worker/trainer/pe/own_module.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "core/experiment/own_encoding.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/pe/own_checks.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using ObjectPointer = c10::intrusive_ptr<c10::ivalue::Object>;

std::string TextOf(const std::exception& error) {
  const auto* const own = dynamic_cast<const c10::Error*>(&error);
  return own == nullptr ? error.what() : own->what_without_backtrace();
}

// LibTorch's messages have many lines. An error in a method has a traceback first, with a marker at
// a quoted line of code, perhaps further quoted lines, which are indented, and then "RuntimeError:
// …". Other errors begin with the message.
std::string InformativeLine(const std::string& text) {
  constexpr std::size_t kLongest = 500;
  const std::string marker = "<--- HERE", prefix = "RuntimeError: ";
  const bool traceback = text.rfind("The following operation failed", 0) == 0;
  const std::size_t last = traceback ? text.rfind(marker) : std::string::npos;
  std::istringstream lines(last == std::string::npos ? text : text.substr(last + marker.size()));
  std::string line;
  const auto quoted = [&] { return traceback && line.rfind(' ', 0) == 0; };
  while ((line.empty() || quoted()) && std::getline(lines, line)) {
  }
  if (line.rfind(prefix, 0) == 0) line = line.substr(prefix.size());
  return line.empty() ? "no reason given" : line.substr(0, kLongest);
}

// An error of memory is not the file's: another worker may have enough.
[[noreturn]] void FailAs(const std::string& name, const std::string& what,
                         const std::exception& error, const std::string& hint = "") {
  const std::string line = InformativeLine(TextOf(error));
  for (const char* const sign : {"out of memory", "not enough memory", "can't allocate memory"}) {
    if (line.find(sign) != std::string::npos) throw std::runtime_error(line);
  }
  FailOwn(name, what + ": " + line + hint);
}

// Names the keys of the dicts of `configure` if the method looks for another one. Otherwise empty.
std::string KeysThere(const std::exception& error, const std::vector<c10::IValue>& arguments) {
  if (TextOf(error).find("KeyError: ") == std::string::npos) return "";
  std::string text;
  for (const c10::IValue& argument : arguments) {
    if (!argument.isGenericDict()) continue;
    std::string keys;
    for (const auto& entry : argument.toGenericDict()) {
      keys += (keys.empty() ? "" : ", ") + entry.key().toStringRef();
    }
    text += std::string(text.empty() ? "; sizes has " : "; options has ") +
            (keys.empty() ? "nothing: save_encoding(…, options=…) declares options" : keys);
  }
  return text;
}

void SeedGenerator(std::int64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
}

template <class Number>
c10::Dict<std::string, Number> DictOf(const std::vector<std::pair<std::string, Number>>& pairs) {
  c10::Dict<std::string, Number> dict;
  for (const auto& [name, number] : pairs) dict.insert(name, number);
  return dict;
}

// `value` with all tensors inside it on the device. Objects, lists and dicts are changed in place.
c10::IValue OnDevice(const c10::IValue& value, at::Device device) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? value.toTensor().to(device) : value;
  }
  if (value.isList()) {
    c10::List<c10::IValue> list = value.toList();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, OnDevice(list.get(i), device));
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) {
      entry.setValue(OnDevice(entry.value(), device));
    }
  } else if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : value.toTupleRef().elements()) {
      elements.push_back(OnDevice(element, device));
    }
    return c10::ivalue::Tuple::createNamed(std::move(elements),
                                           value.type()->cast<c10::TupleType>());
  } else if (value.isObject()) {
    const ObjectPointer object = value.toObject();
    for (std::size_t slot = 0; slot < object->slots().size(); ++slot) {
      object->setSlot(slot, OnDevice(object->getSlot(slot), device));
    }
  }
  return value;
}

// Whether both are one parameter that two modules use. A file keeps the shared memory only.
bool AreTied(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

}  // namespace

struct OwnModule::State {
  struct Place {
    ObjectPointer owner;
    std::size_t slot;
  };
  torch::jit::Module module;
  std::vector<std::vector<Place>> places;  // of each parameter
  at::Device device = at::kCPU;
};

OwnModule::OwnModule(const OwnSource& source, std::optional<std::int64_t> seed)
    : name_(source.name), state_(std::make_unique<State>()) {
  LimitHostMemory();
  torch::jit::ExtraFilesMap extra = {{std::string(experiment::kDeclarationName), ""}};
  try {
    CheckCode(source);
    std::istringstream file(source.bytes);
    state_->module = torch::jit::load(file, at::Device(at::kCPU), extra);
    state_->module.eval();
  } catch (const TrainerError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    FailAs(name_, "its file is no TorchScript archive that LibTorch can read", error);
  }
  const std::vector<std::pair<std::string, double>> options =
      CheckDeclaration(extra.begin()->second, source);
  CheckModule(state_->module, source);
  const at::NoGradGuard no_grad;
  if (state_->module.find_method("configure")) {
    SeedGenerator(0);
    Run("configure", {DictOf(source.sizes), DictOf(options)});
  }
  if (seed && has_reset()) {
    SeedGenerator(*seed);
    Run("reset", {*seed});
  }
  TakeParameters();
}

OwnModule::~OwnModule() = default;

bool OwnModule::has_reset() const { return state_->module.find_method("reset").has_value(); }

void OwnModule::TakeParameters() {
  const auto take = [&](const std::string& prefix, const torch::jit::Module& module) {
    const ObjectPointer object = module._ivalue();
    const auto type = object->type();
    for (std::size_t slot = 0; slot < type->numAttributes(); ++slot) {
      const c10::IValue& value = object->getSlot(slot);
      if (!type->is_parameter(slot) || !value.isTensor() || !value.toTensor().defined()) continue;
      const Parameter found{prefix + type->getAttributeName(slot), value.toTensor().detach()};
      CheckParameter(found);
      std::size_t i = 0;
      while (i < parameters_.size() && !AreTied(parameters_[i].value, found.value)) ++i;
      if (i == parameters_.size()) {
        parameters_.push_back(found);
        state_->places.emplace_back();
      }
      state_->places[i].push_back({object, slot});
    }
  };
  take("", state_->module);
  for (const auto& part : state_->module.named_modules()) {
    if (!part.name.empty()) take(part.name + ".", part.value);
  }
}

void OwnModule::CheckParameter(const Parameter& parameter) const {
  const auto fail = [&](const std::string& found, const std::string& allowed) {
    FailOwn(name_, "the parameter " + parameter.name + " " + found + "; allowed: " + allowed);
  };
  if (!at::isFloatingType(parameter.value.scalar_type())) {
    fail(std::string("has elements of type ") + at::toString(parameter.value.scalar_type()),
         "floating-point numbers");
  }
  if (parameter.value.dim() == 0) {
    fail("has no dimension", "at least one; give it the shape (1)");
  }
  if (parameter.value.numel() == 0) fail("has no elements", "at least one");
}

void OwnModule::MoveTo(at::Device device) {
  if (device == state_->device) return;
  const at::NoGradGuard no_grad;
  OnDevice(state_->module._ivalue(), device);
  state_->device = device;
}

void OwnModule::SetParameters(const std::vector<at::Tensor>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const State::Place& place : state_->places[i]) place.owner->setSlot(place.slot, values[i]);
  }
}

c10::IValue OwnModule::Run(const std::string& method, const std::vector<c10::IValue>& arguments) {
  // LibTorch would watch the first calls and then replace parts of the method by fused code, whose
  // results differ in the last bits.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  try {
    return state_->module.get_method(method)(arguments);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    FailAs(name_, "the method " + method + " fails", error, KeysThere(error, arguments));
  }
}

at::Tensor OwnModule::Call(const std::string& method, const std::vector<c10::IValue>& arguments) {
  return Run(method, arguments).toTensor();
}

OwnModules::OwnModules(OwnSource source)
    : source_(std::move(source)), first_(source_, std::nullopt) {}

OwnModule& OwnModules::Of(std::int64_t seed) {
  if (!by_seed()) return first_;
  std::unique_ptr<OwnModule>& module = of_seed_[seed];
  if (module != nullptr) return *module;
  auto made = std::make_unique<OwnModule>(source_, seed);
  const auto same_shape = [](const OwnModule::Parameter& a, const OwnModule::Parameter& b) {
    return a.name == b.name && a.value.sizes() == b.value.sizes();
  };
  if (!std::equal(parameters().begin(), parameters().end(), made->parameters().begin(),
                  made->parameters().end(), same_shape)) {
    FailOwn(source_.name,
            "its method reset changes the shapes of parameters; allowed: in "
            "configure only");
  }
  module = std::move(made);
  return *module;
}

}  // namespace pelab::trainer
