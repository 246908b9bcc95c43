// Whether head numbers are comparable between models of different seeds. A pure function:
// thread-safe.
#pragma once

#include <string_view>

namespace pelab::catalog {

// Whether the encoding itself treats the heads of a layer differently, so that head 2 of one seed
// is comparable with head 2 of another. True for `alibi`, whose slope depends on the head's number,
// and for `partial_rope`, which rotates only the listed heads. All other encodings treat heads
// alike, or learn a difference anew in each seed (the biases of `relative`), so a head's number
// means nothing across seeds. `pe` is a name from Pes(); false for any other name.
bool HeadsDiffer(std::string_view pe);

}  // namespace pelab::catalog
