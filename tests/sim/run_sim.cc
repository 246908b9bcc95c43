#include "tests/sim/run_sim.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "tests/sim/history.h"
#include "tests/sim/minima.h"

namespace pelab::sim {
namespace {

struct Options {
  std::string program;
  std::string seeds = "0..1999";
  std::string seed;
  std::string plant;
  bool trace = false;
  bool progress = false;
};

bool ReadRange(const Options& options, std::uint64_t* first, std::uint64_t* last) {
  if (!options.seed.empty()) {
    return absl::SimpleAtoi(options.seed, first) && absl::SimpleAtoi(options.seed, last);
  }
  const std::vector<std::string> ends = absl::StrSplit(options.seeds, "..");
  return ends.size() == 2 && absl::SimpleAtoi(ends[0], first) && absl::SimpleAtoi(ends[1], last);
}

void Add(const HistoryResult& result, HistoryResult* sum) {
  sum->faults += result.faults;
  sum->lasted += result.lasted;
  sum->counts += result.counts;
}

void Print(const HistoryResult& sum, std::uint64_t histories, absl::Duration took) {
  const Ledger::Counts& counts = sum.counts;
  std::printf(
      "%s\n",
      absl::StrCat(
          histories, " histories with ", sum.faults, " faults, ", absl::ToInt64Hours(sum.lasted),
          " hours of virtual time in ", static_cast<double>(absl::ToInt64Milliseconds(took)) / 1000,
          " s: no promise broken\n", counts.starts, " starts of a coordinator (",
          counts.found_unanswered, " found what nobody was told of), ", counts.events,
          " events stored, ", counts.duplicates, " came twice, ", counts.superseded, " too late, ",
          counts.gaps, " out of turn; ", counts.lost, " attempts given up, ", counts.successes,
          " succeeded\n", counts.controlled, " pauses and priorities, ", counts.retried,
          " jobs tried again, ", counts.extended, " extensions, ", counts.drained, " drains; ",
          counts.packed, " attempts packed with others\n", counts.lies,
          " messages that lie: ", counts.foreign, " events and logs for others refused, ",
          counts.broken, " attempts ended for a broken rule, ", counts.silent, " for silence; ",
          counts.requests_refused, " requests of hostile clients refused\n", counts.gone,
          " reports that a worker is gone ended ", counts.fenced, " attempts; ", counts.losses,
          " losses counted again; ", counts.old_hellos, " hellos of old workers; ",
          counts.with_files, " jobs with files given out; ", counts.recorded, " recorded epochs\n",
          counts.rounds, " rounds of claim sheets ended, ", counts.put_aside,
          " requests put claims aside, ", counts.changes_stale,
          " changes of sheets came too late, ", counts.sheets_played,
          " sheets were played once more")
          .c_str());
}

int Run(const Options& options) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (!ReadRange(options, &first, &last)) {
    std::fprintf(stderr, "sim: seeds are a number or a range such as 0..1999\n");
    return 2;
  }
  Planted planted;
  if (!options.plant.empty()) planted.*PlantedByName().at(options.plant) = true;
  HistoryResult sum;
  const absl::Time began = absl::Now();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const HistoryResult result =
        RunHistory({.seed = seed, .planted = planted, .print = options.trace});
    if (result.violation) {
      std::fprintf(stderr, "sim: seed %llu: %s\nsee it again with:\n  %s --seed %llu --trace%s%s\n",
                   static_cast<unsigned long long>(seed), result.violation->c_str(),
                   options.program.c_str(), static_cast<unsigned long long>(seed),
                   options.plant.empty() ? "" : " --plant ", options.plant.c_str());
      return 1;
    }
    Add(result, &sum);
    if (options.progress && (seed - first) % 1000 == 999) {
      std::printf("%llu of %llu histories, %.0f s\n",
                  static_cast<unsigned long long>(seed - first + 1),
                  static_cast<unsigned long long>(last - first + 1),
                  absl::ToDoubleSeconds(absl::Now() - began));
      std::fflush(stdout);
    }
  }
  const std::uint64_t histories = last - first + 1;
  Print(sum, histories, absl::Now() - began);
  const std::vector<std::string> rare = TooRare(sum, histories);
  for (const std::string& sentence : rare) std::fprintf(stderr, "sim: %s\n", sentence.c_str());
  return rare.empty() ? 0 : 1;
}

}  // namespace

int RunSim(int argc, char** argv) {
  Options options;
  CLI::App app("Histories of a coordinator and its workers under faults, each drawn from a seed.");
  std::vector<std::string> plants;
  for (const auto& [name, bug] : PlantedByName()) plants.push_back(name);
  app.add_option("--seeds", options.seeds, "the range FIRST..LAST")->capture_default_str();
  app.add_option("--seed", options.seed, "one seed");
  app.add_option("--plant", options.plant, "a bug to be found")->check(CLI::IsMember(plants));
  app.add_flag("--trace", options.trace, "print every step");
  app.add_flag("--progress", options.progress, "a line every thousand histories");
  CLI11_PARSE(app, argc, argv);
  options.program = argv[0];
  spdlog::set_level(options.trace ? spdlog::level::info : spdlog::level::off);
  return Run(options);
}

}  // namespace pelab::sim
