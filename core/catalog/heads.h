// What heads of one number have in common in models of different seeds. A pure function:
// thread-safe.
#pragma once

#include <string_view>

namespace pelab::catalog {

// Whether the encoding itself treats the heads of a layer differently, so that head 2 of one seed is
// comparable with head 2 of another: the slope of `alibi` goes by the head's number, and
// `partial_rope` rotates the heads that are named. All others treat heads alike, or learn a
// difference anew in each seed (the biases of `relative`): there a head's number says nothing from
// one seed to the next. `pe` is a name of Pes(); false for others.
bool HeadsDiffer(std::string_view pe);

}  // namespace pelab::catalog
