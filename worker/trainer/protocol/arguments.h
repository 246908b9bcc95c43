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

struct Arguments {
  Command command = Command::kHelp;
  std::string spec;                         // --spec
  std::string weights;                      // --weights
  std::string workdir;                      // --workdir
  std::string out;                          // --out
  std::string device = "cpu";               // --device: "cpu" or "cuda:N"
  int threads = 1;                          // --threads
  bool resume = false;                      // --resume
  std::int64_t max_start_epoch = -1;        // --max-start-epoch; -1: no limit
  double checkpoint_seconds = 30;           // --checkpoint-seconds
  std::int64_t checkpoint_epochs = 0;       // --checkpoint-epochs; 0: by the seconds
  std::optional<std::int64_t> micro_batch;  // --micro-batch; 0: whole batches; nullopt: "auto"
  bool cuda_graphs = true;                  // --cuda-graphs on|off
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
