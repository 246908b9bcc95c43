#include "server/turns.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

bool StaysThere() { return false; }

// Requests of callers, each with a thread. They note the order in which they get their turns, and
// keep a turn until Release.
class TurnsTest : public ::testing::Test {
 protected:
  ~TurnsTest() override {
    Release(1'000);
    for (std::thread& thread : threads_) thread.join();
  }

  // Returns when the request waits, or has its turn.
  void Ask(const std::string& caller, bool expect_turn = false) {
    int before = 0;
    {
      MutexLock lock(&mutex_);
      before = asked_;
    }
    threads_.emplace_back([this, caller] { Run(caller); });
    MutexLock lock(&mutex_);
    mutex_.AwaitFor([&] { return asked_ > before; }, kPatience);
    if (expect_turn) mutex_.AwaitFor([&] { return !order_.empty(); }, kPatience);
  }
  // Lets `count` turns end, one after another.
  void Release(int count) {
    MutexLock lock(&mutex_);
    released_ += count;
  }
  std::vector<std::string> Order(std::size_t length) {
    MutexLock lock(&mutex_);
    mutex_.AwaitFor([&] { return order_.size() >= length; }, kPatience);
    return order_;
  }

  Turns turns_{1, 4};
  Mutex mutex_;
  int asked_ = 0;
  int released_ = 0;
  std::vector<std::string> order_;
  std::vector<std::thread> threads_;

 private:
  // `gone` is asked only while the request waits, which is after it joined the others.
  void Run(const std::string& caller) {
    bool told = false;
    const auto tell = [&] {
      MutexLock lock(&mutex_);
      if (!std::exchange(told, true)) ++asked_;
    };
    const auto turn = turns_.Take(caller, [&] {
      tell();
      return false;
    });
    {
      MutexLock lock(&mutex_);
      order_.push_back(turn.ok() ? caller : absl::StrCat(caller, " refused"));
    }
    tell();
    if (!turn.ok()) return;
    MutexLock lock(&mutex_);
    mutex_.Await([&] { return released_ > 0; });
    --released_;
  }
};

TEST_F(TurnsTest, CallersTakeTurnsHoweverManyRequestsOneHas) {
  Ask("a", /*expect_turn=*/true);
  Ask("a");
  Ask("a");
  Ask("b");
  Release(4);
  EXPECT_THAT(Order(4), ElementsAre("a", "a", "b", "a"));
}

TEST_F(TurnsTest, TheCallerWithTheMostRequestsMakesRoom) {
  Ask("a", /*expect_turn=*/true);
  for (int i = 0; i < 4; ++i) Ask("a");
  Ask("b");
  EXPECT_THAT(Order(2), ElementsAre("a", "a refused"));
  Ask("b");
  EXPECT_THAT(Order(3), ElementsAre("a", "a refused", "a refused"));
  EXPECT_THAT(turns_.Take("b", StaysThere).status().ToString(),
              HasSubstr("too many calls: 4 requests of this kind wait"))
      << "b has as many as a";
  Release(5);
  EXPECT_THAT(Order(7), ElementsAre("a", "a refused", "a refused", "a", "b", "a", "b"));
}

TEST_F(TurnsTest, AClientThatIsGoneLeavesTheLine) {
  Ask("a", /*expect_turn=*/true);
  EXPECT_EQ(turns_.Take("b", [] { return true; }).status(),
            absl::CancelledError("the client is gone"));
  Ask("c");
  Release(2);
  EXPECT_THAT(Order(2), ElementsAre("a", "c"));
}

TEST_F(TurnsTest, LongWorkLetsOthersGoFirst) {
  auto turn = turns_.Take("long", StaysThere);
  ASSERT_TRUE(turn.ok());
  EXPECT_TRUE(turn->Yield().ok()) << "nobody waits";
  Ask("short");
  Release(1);
  EXPECT_TRUE(turn->Yield().ok());
  EXPECT_THAT(Order(1), ElementsAre("short")) << "it went first";
}

TEST_F(TurnsTest, WorkWhoseClientIsGoneDoesNotComeBack) {
  std::atomic<bool> gone = false;
  std::optional<Turns::Turn> turn = *turns_.Take("long", [&] { return gone.load(); });
  Ask("short");
  gone = true;
  EXPECT_EQ(turn->Yield(), absl::CancelledError("the client is gone"));
  EXPECT_EQ(turn->Yield(), absl::CancelledError("the client is gone"));
  turn.reset();
  Release(1);
  EXPECT_TRUE(turns_.Take("next", StaysThere).ok()) << "one place is free, not two";
}

}  // namespace
}  // namespace pelab
