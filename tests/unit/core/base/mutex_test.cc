#include "core/base/mutex.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/time.h"

namespace pelab {
namespace {

constexpr absl::Duration kLongest = absl::Seconds(10);

TEST(Mutex, SaysWhetherTheConditionHolds) {
  Mutex mutex;
  MutexLock lock(&mutex);
  EXPECT_TRUE(mutex.AwaitFor([] { return true; }, absl::ZeroDuration()));
  EXPECT_FALSE(mutex.AwaitFor([] { return false; }, absl::Milliseconds(1)));
}

TEST(Mutex, AWaiterSeesWhatWasChangedBeforeUnlock) {
  Mutex mutex;
  bool changed = false;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    EXPECT_TRUE(mutex.AwaitFor([&] { return changed; }, kLongest));
  });
  {
    MutexLock lock(&mutex);
    changed = true;
  }
  waiter.join();
}

// The one that changes something waits for an answer before it unlocks.
TEST(Mutex, AWaiterSeesWhatWasChangedBeforeAnotherWait) {
  Mutex mutex;
  bool waits = false;
  bool asked = false;
  bool answered = false;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    waits = true;
    EXPECT_TRUE(mutex.AwaitFor([&] { return asked; }, kLongest));
    answered = true;
  });
  {
    MutexLock lock(&mutex);
    ASSERT_TRUE(mutex.AwaitFor([&] { return waits; }, kLongest));
    asked = true;
    EXPECT_TRUE(mutex.AwaitFor([&] { return answered; }, kLongest / 2));
  }
  waiter.join();
}

TEST(Notification, HappensOnce) {
  Notification notification;
  EXPECT_FALSE(notification.HasBeenNotified());
  EXPECT_FALSE(notification.WaitFor(absl::Milliseconds(1)));
  std::thread other([&] { notification.Notify(); });
  EXPECT_TRUE(notification.WaitFor(kLongest));
  other.join();
  notification.Notify();
  EXPECT_TRUE(notification.HasBeenNotified());
}

}  // namespace
}  // namespace pelab
