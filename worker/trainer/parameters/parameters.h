// A model's parameters, kept in one flat tensor so that the optimiser, snapshots and checkpoints are a few operations on
// one block of memory. Every parameter is a leaf of autograd whose data and gradient are views into the flat tensors.
//
// Names and shapes here are those of the kept weights (docs/formats.md). Values at the start: initial_values.h.
//
// Several members, models that differ in their seed alone, may be kept side by side: every tensor then has a first dimension
// for them, and so have the gradients (model/members.h). A set of one member has no such dimension.
//
// Declare everything, call Materialize once, then use. Not thread-safe.
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

  // A trained parameter.
  Handle Add(const std::string& name, const Shape& shape, const Init& init);
  // Several trained parameters of one shape that are used as one tensor, stacked along the first dimension, and kept
  // under their own names.
  Handle AddStack(const std::vector<std::string>& names, const Shape& shape, const Init& init);
  // A random tensor that is kept with the weights but not trained.
  Handle AddFrozen(const std::string& name, const Shape& shape, const Init& init);

  // Allocates on `device` in `dtype` and draws the starting values, of one member for each seed. With `rounded` there is a copy
  // in bfloat16 beside.
  void Materialize(const std::vector<std::int64_t>& seeds, at::Device device, at::ScalarType dtype,
                   bool rounded = false);
  void Materialize(std::int64_t seed, at::Device device, at::ScalarType dtype,
                   bool rounded = false) {
    Materialize(std::vector<std::int64_t>{seed}, device, dtype, rounded);
  }

  const std::vector<std::int64_t>& seeds() const { return seeds_; }
  std::int64_t members() const { return static_cast<std::int64_t>(seeds_.size()); }

  const at::Tensor& operator[](Handle handle) const { return entries_[handle].tensor; }
  // What products of matrices are made of: the rounded copy where there is one, a leaf of its own. A parameter is used
  // either way, not both.
  const at::Tensor& Factor(Handle handle) const {
    return rounded_.defined() ? entries_[handle].rounded : entries_[handle].tensor;
  }
  // The type that products are made in.
  at::ScalarType factor_type() const;
  // Copies the parameters into the rounded copy; call after writing them.
  void Round();
  // Adds the rounded copy's gradients to flat_gradient() and zeroes them.
  void GatherGradients();

  // All trained scalars, (members() * count()), in the order of declaration, of each parameter one member's after the other's;
  // writing here writes the parameters.
  const at::Tensor& flat() const { return flat_; }
  // Their gradients, laid out alike.
  const at::Tensor& flat_gradient() const { return gradient_; }
  // Likewise; undefined where there is none.
  const at::Tensor& rounded() const { return rounded_; }
  // A member's part of a tensor that is laid out like flat(): a copy of it, (count()), and back.
  at::Tensor TakeMember(const at::Tensor& flat, std::int64_t member) const;
  void PutMember(const at::Tensor& values, std::int64_t member, const at::Tensor& flat) const;
  std::int64_t count() const { return count_; }  // of a member
  at::Device device() const { return flat_.device(); }

  // A name and its tensor, detached, in the order of declaration; frozen ones included.
  struct Named {
    std::string name;
    at::Tensor tensor;
  };
  std::vector<Named> NamedTensors(std::int64_t member = 0) const;

 private:
  struct Entry {
    std::vector<std::string> names;
    Shape part_shape;  // of each name
    Init init;
    bool trained = true;
    std::int64_t offset = 0;  // in the flat tensor of one member, when trained
    at::Tensor tensor;
    at::Tensor rounded;
  };
  Handle Push(Entry entry);
  at::Tensor Leaf(const at::Tensor& flat, const at::Tensor& gradient, const Entry& entry) const;
  template <typename Pairs>
  void OverMember(const at::Tensor& flat, const at::Tensor& values, std::int64_t member,
                  const Pairs& pairs) const;
  // The values that the entry starts from, shaped as its tensor, on the CPU.
  at::Tensor Drawn(const Entry& entry) const;
  Shape ShapeOf(const Entry& entry) const;        // of a member
  Shape StoredShapeOf(const Entry& entry) const;  // of the tensor

  std::vector<Entry> entries_;
  std::vector<std::int64_t> seeds_;
  at::Tensor rounded_;  // undefined: there is none
  at::Tensor rounded_gradient_;
  std::int64_t count_ = 0;
  at::Tensor flat_;
  at::Tensor gradient_;
};

}  // namespace pelab::trainer
