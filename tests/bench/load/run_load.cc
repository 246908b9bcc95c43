#include "tests/bench/load/run_load.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "tests/bench/load/floods/attacker.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kEventsTime = absl::Seconds(30);
constexpr absl::Duration kFloodTime = absl::Seconds(15);

using Scenario = absl::Status (*)(const Options&, Report&);

const std::map<std::string, Scenario>& Scenarios() {
  static const auto& scenarios = *new std::map<std::string, Scenario>{
      {"dispatch", RunDispatch}, {"events", RunEvents},   {"floods", RunFloods},
      {"million", RunMillion},   {"results", RunResults}, {"scrapes", RunScrapes}};
  return scenarios;
}

struct Words {
  Options options;
  std::string parent = "build/load";
  std::string json;
  double seconds = 0;  // 0: as long as the scenario needs
};

absl::Status RunIn(const Words& words, Report& report) {
  std::filesystem::create_directories(words.parent);
  // A socket path has at most 107 bytes, so the folder's path is kept short. It is absolute.
  std::string pattern = std::filesystem::absolute(words.parent).string() + "/rXXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot make a folder in ", words.parent));
  }
  Options options = words.options;
  options.directory = pattern;
  if (words.seconds > 0) {
    options.time = absl::Seconds(words.seconds);
  } else {
    options.time = options.scenario == "floods" ? kFloodTime : kEventsTime;
  }
  report.Note(DescribeHost());
  Latencies fsync = ProbeFsync(options.directory, 200);
  report.Add("fsync of 4 KiB on this disk", fsync);
  const absl::Status status = Scenarios().at(options.scenario)(options, report);
  if (status.ok() && report.ok()) {
    std::filesystem::remove_all(options.directory);
  } else {
    std::fprintf(stderr, "pelab-load: what is left is in %s\n", options.directory.c_str());
  }
  return status;
}

}  // namespace

int RunLoad(int argc, char** argv) {
  // Not for people: `floods` starts its attackers with it.
  if (argc > 1 && argv[1] == std::string_view(kAttackCommand)) AttackUntilEnded(argc, argv);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // as in pelab-server
  Words words;
  Options& options = words.options;
  if (const auto self = SelfPath(); self.ok()) {
    options.programs = std::filesystem::path(*self).parent_path().parent_path() / "bin";
  }
  std::vector<std::string> names;
  for (const auto& [name, scenario] : Scenarios()) names.push_back(name);
  CLI::App app("Fake workers over real gRPC against a pelab-server of its own", "pelab-load");
  app.add_option("scenario", options.scenario, "what to do")
      ->required()
      ->check(CLI::IsMember(names));
  app.add_option("--dir", words.parent, "where the database goes: on the disk to measure")
      ->capture_default_str();
  app.add_option("--programs", options.programs, "the folder of pelab-server and pelab")
      ->capture_default_str();
  app.add_option("--workers", options.workers)->check(CLI::Range(1, 100'000));
  app.add_option("--slots", options.slots, "of a worker")->check(CLI::Range(1, 1000));
  app.add_option("--channels", options.channels, "connections; 0: one a worker");
  app.add_option("--jobs", options.jobs)->check(CLI::Range(1, 1'000'000));
  app.add_option("--epochs", options.epochs, "of a job")->check(CLI::Range(1, 10'000));
  app.add_option("--rate", options.rate, "epochs a second, of all workers together");
  app.add_option("--seconds", words.seconds,
                 "for which `events` and each part of `scrapes` measure [30], or each of the "
                 "`floods` goes on [15]")
      ->check(CLI::PositiveNumber);
  app.add_option("--only", options.only, "names of floods, with commas between them")
      ->delimiter(',');
  app.add_option("--json", words.json, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);

  Report report(options.scenario);
  const absl::Status status = RunIn(words, report);
  if (!status.ok()) report.Fail(std::string{status.message()});
  report.Print();
  if (!words.json.empty()) {
    if (const absl::Status written = report.Write(words.json); !written.ok()) {
      std::fprintf(stderr, "pelab-load: %s\n", std::string{written.message()}.c_str());
      return 1;
    }
  }
  return report.ok() ? 0 : 1;
}

}  // namespace pelab::load
