// Checks of an own encoding's module before it is called, and of what its methods return.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/trainer/pe/own_source.h"

namespace torch::jit {
struct Module;
}

namespace pelab::trainer {

// Throws TrainerError(kBadSpec) if the file's code has a function that runs while the file is
// loaded, before CheckModule can look at it. May throw other errors if the file is no archive.
void CheckCode(const OwnSource& source);

// Throws TrainerError(kBadSpec) if the module lacks a declared method, if a method has other
// arguments than docs/own-encodings.md says, if a method beside `configure` and `reset` draws
// random numbers or sets an attribute (results would differ after a resumed run), or if any
// function reads or writes files.
void CheckModule(const torch::jit::Module& module, const OwnSource& source);

// The sizes that each dimension may have.
using AllowedShape = std::vector<std::vector<std::int64_t>>;

// The result of `method` in this type and on this device. Throws TrainerError(kBadSpec) unless it
// is a tensor of 32-bit or 64-bit floats in the allowed shape or, if `broadcasts`, in one that
// broadcasts to it, and if the source refuses them, without NaN and infinity. (Minus infinity is
// allowed: as a logit, it hides a key.)
at::Tensor CheckedResult(const OwnSource& source, const std::string& method,
                         const at::Tensor& result, const AllowedShape& allowed, bool broadcasts,
                         const at::TensorOptions& options);

}  // namespace pelab::trainer
