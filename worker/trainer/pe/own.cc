// An encoding from a file: a TorchScript module whose methods are the hooks
// (docs/own-encodings.md). Its parameters are parameters of the model under "pe.".
//
// Results are the same as those of a built-in encoding with the same formula: terms by length take
// the fused attention, and terms from queries and keys the plain one. Methods get and give 32-bit
// floats, also if the model is trained in bfloat16.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "worker/trainer/operations/rotary_heads.h"
#include "worker/trainer/parameters/torch_tensors.h"
#include "worker/trainer/pe/own_checks.h"
#include "worker/trainer/pe/own_module.h"
#include "worker/trainer/pe/own_source.h"
#include "worker/trainer/pe/pe.h"
#include "worker/trainer/pe/pe_tensors.h"

namespace pelab::trainer {
namespace {

// More results than these are computed anew at each call. None is ever freed, because a captured
// CUDA graph may read it.
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

std::vector<double> DoublesOf(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kDouble).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

AllowedShape ExactShape(at::IntArrayRef sizes) {
  AllowedShape shape;
  for (const std::int64_t size : sizes) shape.push_back({size});
  return shape;
}

// Grows when a method writes to one of its tensors.
std::int64_t VersionSum(const std::vector<at::Tensor>& parameters,
                        const std::vector<c10::IValue>& arguments) {
  std::int64_t sum = 0;
  for (const at::Tensor& parameter : parameters) sum += parameter._version();
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) sum += argument.toTensor()._version();
  }
  return sum;
}

OwnSource SourceOf(const PeContext& context) {
  OwnSource source = ReadOwnSource(context.job, context.config);
  if (context.trial != Trial::kNone) source.values.clear();
  source.refuses_not_finite = context.trial == Trial::kNamesMethods;
  return source;
}

class Own : public PositionalEncoding {
 public:
  explicit Own(const PeContext& context)
      : config_(context.config),
        parameters_(*context.parameters),
        modules_(std::make_shared<OwnModules>(SourceOf(context))) {
    if (Has("angles")) RequirePairs(context);
    const std::vector<OwnModule::Parameter>& of_file = modules_->parameters();
    for (std::size_t i = 0; i < of_file.size(); ++i) {
      const auto initial = [modules = modules_, i](std::int64_t seed) {
        return DoublesOf(modules->Of(seed).parameters()[i].value);
      };
      handles_.push_back(context.parameters->Add(
          "pe." + of_file[i].name, of_file[i].value.sizes().vec(), Init::OfSeed(initial)));
    }
  }

  at::Tensor InputTerm(std::int64_t length) override {
    return ByLength("input_term", std::nullopt, length, {{length}, {config_.d_model}});
  }
  at::Tensor DistanceBias(std::int64_t layer, std::int64_t length) override {
    return ByLength("distance_bias", layer, length, ByDistance(length));
  }
  at::Tensor DistanceFactor(std::int64_t layer, std::int64_t length) override {
    return ByLength("distance_factor", layer, length, ByDistance(length));
  }

  at::Tensor Rotations(Side /*side*/) override {
    if (!Has("angles") || !RotationsAreFixed()) return {};
    if (!rotations_.defined()) {
      const at::NoGradGuard no_grad;
      rotations_ = RotationsOf(0, Parts()[0]);
    }
    return rotations_;
  }

  bool Transforms() const override {
    return Has("transform") || (Has("angles") && !RotationsAreFixed());
  }
  at::Tensor Transform(std::int64_t layer, Side side, const at::Tensor& x,
                       std::int64_t length) override {
    const bool rotates = Has("angles") && !RotationsAreFixed();
    const std::int64_t rows = x.size(1), side_number = side == Side::kQuery ? 0 : 1;
    const auto transform = [&](std::int64_t member, const Values& of_member,
                               const std::vector<at::Tensor>& xs) {
      at::Tensor y = xs[0];
      if (Has("transform")) {
        y = Call(member, of_member, "transform", {layer, side_number, y, length},
                 ExactShape(y.sizes()));
      }
      if (!rotates) return y;
      return TurnPairs(y, RotationsOf(member, of_member).narrow(0, length - rows, rows));
    };
    return ForMembers({x}, transform);
  }

  bool ChangesLogits() const override { return Has("pair_bias") || Has("logits"); }
  at::Tensor ChangeLogits(std::int64_t layer, const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& logits) override {
    const auto change = [&](std::int64_t member, const Values& of_member,
                            const std::vector<at::Tensor>& xs) {
      at::Tensor changed = xs[0];
      const AllowedShape shape = ExactShape(changed.sizes());
      if (Has("pair_bias")) {
        changed = changed + Call(member, of_member, "pair_bias", {layer, xs[1], xs[2]}, shape,
                                 /*broadcasts=*/true);
      }
      if (!Has("logits")) return changed;
      return Call(member, of_member, "logits", {layer, xs[1], xs[2], changed}, shape);
    };
    return ForMembers({logits, query, key}, change);
  }

 private:
  using Values = std::vector<at::Tensor>;  // the parameters of one member

