#include "server/run_server.h"

int main(int argc, char** argv) { return pelab::RunServer(argc, argv); }
