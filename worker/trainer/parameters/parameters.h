// A model's parameters, kept in one flat tensor. The optimizer, snapshots and checkpoints are then
// a few operations on one block of memory. Every parameter is a leaf of autograd; its data and
// gradient are views into the flat tensors.
//
// Names and shapes are those of the kept weights (docs/formats.md). For the initial values see
// initial_values.h.
//
// A set can hold several members (models that differ only in their seed). Every tensor and gradient
// then has an additional first dimension for the members (parameters/members.h). A set of one
// member does not have this dimension.
//
// Declare everything, call Materialize once, then use the set. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/trainer/parameters/initial_values.h"

namespace pelab::trainer {

class ParameterSet {
 public:
  using Handle = int;
  using Shape = std::vector<std::int64_t>;

  // Declares a trained parameter.
  Handle Add(const std::string& name, const Shape& shape, const Init& init);
  // Declares several trained parameters of one shape. They are used as one tensor, stacked along
  // the first dimension, and kept under their own names.
  Handle AddStack(const std::vector<std::string>& names, const Shape& shape, const Init& init);
  // Declares a random tensor that is kept with the weights but not trained.
  Handle AddFrozen(const std::string& name, const Shape& shape, const Init& init);

  // Allocates all tensors on `device` in `dtype` and draws the initial values, for one member per
  // seed. With `rounded`, also keeps a bfloat16 copy of the trained parameters.
  void Materialize(const std::vector<std::int64_t>& seeds, at::Device device, at::ScalarType dtype,
                   bool rounded = false);
  void Materialize(std::int64_t seed, at::Device device, at::ScalarType dtype,
                   bool rounded = false) {
    Materialize(std::vector<std::int64_t>{seed}, device, dtype, rounded);
  }

  const std::vector<std::int64_t>& seeds() const { return seeds_; }
  std::int64_t members() const { return static_cast<std::int64_t>(seeds_.size()); }

  const at::Tensor& operator[](Handle handle) const { return entries_[handle].tensor; }
  // The tensor to use in matrix products: the bfloat16 copy if there is one, else the parameter.
  // The copy is a leaf of its own. Use each parameter either through this function or through
  // operator[], not both.
  const at::Tensor& Factor(Handle handle) const {
    return rounded_.defined() ? entries_[handle].rounded : entries_[handle].tensor;
  }
  // The type in which matrix products are computed.
  at::ScalarType factor_type() const;
  // Copies the parameters into the bfloat16 copy, if there is one. Call this after writing them.
  void Round();
  // Adds the gradients of the bfloat16 copy to flat_gradient() and sets them to zero.
  void GatherGradients();

  // All trained scalars (members() * count()), in the order of declaration. Within each parameter
  // the members follow one another. Writing to this tensor changes the parameters.
  const at::Tensor& flat() const { return flat_; }
  // The gradients, in the same layout.
  const at::Tensor& flat_gradient() const { return gradient_; }
  // The bfloat16 copy, in the same layout; undefined if there is none.
  const at::Tensor& rounded() const { return rounded_; }
  // TakeMember copies one member's part (count()) out of a tensor laid out like flat(). PutMember
  // copies it back.
  at::Tensor TakeMember(const at::Tensor& flat, std::int64_t member) const;
  void PutMember(const at::Tensor& values, std::int64_t member, const at::Tensor& flat) const;
  std::int64_t count() const { return count_; }  // per member
  at::Device device() const { return flat_.device(); }

  // A name and its tensor, without gradient. NamedTensors lists them in the order of declaration,
  // including frozen ones.
  struct Named {
    std::string name;
    at::Tensor tensor;
  };
  std::vector<Named> NamedTensors(std::int64_t member = 0) const;

 private:
  struct Entry {
    std::vector<std::string> names;
    Shape part_shape;  // of each named part
    Init init;
    bool trained = true;
    std::int64_t offset = 0;  // in the flat tensor of one member, if trained
    at::Tensor tensor;
    at::Tensor rounded;
  };
  Handle Push(Entry entry);
  at::Tensor Leaf(const at::Tensor& flat, const at::Tensor& gradient, const Entry& entry) const;
  template <typename Pairs>
  void OverMember(const at::Tensor& flat, const at::Tensor& values, std::int64_t member,
                  const Pairs& pairs) const;
  // The initial values of the entry, in the shape of its tensor, on the CPU.
  at::Tensor Drawn(const Entry& entry) const;
  Shape ShapeOf(const Entry& entry) const;        // of one member
  Shape StoredShapeOf(const Entry& entry) const;  // of the whole tensor

  std::vector<Entry> entries_;
  std::vector<std::int64_t> seeds_;
  at::Tensor rounded_;  // undefined: there is none
  at::Tensor rounded_gradient_;
  std::int64_t count_ = 0;
  at::Tensor flat_;
  at::Tensor gradient_;
};

}  // namespace pelab::trainer
