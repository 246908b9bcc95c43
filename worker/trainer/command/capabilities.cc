#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "worker/trainer/analysis/registry.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/config/blas_kernels.h"
#include "worker/trainer/parameters/torch_compat.h"
#include "worker/trainer/pe/registry.h"
#include "worker/trainer/task/registry.h"

namespace pelab::trainer {
namespace {

template <typename Table>
nlohmann::ordered_json Versions(const Table& table) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto& entry : table) {
    entries.push_back({{"name", entry.name}, {"version", entry.version}});
  }
  return entries;
}

// Environment variables that later trainer processes should get, so that they need not restart
// themselves (config/blas_kernels.h).
nlohmann::ordered_json Environment() {
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();
  if (const char* kernels = std::getenv(kBlasKernelsVariable))
    environment[kBlasKernelsVariable] = kernels;
  return environment;
}

}  // namespace

std::string CapabilitiesJson() {
  nlohmann::ordered_json devices = {"cpu"};
  for (int i = 0; i < CudaDevices(); ++i) devices.push_back("cuda:" + std::to_string(i));
  std::vector<PeEntry> pes = PeRegistry();
  pes.push_back(OwnPeEntry());
  std::vector<TaskEntry> tasks = TaskRegistry();
  tasks.push_back({catalog::OwnTask().name, catalog::OwnTask().version, nullptr});
  const nlohmann::ordered_json object = {{"protocol", 1},
                                         {"trainer", PELAB_VERSION},
                                         {"libtorch", LibTorchVersion()},
                                         {"preload", 1},  // the version of its requests
                                         {"cuda", CudaDevices() > 0},
                                         {"devices", devices},
                                         {"environment", Environment()},
                                         {"pes", Versions(pes)},
                                         {"tasks", Versions(tasks)},
                                         {"analyses", Versions(AnalysisRegistry())}};
  return object.dump();
}

}  // namespace pelab::trainer
