// No positional encoding. The model can see the order of tokens only through the causal mask, and
// not at all without one.
#include "worker/trainer/pe/pe.h"

namespace pelab::trainer {

std::unique_ptr<PositionalEncoding> MakeNope(const PeContext&) {
  return std::make_unique<PositionalEncoding>();
}

}  // namespace pelab::trainer
