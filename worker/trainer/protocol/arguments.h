// The command line of pelab-trainer.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::trainer {

enum class Command { kRun, kAnalyze, kCapabilities, kCheck, kDataset, kPreload, kHelp, kVersion };

// The options of one job. On the command line each of these options belongs to the last job. An
// option that the last job already has starts the next job.
struct JobFiles {
  std::string spec;                   // --spec
  std::string workdir;                // --workdir
  std::int64_t max_start_epoch = -1;  // --max-start-epoch; -1: no limit
};

// How several jobs of one process are trained (command/packing.h).
enum class PackingWay { kAuto, kOff, kOn };
struct PackingChoice {
  PackingWay way = PackingWay::kAuto;
  // With kOn: at least this many members; copies of the first job stand in for missing ones.
  std::int64_t width = 0;
};

struct Arguments {
  Command command = Command::kHelp;
  std::vector<JobFiles> jobs;          // run: one or more; else one, possibly without a workdir
  PackingChoice packing;               // --packing auto|off|on|K
  std::string weights;                 // --weights
  std::string out;                     // --out
  std::string files;                   // --files; empty: none
  std::string device = "cpu";          // --device: "cpu" or "cuda:N"
  int threads = 1;                     // --threads
  bool resume = false;                 // --resume
  double checkpoint_seconds = 30;      // --checkpoint-seconds
  std::int64_t checkpoint_epochs = 0;  // --checkpoint-epochs; 0: use checkpoint_seconds
  std::optional<std::int64_t> micro_batch;  // --micro-batch; 0: whole batches; nullopt: "auto"
  bool cuda_graphs = true;                  // --cuda-graphs on|off
  bool plain = false;                       // --kernels plain
  int parent_fd = -1;                       // --parent-fd; -1: none
  int control_fd = -1;                      // --control-fd
};

// Wrong use of the command line: one sentence for a person; exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parses the words after the program's name. Throws UsageError.
Arguments ParseArguments(const std::vector<std::string>& words);

std::string_view HelpText();

}  // namespace pelab::trainer
