#include "tests/sim/run_sim.h"

int main(int argc, char** argv) { return pelab::sim::RunSim(argc, argv); }
