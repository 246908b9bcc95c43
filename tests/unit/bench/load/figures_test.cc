#include "tests/bench/load/floods/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace pelab::load {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FloodFigures Good(const std::string& name) {
  FloodFigures figures;
  figures.name = name;
  figures.seconds = 15;
  figures.attacker_cpu = 1.25;
  figures.coordinator_cpu = 12.5;
  figures.peak_mib = 345.6;
  figures.most_threads = 40;
  figures.most_descriptors = 50;
  figures.worker_before = {.p50 = 1, .p99 = 2.5, .max = 3, .count = 70};
  figures.worker_during = {.p50 = 10, .p99 = 249.6, .max = 400, .count = 220};
  figures.reader_before = figures.worker_before;
  figures.reader_during = figures.worker_during;
  figures.recovery = 2;
  figures.tally = {{"calls", 7}};
  return figures;
}

TEST(FloodFigures, WaitsOfValues) {
  Latencies latencies;
  for (int ms = 1; ms <= 1000; ++ms) latencies.Add(ms);
  const Waits waits = Waits::Of(latencies);
  EXPECT_EQ(waits.count, 1000u);
  EXPECT_NEAR(waits.p50, 500, 1);
  EXPECT_NEAR(waits.p99, 990, 1);
  EXPECT_EQ(waits.max, 1000);
}

TEST(FloodFigures, RecoveredIsBelowTwiceAsMuchOrTheNoise) {
  EXPECT_TRUE(IsRecovered(/*p99_before=*/30, /*p99_now=*/59));
  EXPECT_FALSE(IsRecovered(30, 60));
  EXPECT_TRUE(IsRecovered(1, kNoise - 1));
  EXPECT_FALSE(IsRecovered(1, kNoise));
}

TEST(FloodFigures, EachBoundIsJudged) {
  const FloodBounds bounds;
  EXPECT_THAT(BrokenBounds(Good("x"), bounds), IsEmpty());
  const auto broken = [&](const std::function<void(FloodFigures&)>& spoil) {
    FloodFigures figures = Good("x");
    spoil(figures);
    return BrokenBounds(figures, bounds);
  };
  EXPECT_THAT(broken([](auto& f) { f.peak_mib = 1025; }), ElementsAre("memory"));
  EXPECT_THAT(broken([](auto& f) { f.worker_during.p99 = 251; }), ElementsAre("worker"));
  EXPECT_THAT(broken([](auto& f) { f.worker_during.count = 0; }), ElementsAre("worker"));
  EXPECT_THAT(broken([](auto& f) { f.reader_during.p99 = 251; }), ElementsAre("reader"));
  EXPECT_THAT(broken([](auto& f) { f.recovery = 11; }), ElementsAre("recovery"));
  EXPECT_THAT(broken([](auto& f) { f.recovery.reset(); }), ElementsAre("recovery"));
  EXPECT_THAT(broken([](auto& f) { f.broken_sessions = 1; }),
              ElementsAre("the worker's session broke"));
  EXPECT_THAT(broken([](auto& f) {
                f.broken_sessions = 1;
                f.sessions_may_break = true;
              }),
              IsEmpty());
  EXPECT_THAT(broken([](auto& f) { f.ended = "ended by signal 6 (aborted)"; }),
              ElementsAre("the coordinator ended by signal 6 (aborted)"));
  // What a gRPC does not bound is shown, but no verdict on pelab.
  EXPECT_THAT(FloodTable({Good("x")}, bounds), testing::Not(HasSubstr("not judged")));
  FloodFigures unbounded = Good("headers");
  unbounded.unbounded_below = "1.56";
  unbounded.peak_mib = 2000;
  EXPECT_THAT(FloodTable({unbounded}, bounds),
              HasSubstr("memory (not judged: unbounded below gRPC 1.56)"));
}

TEST(FloodFigures, VersionsAreComparedAsNumbers) {
  EXPECT_TRUE(IsAtLeast("1.56.0", "1.56"));
  EXPECT_TRUE(IsAtLeast("1.100", "1.56"));
  EXPECT_TRUE(IsAtLeast("2.0.1", "1.56"));
  EXPECT_TRUE(IsAtLeast("1.60.0-dev", "1.60"));
  EXPECT_FALSE(IsAtLeast("1.51.1", "1.56"));
  EXPECT_FALSE(IsAtLeast("1.6", "1.56"));
}

TEST(FloodFigures, TheTableIsAligned) {
  FloodFigures never = Good("a-longer-name");
  never.recovery.reset();
  const std::string table = FloodTable({Good("reset"), never}, {});
  const std::vector<std::string> lines = absl::StrSplit(table, '\n');
  ASSERT_EQ(lines.size(), 4u);  // the last one is empty
  EXPECT_EQ(
      lines[0],
      "flood          attacker CPU s  coordinator CPU s  peak MiB  threads  files  worker p99 "
      "before  during  reader p99 before  during  errors  sessions  recovery s  "
      "broken bounds");
  EXPECT_EQ(
      lines[1],
      "reset                     1.2               12.5       346       40     50             "
      "   2.5     250                2.5     250       0         0           2  none");
  EXPECT_EQ(
      lines[2],
      "a-longer-name             1.2               12.5       346       40     50             "
      "   2.5     250                2.5     250       0         0       never  recovery");
}

TEST(FloodFigures, JsonHasNumbersAndVerdicts) {
  FloodFigures never = Good("y");
  never.recovery.reset();
  const nlohmann::json rows = FloodsJson({Good("x"), never}, {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["flood"], "x");
  EXPECT_EQ(rows[0]["coordinator_cpu_seconds"], 12.5);
  EXPECT_EQ(rows[0]["worker"]["during"]["p99_ms"], 249.6);
  EXPECT_EQ(rows[0]["recovery_seconds"], 2);
  EXPECT_EQ(rows[0]["broken"], nlohmann::json::array());
  EXPECT_EQ(rows[0]["attacker"]["calls"], 7);
  EXPECT_TRUE(rows[1]["recovery_seconds"].is_null());
  EXPECT_EQ(rows[1]["broken"], nlohmann::json({"recovery"}));
}

}  // namespace
}  // namespace pelab::load
