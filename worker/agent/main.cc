#include "worker/agent/run_worker.h"

int main(int argc, char** argv) { return pelab::agent::RunWorker(argc, argv); }
