// The commands. Each adds itself to the command line, in its own file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/options/options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// The command line under construction, and the command that was chosen.
struct Commands {
  CLI::App* app = nullptr;
  Context* context = nullptr;
  // Whether a command of this name may be parsed or described. Others need no flags, and to add
  // theirs to all of them would take a tenth of a start's time.
  std::function<bool(const std::string& command)> shown;
  std::string document_name;                    // of the sweep file, for messages about it
  std::function<absl::StatusOr<int>()> chosen;  // runs the chosen command; returns the exit status
};

// Adds a subcommand with examples below its help and, if it may be shown, with the flags that all
// commands have (--server, --db, --output, …).
CLI::App* AddCommand(Commands& commands, const std::string& name, const std::string& help,
                     const std::string& examples);

void AddRun(Commands& commands);
void AddSubmit(Commands& commands);
void AddCheck(Commands& commands);
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
void AddClaims(Commands& commands);
void AddSettle(Commands& commands);
void AddReport(Commands& commands);
void AddCatalog(Commands& commands);
void AddWorkers(Commands& commands);
void AddAlloc(Commands& commands);
void AddAdmin(Commands& commands);
void AddAudit(Commands& commands);
void AddExport(Commands& commands);
void AddExportModel(Commands& commands);
void AddImport(Commands& commands);
void AddDb(Commands& commands);
void AddCompletion(Commands& commands);

}  // namespace pelab::client
