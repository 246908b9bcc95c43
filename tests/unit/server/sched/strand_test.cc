// The executor of the coordinator: a thread that runs posted steps in their order.
#include "server/sched/strand.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace pelab::sched {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

class StrandTest : public testing::Test {
 protected:
  // A step that notes its number.
  std::function<void()> Note(int number) {
    return [this, number] { ran_.push_back(number); };
  }
  // Waits until everything that was posted so far has run.
  bool WaitForAll() {
    Notification ran;
    strand_.Post([&ran] { ran.Notify(); });
    return ran.WaitFor(kLong);
  }

  std::vector<int> ran_;  // on the strand's thread; read after WaitForAll or Stop
  Strand strand_{SystemClock::Instance()};
};

TEST_F(StrandTest, RunsStepsInTheirOrderWhetherLazyOrNot) {
  std::vector<int> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(i);
    if (i % 3 == 0) {
      strand_.Post(Note(i));
    } else {
      strand_.PostLazily(Note(i));
    }
  }
  ASSERT_TRUE(WaitForAll());
  EXPECT_EQ(ran_, all);
}

TEST_F(StrandTest, RunsALazyStepThoughNothingFollows) {
  ASSERT_TRUE(WaitForAll());  // the thread waits from here on
  Notification ran;
  strand_.PostLazily([&ran] { ran.Notify(); });
  EXPECT_TRUE(ran.WaitFor(kLong));
}

TEST_F(StrandTest, RunsAStepThatAStepPosted) {
  Notification ran;
  strand_.Post([&] { strand_.Post([&] { strand_.PostLazily([&ran] { ran.Notify(); }); }); });
  EXPECT_TRUE(ran.WaitFor(kLong));
}

TEST_F(StrandTest, RunsTimersInTheOrderOfTheirTimesAndNotBefore) {
  const Clock& clock = SystemClock::Instance();
  const absl::Duration now = clock.Monotonic();
  Notification last;
  std::vector<absl::Duration> at;
  for (const int ms : {40, 20, 60}) {
    strand_.PostAt(now + absl::Milliseconds(ms), [&, ms] {
      at.push_back(clock.Monotonic());
      ran_.push_back(ms);
      if (ms == 60) last.Notify();
    });
  }
  ASSERT_TRUE(last.WaitFor(kLong));
  ASSERT_TRUE(WaitForAll());
  EXPECT_EQ(ran_, (std::vector<int>{20, 40, 60}));
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_GE(at[i], now + absl::Milliseconds(ran_[i]));
  }
}

TEST_F(StrandTest, StopRunsWhatWasPostedBeforeAndNothingElse) {
  strand_.PostLazily(Note(1));
  strand_.Post(Note(2));
  strand_.PostLazily(Note(3));
  strand_.PostAt(absl::InfiniteDuration(), Note(4));
  strand_.Stop();
  strand_.Post(Note(5));
  strand_.PostLazily(Note(6));
  strand_.Stop();
  EXPECT_EQ(ran_, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace pelab::sched
