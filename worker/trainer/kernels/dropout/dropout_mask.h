// Dropout masks on the CPU. Like all randomness here, they are addressed: the mask of an element is
// a pure function of a key and the element's index. No LibTorch.
//
// LibTorch draws masks sequentially from one generator, which takes a third of a training step. A
// counter needs no order, so the compiler can vectorize the loop.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/dropout_stream.h"

namespace pelab::trainer {

// A stream that drops with probability `p` and multiplies the rest by 1/(1-p). Index 0 of the
// stream is element `first` of the whole batch.
DropoutStream MakeDropoutStream(std::uint64_t key, double p, std::int64_t first);

// Fills out[0 … count-1] with the factors of the elements of a stream from `first` on. count <=
// 2^32. Thread-safe; gives the same result on every machine.
void FillDropoutMask(const DropoutStream& stream, std::int64_t first, std::int64_t count,
                     float* out);

}  // namespace pelab::trainer
