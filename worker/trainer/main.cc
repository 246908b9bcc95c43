#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "worker/trainer/command/command.h"
#include "worker/trainer/command/preload.h"
#include "worker/trainer/config/blas_kernels.h"

int main(int argc, char** argv) {
  pelab::trainer::RestartWithBestBlasKernels(argv);
  pelab::trainer::RememberCommandLine(argc, argv);
  const int status = pelab::trainer::Main(std::vector<std::string>(argv + 1, argv + argc));
  // LibTorch's global destructors take a tenth of a second and do nothing that the end of the
  // process does not do.
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}
