#include "tests/bench/load/floods/figures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/terminal/table.h"

namespace pelab::load {
namespace {

constexpr int kWide = 400;  // columns: a table that goes to a file or a document is not wrapped

std::string Ms(double ms) { return absl::StrFormat(ms < 10 ? "%.1f" : "%.0f", ms); }

std::string Recovery(const FloodFigures& figures) {
  return figures.recovery ? absl::StrFormat("%.0f", *figures.recovery) : "never";
}

std::string Verdict(const FloodFigures& figures, const FloodBounds& bounds) {
  const std::vector<std::string> broken = BrokenBounds(figures, bounds);
  std::string verdict = broken.empty() ? "none" : absl::StrJoin(broken, ", ");
  if (figures.unbounded_below.empty() || broken.empty()) return verdict;
  return absl::StrCat(verdict, " (not judged: unbounded below gRPC ", figures.unbounded_below, ")");
}

nlohmann::json Object(const Waits& waits) {
  return {
      {"p50_ms", waits.p50}, {"p99_ms", waits.p99}, {"max_ms", waits.max}, {"count", waits.count}};
}

}  // namespace

Waits Waits::Of(Latencies latencies) {
  return {.p50 = latencies.Quantile(0.5),
          .p99 = latencies.Quantile(0.99),
          .max = latencies.Max(),
          .count = latencies.count()};
}

bool IsRecovered(double p99_before, double p99_now) {
  return p99_now < std::max(2 * p99_before, kNoise);
}

bool IsAtLeast(const std::string& version, const std::string& least) {
  const auto numbers = [](const std::string& text) {
    std::vector<int> all;
    for (const absl::string_view part : absl::StrSplit(text, '.')) {
      int number = 0;
      if (!absl::SimpleAtoi(part, &number)) break;  // "1.60.0-dev"
      all.push_back(number);
    }
    return all;
  };
  return numbers(version) >= numbers(least);
}

std::vector<std::string> BrokenBounds(const FloodFigures& figures, const FloodBounds& bounds) {
  std::vector<std::string> broken;
  const auto check = [&](bool holds, std::string what) {
    if (!holds) broken.push_back(std::move(what));
  };
  check(figures.ended.empty(), absl::StrCat("the coordinator ", figures.ended));
  check(figures.broken_sessions == 0 || figures.sessions_may_break, "the worker's session broke");
  check(figures.peak_mib <= bounds.peak_mib, "memory");
  check(figures.worker_during.count > 0 && figures.worker_during.p99 <= bounds.p99_ms, "worker");
  check(figures.reader_during.count > 0 && figures.reader_during.p99 <= bounds.p99_ms, "reader");
  check(figures.recovery && *figures.recovery <= bounds.recovery_seconds, "recovery");
  return broken;
}

std::string FloodTable(const std::vector<FloodFigures>& floods, const FloodBounds& bounds) {
  using render::Column;
  constexpr auto kRight = Column::Align::kRight;
  render::Table table({{"flood"},
                       {"attacker CPU s", kRight},
                       {"coordinator CPU s", kRight},
                       {"peak MiB", kRight},
                       {"threads", kRight},
                       {"files", kRight},
                       {"worker p99 before", kRight},
                       {"during", kRight},
                       {"reader p99 before", kRight},
                       {"during", kRight},
                       {"errors", kRight},
                       {"sessions", kRight},
                       {"recovery s", kRight},
                       {"broken bounds"}});
  for (const FloodFigures& flood : floods) {
    table.AddRow({flood.name, absl::StrFormat("%.1f", flood.attacker_cpu),
                  absl::StrFormat("%.1f", flood.coordinator_cpu),
                  absl::StrFormat("%.0f", flood.peak_mib), absl::StrCat(flood.most_threads),
                  absl::StrCat(flood.most_descriptors), Ms(flood.worker_before.p99),
                  Ms(flood.worker_during.p99), Ms(flood.reader_before.p99),
                  Ms(flood.reader_during.p99), absl::StrCat(flood.read_errors),
                  absl::StrCat(flood.broken_sessions), Recovery(flood), Verdict(flood, bounds)});
  }
  return table.Render({.width = kWide});
}

nlohmann::json FloodsJson(const std::vector<FloodFigures>& floods, const FloodBounds& bounds) {
  nlohmann::json rows = nlohmann::json::array();
  for (const FloodFigures& flood : floods) {
    nlohmann::json row = {
        {"flood", flood.name},
        {"seconds", flood.seconds},
        {"attacker_cpu_seconds", flood.attacker_cpu},
        {"coordinator_cpu_seconds", flood.coordinator_cpu},
        {"peak_mib", flood.peak_mib},
        {"resident_mib_before", flood.resident_mib},
        {"most_threads", flood.most_threads},
        {"most_descriptors", flood.most_descriptors},
        {"worker",
         {{"before", Object(flood.worker_before)}, {"during", Object(flood.worker_during)}}},
        {"reader",
         {{"before", Object(flood.reader_before)}, {"during", Object(flood.reader_during)}}},
        {"read_errors", flood.read_errors},
        {"broken_sessions", flood.broken_sessions},
        {"attacker", flood.tally},
        {"broken", BrokenBounds(flood, bounds)},
        {"judged", flood.unbounded_below.empty()}};
    row["recovery_seconds"] = flood.recovery ? nlohmann::json(*flood.recovery) : nlohmann::json();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace pelab::load
