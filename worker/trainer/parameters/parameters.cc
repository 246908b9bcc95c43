#include "worker/trainer/parameters/parameters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace pelab::trainer {
namespace {

std::int64_t Product(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
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

ParameterSet::Handle ParameterSet::Add(const std::string& name, const Shape& shape,
                                       const Init& init) {
  return Push({{name}, shape, init, true, 0, {}, {}});
}

ParameterSet::Handle ParameterSet::AddStack(const std::vector<std::string>& names,
                                            const Shape& shape, const Init& init) {
  return Push({names, shape, init, true, 0, {}, {}});
}

ParameterSet::Handle ParameterSet::AddFrozen(const std::string& name, const Shape& shape,
                                             const Init& init) {
  return Push({{name}, shape, init, false, 0, {}, {}});
}

ParameterSet::Shape ParameterSet::ShapeOf(const Entry& entry) const {
  Shape shape = entry.part_shape;
  shape[0] *= static_cast<std::int64_t>(entry.names.size());
  return shape;
}

ParameterSet::Shape ParameterSet::StoredShapeOf(const Entry& entry) const {
  Shape own = ShapeOf(entry);
  if (members() == 1) return own;
  Shape shape = {members()};
  shape.insert(shape.end(), own.begin(), own.end());
  return shape;
}

// Makes a leaf of autograd that is a view into the flat tensors.
at::Tensor ParameterSet::Leaf(const at::Tensor& flat, const at::Tensor& gradient,
                              const Entry& entry) const {
  const Shape shape = StoredShapeOf(entry);
  const auto view = [&](const at::Tensor& of) {
    return of.narrow(0, members() * entry.offset, Product(shape)).view(shape);
  };
  at::Tensor leaf = view(flat).detach();
  leaf.set_requires_grad(true);
  leaf.mutable_grad() = view(gradient);
  return leaf;
}

// Calls pairs(whole, part) for each parameter: `whole` is the member's part of `flat`, `part` the
// matching part of `values` (count()).
template <typename Pairs>
void ParameterSet::OverMember(const at::Tensor& flat, const at::Tensor& values, std::int64_t member,
                              const Pairs& pairs) const {
  const at::NoGradGuard no_grad;
  for (const Entry& entry : entries_) {
    if (!entry.trained) continue;
    const std::int64_t count = Product(ShapeOf(entry));
    pairs(flat.narrow(0, members() * entry.offset + member * count, count),
          values.narrow(0, entry.offset, count));
  }
}

at::Tensor ParameterSet::TakeMember(const at::Tensor& flat, std::int64_t member) const {
  at::Tensor values = at::empty({count_}, flat.options().requires_grad(false));
  OverMember(flat, values, member,
             [](const at::Tensor& whole, const at::Tensor& part) { part.copy_(whole); });
  return values;
}

void ParameterSet::PutMember(const at::Tensor& values, std::int64_t member,
                             const at::Tensor& flat) const {
  OverMember(flat, values, member,
             [](const at::Tensor& whole, const at::Tensor& part) { whole.copy_(part); });
}

at::Tensor ParameterSet::Drawn(const Entry& entry) const {
  const Shape shape = StoredShapeOf(entry);
  const std::int64_t part = Product(entry.part_shape);
  const at::Tensor values = at::empty({Product(shape)}, at::kDouble);
  auto* to = values.data_ptr<double>();
  for (const std::int64_t seed : seeds_) {
    for (const std::string& name : entry.names) {
      DrawInitialValues(seed, name, entry.init, part, to);
      to += part;
    }
  }
  return values.view(shape);
}

void ParameterSet::Materialize(const std::vector<std::int64_t>& seeds, at::Device device,
                               at::ScalarType dtype, bool rounded) {
  seeds_ = seeds;
  flat_ = at::zeros({members() * count_}, at::TensorOptions().dtype(dtype).device(device));
  gradient_ = at::zeros_like(flat_);
  if (rounded) {
    rounded_ = at::zeros_like(flat_, at::TensorOptions().dtype(at::kBFloat16));
    rounded_gradient_ = at::zeros_like(rounded_);
  }
  for (Entry& entry : entries_) {
    const at::Tensor values = Drawn(entry);
    if (!entry.trained) {
      entry.tensor = values.to(dtype).to(device);
      continue;
    }
    entry.tensor = Leaf(flat_, gradient_, entry);
    entry.tensor.detach().copy_(values);
    if (rounded) entry.rounded = Leaf(rounded_, rounded_gradient_, entry);
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

std::vector<ParameterSet::Named> ParameterSet::NamedTensors(std::int64_t member) const {
  std::vector<Named> named;
  for (const Entry& entry : entries_) {
    const std::int64_t rows = entry.part_shape[0];
    const at::Tensor all = entry.tensor.detach();
    const at::Tensor own = members() == 1 ? all : all.select(0, member);
    for (std::size_t i = 0; i < entry.names.size(); ++i) {
      named.push_back({entry.names[i], own.narrow(0, static_cast<std::int64_t>(i) * rows, rows)});
    }
  }
  return named;
}

}  // namespace pelab::trainer
