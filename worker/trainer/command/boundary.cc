#include <unistd.h>

#include <iostream>

#include "core/base/build_info.h"
#include "core/base/standard_descriptors.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/violation.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/command/failure.h"
#include "worker/trainer/command/job_run.h"
#include "worker/trainer/command/preload.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Runs `body` and returns the exit status. Calls `report` if it fails.
template <typename Body, typename Report>
int Guard(const Body& body, const Report& report) {
  try {
    body();
    return kExitDone;
  } catch (const Stopped&) {
    return kExitStopped;
  } catch (const std::exception&) {
    report(CurrentFailure());
  }
  return kExitFailed;
}

// Runs the commands that write events.
int GuardedRun(const Arguments& arguments) {
  JobLedger jobs;
  const auto report = [&](const Failure& failure) {
    ReportToPerson(failure);
    if (jobs.events < 0) return;
    if (jobs.open.empty()) jobs.open.insert("job");  // failed before the id was known
    // If the failure is that the reader is gone, writing the event fails too.
    Guard([&] { jobs.FailAll(failure); }, ReportToPerson);
  };
  const int status = Guard(
      [&] {
        jobs.events = TakeStandardOutput();
        InstallStopSignals();
        if (arguments.parent_fd >= 0) EndWithParent(arguments.parent_fd);
        const auto command = arguments.command == Command::kRun ? Run : Analyze;
        command(arguments, &jobs);
      },
      report);
  return status == kExitDone && jobs.some_failed ? kExitFailed : status;
}

// In a trainer that was forked for a request, runs its command.
int RunPreloaded(int control_fd) {
  std::optional<std::vector<std::string>> words;
  const int status = Guard([&] { words = ForkTrainers(control_fd); }, ReportToPerson);
  return words.has_value() ? Main(*words) : status;
}

}  // namespace

experiment::JobDocument ParseJobDocument(const std::string& json, const std::string& path) {
  experiment::JobDocumentResult result = experiment::FromJobDocument(json);
  if (result.document) return *std::move(result.document);
  std::string text;
  for (const experiment::Violation& violation : result.violations) {
    text += (text.empty() ? "" : "; ") + experiment::Format(violation, path);
  }
  throw TrainerError(ErrorKind::kBadSpec, path + ": " + text);
}

experiment::JobDocument ReadJobDocument(const std::string& path) {
  return ParseJobDocument(ReadFile(path), path);
}

int Main(const std::vector<std::string>& words) {
  Arguments arguments;
  try {
    arguments = ParseArguments(words);
  } catch (const UsageError& error) {
    std::cerr << "pelab-trainer: " << error.what() << "\n";
    return kExitUsage;
  }
  switch (arguments.command) {
    case Command::kHelp:
      std::cout << HelpText();
      return FlushStandardOutput("pelab-trainer", kExitDone);
    case Command::kVersion:
      std::cout << "pelab-trainer " << VersionText() << "\n";
      return FlushStandardOutput("pelab-trainer", kExitDone);
    case Command::kCapabilities:
      return FlushStandardOutput(
          "pelab-trainer", Guard([] { std::cout << CapabilitiesJson() << "\n"; }, ReportToPerson));
    case Command::kPreload:
      return RunPreloaded(arguments.control_fd);
    case Command::kDataset:
      return Guard([&] { WriteDataset(arguments); }, ReportToPerson);
    case Command::kCheck: {
      bool holds = false;
      const int status = Guard([&] { holds = CheckEncoding(arguments); }, ReportToPerson);
      return FlushStandardOutput("pelab-trainer",
                                 status == kExitDone && !holds ? kExitFailed : status);
    }
    case Command::kRun:
    case Command::kAnalyze:
      break;
  }
  return GuardedRun(arguments);
}

}  // namespace pelab::trainer
