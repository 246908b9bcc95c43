#include <string>
#include <vector>

#include "worker/trainer/command/command.h"
#include "worker/trainer/config/blas_kernels.h"

int main(int argc, char** argv) {
  pelab::trainer::RestartWithBestBlasKernels(argv);
  return pelab::trainer::Main(std::vector<std::string>(argv + 1, argv + argc));
}
