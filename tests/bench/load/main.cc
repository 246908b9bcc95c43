#include "tests/bench/load/run_load.h"

int main(int argc, char** argv) { return pelab::load::RunLoad(argc, argv); }
