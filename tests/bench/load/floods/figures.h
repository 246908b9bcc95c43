// The measurements of one flood, its verdict, and the table of all floods. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/load/latencies.h"

namespace pelab::load {

// The waits of an honest client in a part of the run, in ms.
struct Waits {
  double p50 = 0;
  double p99 = 0;
  double max = 0;
  std::size_t count = 0;

  static Waits Of(Latencies latencies);
};

struct FloodFigures {
  std::string name;
  std::string unbounded_below;  // version of gRPC; not empty: the figures are not judged
  double seconds = 0;           // for which the flood went on
  double attacker_cpu = 0;      // seconds, in these
  double coordinator_cpu = 0;
  double peak_mib = 0;      // VmHWM after the flood
  double resident_mib = 0;  // before it
  int most_threads = 0;
  int most_descriptors = 0;
  Waits worker_before;
  Waits worker_during;
  Waits reader_before;
  Waits reader_during;
  std::int64_t read_errors = 0;      // that the honest reader got
  std::int64_t broken_sessions = 0;  // of the honest worker
  bool sessions_may_break = false;   // they are counted and not judged
  // Seconds from the end of the flood until a second in which neither honest client waited for
  // longer than allowed (IsRecovered); nullopt: not within the time that the bench waits.
  std::optional<double> recovery;
  std::string ended;     // how the coordinator ended by itself; empty: it did not
  nlohmann::json tally;  // of the attacker
};

struct FloodBounds {
  double peak_mib = 1024;
  double p99_ms = 250;
  double recovery_seconds = 10;
};

// Whether a p99 of one second is back to what it was before a flood: below twice as much. Below
// `kNoise` ms nobody can tell.
inline constexpr double kNoise = 20;
bool IsRecovered(double p99_before, double p99_now);

// Whether the version ("1.51.1") is `least` ("1.56") or a later one.
bool IsAtLeast(const std::string& version, const std::string& least);

// The bounds that are broken, in words; empty: none.
std::vector<std::string> BrokenBounds(const FloodFigures& figures, const FloodBounds& bounds);

// Lines of aligned columns, for people. `bounds` is what the last column judges by.
std::string FloodTable(const std::vector<FloodFigures>& floods, const FloodBounds& bounds);
// An array with an object for each flood.
nlohmann::json FloodsJson(const std::vector<FloodFigures>& floods, const FloodBounds& bounds);

}  // namespace pelab::load
