// The command line of pelab-trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::trainer {

enum class Command { kRun, kAnalyze, kCapabilities, kDataset, kHelp, kVersion };

// What an option before the first --spec, or between two, belongs to.
struct JobFiles {
  std::string spec;                   // --spec
  std::string workdir;                // --workdir
  std::int64_t max_start_epoch = -1;  // --max-start-epoch; -1: no limit
};

// How several jobs of one process are trained (command/packing.h).
enum class PackingWay { kAuto, kOff, kOn };
struct PackingChoice {
  PackingWay way = PackingWay::kAuto;
  std::int64_t width =
      0;  // with kOn: members at least, of which those beyond the jobs stand in for others
};

struct Arguments {
  Command command = Command::kHelp;
  std::vector<JobFiles> jobs;               // of run several, else one, perhaps without a workdir
  PackingChoice packing;                    // --packing auto|off|on|K
  std::string weights;                      // --weights
  std::string out;                          // --out
  std::string device = "cpu";               // --device: "cpu" or "cuda:N"
  int threads = 1;                          // --threads
  bool resume = false;                      // --resume
  double checkpoint_seconds = 30;           // --checkpoint-seconds
  std::int64_t checkpoint_epochs = 0;       // --checkpoint-epochs; 0: by the seconds
  std::optional<std::int64_t> micro_batch;  // --micro-batch; 0: whole batches; nullopt: "auto"
  bool cuda_graphs = true;                  // --cuda-graphs on|off
  bool plain = false;                       // --kernels plain
  int parent_fd = -1;                       // --parent-fd; -1: none
};

// Wrong use: one sentence for a person; exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parses what follows the program's name. Throws UsageError.
Arguments ParseArguments(const std::vector<std::string>& words);

std::string_view HelpText();

}  // namespace pelab::trainer
