// No positional encoding: order shows only through the causal mask, and not at all without one.
#include "worker/trainer/pe/pe.h"

namespace pelab::trainer {

std::unique_ptr<PositionalEncoding> MakeNope(const PeContext&) {
  return std::make_unique<PositionalEncoding>();
}

}  // namespace pelab::trainer
