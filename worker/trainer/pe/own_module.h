// The TorchScript module of an own encoding: loading, checking and calling it
// (docs/own-encodings.md). The headers of TorchScript are included in own_module.cc and
// own_checks.cc only.
//
// A module is not thread-safe. All functions throw TrainerError(kBadSpec) if the file is wrong or a
// method raises. If memory runs out, they throw std::bad_alloc, or std::runtime_error with the
// first line of LibTorch's message.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/trainer/pe/own_source.h"

namespace pelab::trainer {

class OwnModule {
 public:
  // Loads the file and calls `configure` and, with a seed, `reset`, if the module has them. Both
  // may draw from LibTorch's generator, which is seeded before each.
  OwnModule(const OwnSource& source, std::optional<std::int64_t> seed);
  ~OwnModule();

  struct Parameter {
    std::string name;  // "mlp.0.weight"
    at::Tensor value;  // after `configure` and `reset`
  };
  // Parameters that share their memory and their shape are one.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  bool has_reset() const;

  // Moves all tensors of the module to the device.
  void MoveTo(at::Device device);
  // Replaces the module's parameters, in the order of parameters(). Gradients flow into these.
  void SetParameters(const std::vector<at::Tensor>& values);
  // Calls a method that returns a tensor.
  at::Tensor Call(const std::string& method, const std::vector<c10::IValue>& arguments);

 private:
  struct State;
  void TakeParameters();
  void CheckParameter(const Parameter& parameter) const;
  c10::IValue Run(const std::string& method, const std::vector<c10::IValue>& arguments);

  std::string name_;
  std::unique_ptr<State> state_;
  std::vector<Parameter> parameters_;
};

// The modules of one file: one for each seed if the module has a `reset`, because that may set
// other tensors than parameters, else one for all seeds.
class OwnModules {
 public:
  explicit OwnModules(OwnSource source);
  const OwnSource& source() const { return source_; }
  bool by_seed() const { return first_.has_reset(); }
  // The parameters' names and shapes, which are those of every seed.
  const std::vector<OwnModule::Parameter>& parameters() const { return first_.parameters(); }
  OwnModule& Of(std::int64_t seed);

 private:
  OwnSource source_;
  OwnModule first_;
  std::map<std::int64_t, std::unique_ptr<OwnModule>> of_seed_;
};

}  // namespace pelab::trainer
