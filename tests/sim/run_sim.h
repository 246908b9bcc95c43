// Runs histories. For the first one that breaks a promise it says how to repeat it. `make sim` runs
// 100,000 of them.
//
//   sim --seeds 0..999              many, until one fails
//   sim --seed 1234 --trace         one, with every step printed
//   sim --seeds 0..99 --plant NAME  with a planted bug of tests/sim/journal.h
#pragma once

namespace pelab::sim {

// RunSim is all of main. It returns the exit status: 0, 1 where a promise was broken or the
// histories try too little, and another one for a wrong command line.
int RunSim(int argc, char** argv);

}  // namespace pelab::sim