  bool Has(const char* method) const { return modules_->source().Has(method); }
  AllowedShape ByDistance(std::int64_t length) const {
    return {{1, config_.heads}, {2 * length - 1}};
  }
  // The hook Rotations has one table for all members and no gradients. With other angles, Transform
  // rotates.
  bool RotationsAreFixed() const {
    return handles_.empty() && (parameters_.members() == 1 || !modules_->by_seed());
  }

  // The parameters of each member.
  std::vector<Values> Parts() const {
    std::vector<Values> parts(parameters_.members());
    for (const ParameterSet::Handle handle : handles_) {
      const at::Tensor& all = parameters_[handle];
      if (parts.size() == 1) {
        parts[0].push_back(all);
        continue;
      }
      const std::vector<at::Tensor> each = all.unbind(0);
      for (std::size_t m = 0; m < parts.size(); ++m) parts[m].push_back(each[m]);
    }
    return parts;
  }

  at::Tensor Call(std::int64_t member, const Values& of_member, const char* method,
                  const std::vector<c10::IValue>& arguments, const AllowedShape& allowed,
                  bool broadcasts = false) {
    OwnModule& module = modules_->Of(parameters_.seeds()[member]);
    module.MoveTo(parameters_.device());
    module.SetParameters(of_member);
    // The model may still need what a method gets, and evaluation must not change the weights.
    const std::int64_t before = VersionSum(of_member, arguments);
    const at::Tensor result = module.Call(method, arguments);
    if (VersionSum(of_member, arguments) != before) {
      FailOwn(modules_->source().name, std::string("the method ") + method +
                                           " changes its arguments or parameters in place; "
                                           "allowed: new tensors only");
    }
    return CheckedResult(modules_->source(), method, result, allowed, broadcasts,
                         parameters_.flat().options());
  }

  // (max_len, 1 or H, d/2), complex.
  at::Tensor RotationsOf(std::int64_t member, const Values& of_member) {
    const at::Tensor angles =
        Call(member, of_member, "angles", {config_.max_len},
             {{config_.max_len}, {1, config_.heads}, {config_.head_dim() / 2}});
    return at::polar(at::ones_like(angles), angles).contiguous();
  }

  // A term that depends on the length alone. Kept if it never changes.
  at::Tensor ByLength(const char* method, std::optional<std::int64_t> layer, std::int64_t length,
                      const AllowedShape& allowed) {
    if (!Has(method)) return {};
    std::vector<c10::IValue> arguments;
    if (layer) arguments.emplace_back(*layer);
    arguments.emplace_back(length);
    if (!handles_.empty()) return OfMembers(method, arguments, allowed);
    const auto place = std::tuple(std::string(method), layer.value_or(0), length);
    const auto found = kept_.find(place);
    if (found != kept_.end()) return found->second;
    const at::NoGradGuard no_grad;
    at::Tensor term = OfMembers(method, arguments, allowed);
    if (kept_bytes_ + term.nbytes() <= kMostKeptBytes) {
      kept_bytes_ += term.nbytes();
      kept_.emplace(place, term);
    }
    return term;
  }

  // The term of one member or, if the members' terms differ, of each: with a first dimension M.
  at::Tensor OfMembers(const char* method, const std::vector<c10::IValue>& arguments,
                       const AllowedShape& allowed) {
    const bool differ = !handles_.empty() || modules_->by_seed();
    const std::vector<Values> parts = Parts();
    const std::size_t count = differ ? parts.size() : 1;
    std::vector<at::Tensor> terms;
    for (std::size_t m = 0; m < count; ++m) {
      terms.push_back(Call(static_cast<std::int64_t>(m), parts[m], method, arguments, allowed));
    }
    return count == 1 ? terms[0] : at::stack(terms);
  }

  // call(member, parameters, xs) for the examples (M B, …) of each member, in 32 bits at least. The
  // result has the type of the first of `xs`.
  template <class ForMember>
  at::Tensor ForMembers(std::vector<at::Tensor> xs, const ForMember& call) {
    const at::ScalarType type = xs[0].scalar_type();
    for (at::Tensor& x : xs) x = Widened(x);
    const std::vector<Values> parts = Parts();
    if (parts.size() == 1) return call(0, parts[0], xs).to(type);
    const std::int64_t examples = xs[0].size(0) / static_cast<std::int64_t>(parts.size());
    std::vector<at::Tensor> results;
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const auto member = static_cast<std::int64_t>(m);
      std::vector<at::Tensor> of_member;
      of_member.reserve(xs.size());
      for (const at::Tensor& x : xs) {
        of_member.push_back(x.narrow(0, member * examples, examples));
      }
      results.push_back(call(member, parts[m], of_member));
    }
    return at::cat(results).to(type);
  }

  const ModelConfig& config_;
  const ParameterSet& parameters_;
  std::shared_ptr<OwnModules> modules_;  // also of the parameters' initial values
  std::vector<ParameterSet::Handle> handles_;
  at::Tensor rotations_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, at::Tensor> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace

std::unique_ptr<PositionalEncoding> MakeOwn(const PeContext& context) {
  return std::make_unique<Own>(context);
}

}  // namespace pelab::trainer
