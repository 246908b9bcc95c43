// The view of what attempts have used. The expected seconds and joules are worked out by hand.
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Midnight at the beginning of 2026-11-26 (UTC): day 20783 since 1970-01-01.
constexpr std::int64_t kMidnight = std::int64_t{20'783} * 86'400'000;
constexpr std::int64_t kSecond = 1000;

class UsageTest : public StoreTest {
 protected:
  std::int64_t Start(std::int64_t job_id, std::int64_t now, const std::string& principal,
                     const std::string& device = "cuda:0", int slot = 0) {
    AddWorker();
    return Do<AttemptCreated>(CreateAttempt{.job_id = job_id,
                                            .worker_id = "w",
                                            .slot = slot,
                                            .device = device,
                                            .token = 7,
                                            .principal = principal,
                                            .now = now})
        .assignment->attempt_id;
  }
  void End(std::int64_t attempt_id, std::int64_t now) {
    Do<EventStored>(EndAttempt{attempt_id, state::Event::kLose, "lost", now});
  }
  // Ends as a worker says it; nullopt: it has not measured the energy.
  void EndWith(std::int64_t attempt_id, std::int64_t now, std::optional<double> joules) {
    v1::Event end = FailedEvent(state::ErrorKind::kIo, "no disk");
    if (joules) end.mutable_finished()->set_energy_joules(*joules);
    EXPECT_EQ(Event(EventWrite(attempt_id, 7, 1, end, now)).status, EventStored::kStored);
  }
  void SetOwner(std::int64_t sweep_id, const std::string& owner) {
    store_->database().Execute("UPDATE sweeps SET owner = ? WHERE sweep_id = ?", owner, sweep_id);
  }
  // "principal sweep_id sweep day attempts gpu_seconds cpu_seconds"
  std::vector<std::string> Usage() {
    std::vector<std::string> rows;
    Query query = store_->database().Run(
        "SELECT format('%s %s %s %s %d %.3f %.3f', principal, coalesce(sweep_id, '-'), "
        "coalesce(sweep, '-'), day, attempts, gpu_seconds, cpu_seconds) FROM v_usage "
        "ORDER BY principal, sweep_id, day");
    while (query.Step()) rows.push_back(query.Text(0));
    return rows;
  }
  // "day joules"
  std::vector<std::string> Joules() {
    std::vector<std::string> rows;
    Query query = store_->database().Run(
        "SELECT format('%s %s', day, iif(joules IS NULL, '-', format('%.3f', joules))) FROM "
        "v_usage ORDER BY day");
    while (query.Step()) rows.push_back(query.Text(0));
    return rows;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, UsageTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(UsageTest, IsByPrincipalSweepAndDay) {
  SetOwner(Submit("a", {Cell(0, "k0"), Cell(1, "k1")}), "ada");
  SetOwner(Submit("b", {Cell(0, "k2")}), "bob");
  EXPECT_THAT(Usage(), IsEmpty());
  End(Start(1, kMidnight, "ada"), kMidnight + 15 * kSecond);
  End(Start(2, kMidnight + 20 * kSecond, "ada"), kMidnight + 50 * kSecond);
  End(Start(3, kMidnight + 60 * kSecond, "bob", "cpu"), kMidnight + 62 * kSecond + 500);
  Start(1, kMidnight + 70 * kSecond, "ada");  // runs still
  EXPECT_THAT(Usage(), ElementsAre("ada 1 sweep-a 2026-11-26 2 45.000 0.000",
                                   "bob 2 sweep-b 2026-11-26 1 0.000 2.500"));
}

TEST_P(UsageTest, ADayEndsAtMidnight) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  // Its last 10 s of the 25th, the whole 26th, and 5 s of the 27th.
  End(Start(1, kMidnight - 10 * kSecond, ""), kMidnight + 86'405 * kSecond);
  // Ends exactly at midnight: nothing of it is on the 26th.
  End(Start(2, kMidnight - 4 * kSecond, "", "cpu", 1), kMidnight);
  EXPECT_THAT(Usage(), ElementsAre(" 1 sweep-a 2026-11-25 2 10.000 4.000",
                                   " 1 sweep-a 2026-11-26 1 86400.000 0.000",
                                   " 1 sweep-a 2026-11-27 1 5.000 0.000"));
}

// As a principal is charged for it.
TEST_P(UsageTest, AttemptsOfOneTrainerShareItsTime) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")});
  const std::int64_t first = Start(1, kMidnight, "");
  const std::int64_t second = Start(2, kMidnight, "");
  const std::int64_t elsewhere = Start(3, kMidnight, "", "cuda:1", 1);
  End(first, kMidnight + 10 * kSecond);      // 5
  End(second, kMidnight + 20 * kSecond);     // 10
  End(elsewhere, kMidnight + 40 * kSecond);  // 40
  EXPECT_THAT(Usage(), ElementsAre(" 1 sweep-a 2026-11-26 3 55.000 0.000"));
}

TEST_P(UsageTest, ADayHasAsMuchOfTheEnergyAsOfTheTime) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")});
  // A quarter of it is on the 25th.
  EndWith(Start(1, kMidnight - 10 * kSecond, ""), kMidnight + 30 * kSecond, 1000.0);
  EXPECT_THAT(Joules(), ElementsAre("2026-11-25 250.000", "2026-11-26 750.000"));
  // It takes no time at all.
  EndWith(Start(2, kMidnight, "", "cuda:1", 1), kMidnight, 0.5);
  // Not measured.
  EndWith(Start(3, kMidnight, "", "cpu", 2), kMidnight + kSecond, std::nullopt);
  EXPECT_THAT(Joules(), ElementsAre("2026-11-25 250.000", "2026-11-26 750.500"));
  EXPECT_EQ(Text("SELECT energy_joules FROM v_attempts WHERE job_id = 1"), "1000.0");
  EXPECT_EQ(Text("SELECT count(*) FROM v_attempts WHERE energy_joules IS NULL"), "1");
}

TEST_P(UsageTest, EnergyThatNobodyMeasuredIsNotKnown) {
  Submit("a", {Cell(0, "k0")});
  End(Start(1, kMidnight - 10 * kSecond, ""), kMidnight + 30 * kSecond);
  EXPECT_THAT(Joules(), ElementsAre("2026-11-25 -", "2026-11-26 -"));
}

// The worker has divided it already.
TEST_P(UsageTest, AttemptsOfOneTrainerHaveTheirEnergyEach) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  const std::int64_t first = Start(1, kMidnight, "");
  const std::int64_t second = Start(2, kMidnight, "");
  EndWith(first, kMidnight + 10 * kSecond, 30.0);
  EndWith(second, kMidnight + 20 * kSecond, 70.0);
  EXPECT_THAT(Joules(), ElementsAre("2026-11-26 100.000"));
}

TEST_P(UsageTest, ASharedJobCountsOnce) {
  SetOwner(Submit("a", {Cell(0, "k0")}), "ada");
  SetOwner(Submit("b", {Cell(0, "k0")}), "bob");
  SetOwner(Submit("c", {Cell(0, "k0")}), "bob");
  End(Start(1, kMidnight, "bob"), kMidnight + 3 * kSecond);
  End(Start(1, kMidnight + 5 * kSecond, "carl"), kMidnight + 9 * kSecond);  // has no sweep of it
  EXPECT_THAT(Usage(), ElementsAre("bob 2 sweep-b 2026-11-26 1 3.000 0.000",
                                   "carl 1 sweep-a 2026-11-26 1 4.000 0.000"));
}

TEST_P(UsageTest, ImportedJobsUsedNothingHere) {
  Submit("a", {Cell(0, "k0")});
  End(Start(1, kMidnight, ""), kMidnight + kSecond);
  store_->database().Execute("UPDATE attempts SET token = 0");  // as an import stores them
  EXPECT_THAT(Usage(), IsEmpty());
}

}  // namespace
}  // namespace pelab::store
