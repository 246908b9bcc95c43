// Dropout masks on the CPU, addressed like everything random here: the mask of an element is a pure function of a key
// and the element's index. No LibTorch.
//
// LibTorch draws masks one after the other from one generator, which costs a third of a training step; a counter needs
// no order, so the compiler vectorises the loop.
#pragma once

#include <cstdint>

namespace pelab::trainer {

// Fills out[0 … count-1] with 0 (probability `p`) or 1/(1-p). The element's bits are a 32-bit finaliser (two rounds of
// xor-shift and multiply after Wellons' "lowbias32") over its index, keyed at both ends. count <= 2^32. Thread-safe; the
// same on every machine.
void FillDropoutMask(std::uint64_t key, double p, std::int64_t first, std::int64_t count,
                     float* out);

}  // namespace pelab::trainer
