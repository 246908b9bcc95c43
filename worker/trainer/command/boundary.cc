#include <c10/util/Exception.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>

#include "core/spec/canonical.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/model/torch_compat.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/event_stream.h"
#include "worker/trainer/protocol/files.h"
#include "worker/trainer/protocol/stop.h"

namespace pelab::trainer {
namespace {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct Failure {
  ErrorKind kind;
  std::string message;
};

// The place in LibTorch's sources and the condition that failed there mean nothing to a person:
// "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: …".
std::string WithoutPlace(const std::string& text) {
  if (text.rfind("[enforce fail at ", 0) != 0) return text;
  const std::size_t end = text.find(". ", text.find(']'));
  return end == std::string::npos ? text : text.substr(end + 2);
}

// LibTorch says of CUDA how much was asked and how much is free, of the host what was asked alone.
std::string WithFree(const std::string& text) {
  const std::int64_t free = FreeHostBytesAtPeak();
  if (free < 0 || text.find("CUDA") != std::string::npos) return text;
  return text + (text.back() == '.' ? " " : "; ") + std::to_string(free) + " bytes were free";
}

// LibTorch says it in many words, several lines of them.
Failure FromLibTorch(std::string text) {
  text = WithoutPlace(text.substr(0, text.find('\n')));
  for (const char* const sign : {"out of memory", "not enough memory", "can't allocate memory"}) {
    if (text.find(sign) != std::string::npos) return {ErrorKind::kOutOfMemory, WithFree(text)};
  }
  return {ErrorKind::kInternal, text};
}

// Runs `body` and answers with the exit status; `report` is told of a failure.
template <typename Body, typename Report>
int Guard(const Body& body, const Report& report) {
  try {
    body();
    return kExitDone;
  } catch (const Stopped&) {
    return kExitStopped;
  } catch (const TrainerError& error) {
    report(Failure{error.kind(), error.what()});
  } catch (const c10::Error& error) {
    report(FromLibTorch(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    report(Failure{ErrorKind::kOutOfMemory, WithFree("out of memory on the host")});
  } catch (const std::exception& error) {
    report(FromLibTorch(error.what()));
  }
  return kExitFailed;
}

void ReportToPerson(const Failure& failure) {
  std::cerr << "pelab-trainer: " << failure.message << "\n";
}

// Of the commands that write events.
int GuardedRun(const Arguments& arguments) {
  int events = -1;
  std::string job_id = "job";
  const auto report = [&](const Failure& failure) {
    ReportToPerson(failure);
    if (events < 0) return;
    // The reader may be gone, which is then what failed.
    Guard(
        [&] {
          EventStream(events, job_id)
              .Emit("error", {{"kind", ErrorKindName(failure.kind)}, {"message", failure.message}});
        },
        ReportToPerson);
  };
  return Guard(
      [&] {
        events = TakeStandardOutput();
        InstallStopSignals();
        if (arguments.parent_fd >= 0) EndWithParent(arguments.parent_fd);
        const auto command = arguments.command == Command::kRun ? Run : Analyze;
        command(arguments, events, &job_id);
      },
      report);
}

}  // namespace

spec::JobDocument ReadJobDocument(const std::string& path) {
  spec::JobDocumentResult result = spec::FromJobDocument(ReadFile(path));
  if (result.document) return *std::move(result.document);
  std::string text;
  for (const spec::Violation& violation : result.violations) {
    text += (text.empty() ? "" : "; ") + spec::Format(violation, path);
  }
  throw TrainerError(ErrorKind::kBadSpec, path + ": " + text);
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
      return kExitDone;
    case Command::kVersion:
      std::cout << "pelab-trainer " PELAB_VERSION "\n";
      return kExitDone;
    case Command::kCapabilities:
      return Guard([] { std::cout << CapabilitiesJson() << "\n"; }, ReportToPerson);
    case Command::kDataset:
      return Guard([&] { WriteDataset(arguments); }, ReportToPerson);
    case Command::kRun:
    case Command::kAnalyze:
      break;
  }
  return GuardedRun(arguments);
}

}  // namespace pelab::trainer
