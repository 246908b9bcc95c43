#include "worker/trainer/model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "core/base/random.h"

namespace pelab::trainer {
namespace {

std::int64_t Product(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

void Draw(std::int64_t seed, const std::string& name, Init init, std::int64_t count, double* out) {
  CounterRandom random(static_cast<std::uint64_t>(seed), "init/" + name);
  for (std::int64_t i = 0; i < count; ++i) {
    switch (init.kind) {
      case Init::Kind::kConstant:
        out[i] = init.scale;
        break;
      case Init::Kind::kUniform:
        out[i] = (2 * random.Uniform() - 1) * init.scale;
        break;
      case Init::Kind::kNormal:
        out[i] = random.Normal() * init.scale;
        break;
    }
  }
}

// A view of `shape` into flat tensors, as a leaf of autograd.
at::Tensor Leaf(const at::Tensor& flat, const at::Tensor& gradient, std::int64_t offset,
                const std::vector<std::int64_t>& shape) {
  const std::int64_t count = Product(shape);
  at::Tensor leaf = flat.narrow(0, offset, count).view(shape).detach();
  leaf.set_requires_grad(true);
  leaf.mutable_grad() = gradient.narrow(0, offset, count).view(shape);
  return leaf;
}

}  // namespace

ParameterSet::Handle ParameterSet::Push(Entry entry) {
  if (entry.trained) {
    entry.offset = count_;
    count_ += Product(entry.part_shape) * static_cast<std::int64_t>(entry.names.size());
  }
  entries_.push_back(std::move(entry));
  return static_cast<Handle>(entries_.size()) - 1;
}

ParameterSet::Handle ParameterSet::Add(const std::string& name, const Shape& shape, Init init) {
  return Push({{name}, shape, init, true, 0, {}, {}});
}

ParameterSet::Handle ParameterSet::AddStack(const std::vector<std::string>& names,
                                            const Shape& shape, Init init) {
  return Push({names, shape, init, true, 0, {}, {}});
}

ParameterSet::Handle ParameterSet::AddFrozen(const std::string& name, const Shape& shape,
                                             Init init) {
  return Push({{name}, shape, init, false, 0, {}, {}});
}

void ParameterSet::Materialize(std::int64_t seed, at::Device device, at::ScalarType dtype,
                               bool rounded) {
  const auto doubles = at::TensorOptions().dtype(at::kDouble);
  flat_ = at::empty({count_}, doubles.dtype(dtype).device(device));
  gradient_ = at::zeros_like(flat_);
  if (rounded) {
    rounded_ = at::zeros({count_}, flat_.options().dtype(at::kBFloat16));
    rounded_gradient_ = at::zeros_like(rounded_);
  }
  for (Entry& entry : entries_) {
    const std::int64_t part = Product(entry.part_shape);
    Shape shape = entry.part_shape;
    shape[0] *= static_cast<std::int64_t>(entry.names.size());
    const at::Tensor values = at::empty({Product(shape)}, doubles);
    for (std::size_t i = 0; i < entry.names.size(); ++i) {
      Draw(seed, entry.names[i], entry.init, part,
           values.data_ptr<double>() + static_cast<std::int64_t>(i) * part);
    }
    if (!entry.trained) {
      entry.tensor = values.view(shape).to(dtype).to(device);
      continue;
    }
    flat_.narrow(0, entry.offset, values.numel()).copy_(values);
    entry.tensor = Leaf(flat_, gradient_, entry.offset, shape);
    if (rounded) entry.rounded = Leaf(rounded_, rounded_gradient_, entry.offset, shape);
  }
  Round();
}

at::ScalarType ParameterSet::factor_type() const {
  return rounded_.defined() ? rounded_.scalar_type() : flat_.scalar_type();
}

void ParameterSet::Round() {
  const at::NoGradGuard no_grad;
  if (rounded_.defined()) rounded_.copy_(flat_);
}

void ParameterSet::GatherGradients() {
  const at::NoGradGuard no_grad;
  if (!rounded_.defined()) return;
  gradient_.add_(rounded_gradient_);
  rounded_gradient_.zero_();
}

std::vector<ParameterSet::Named> ParameterSet::NamedTensors() const {
  std::vector<Named> named;
  for (const Entry& entry : entries_) {
    const std::int64_t rows = entry.part_shape[0];
    for (std::size_t i = 0; i < entry.names.size(); ++i) {
      named.push_back({entry.names[i],
                       entry.tensor.detach().narrow(0, static_cast<std::int64_t>(i) * rows, rows)});
    }
  }
  return named;
}

}  // namespace pelab::trainer
