// Dropout masks on the CPU, addressed like everything random here: the mask of an element is a pure function of a key
// and the element's index. No LibTorch.
//
// LibTorch draws masks one after the other from one generator, which costs a third of a training step; a counter needs
// no order, so the compiler vectorises the loop.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/dropout_stream.h"

namespace pelab::trainer {

// The stream that drops with probability `p` and multiplies the rest by 1/(1-p); index 0 is the whole batch's element
// `first`.
DropoutStream MakeDropoutStream(std::uint64_t key, double p, std::int64_t first);

// Fills out[0 … count-1] with the factors of elements `first` … of a stream. count <= 2^32. Thread-safe; the same on every
// machine.
void FillDropoutMask(const DropoutStream& stream, std::int64_t first, std::int64_t count,
                     float* out);

}  // namespace pelab::trainer
