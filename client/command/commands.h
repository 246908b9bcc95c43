// The commands: each adds itself to the command line in a file of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// The command line that is being built, and what it chose.
struct Commands {
  CLI::App* app = nullptr;
  Context* context = nullptr;
  std::string document_name;                    // for messages about a sweep file
  std::function<absl::StatusOr<int>()> chosen;  // runs the command; its exit status
};

// A subcommand with the flags that all have (--server, --db, --output, …) and examples below its
// help.
CLI::App* AddCommand(Commands& commands, const std::string& name, const std::string& help,
                     const std::string& examples);

void AddRun(Commands& commands);
void AddSubmit(Commands& commands);
void AddStatus(Commands& commands);
void AddSweeps(Commands& commands);
void AddJobs(Commands& commands);
void AddLogs(Commands& commands);
void AddCancel(Commands& commands);
void AddPause(Commands& commands);
void AddResume(Commands& commands);
void AddPriority(Commands& commands);
void AddRetry(Commands& commands);
void AddExtend(Commands& commands);
void AddResults(Commands& commands);
void AddCurves(Commands& commands);
void AddDiff(Commands& commands);
void AddAblation(Commands& commands);
void AddDeposits(Commands& commands);
void AddAnalyses(Commands& commands);
void AddAnalyze(Commands& commands);
void AddArtifacts(Commands& commands);
void AddReport(Commands& commands);
void AddCatalog(Commands& commands);
void AddWorkers(Commands& commands);
void AddExport(Commands& commands);
void AddImport(Commands& commands);
void AddDb(Commands& commands);
void AddCompletion(Commands& commands);

}  // namespace pelab::client
