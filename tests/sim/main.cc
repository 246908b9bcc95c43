#include <sqlite3.h>

#include "tests/sim/run_sim.h"

int main(int argc, char** argv) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);  // as in the coordinator
  return pelab::sim::RunSim(argc, argv);
}
