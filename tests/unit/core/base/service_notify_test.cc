#include "core/base/service_notify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kPatienceMs = 10'000;

// The manager's end of the socket. `name` is a path, or "@name" in the abstract namespace.
class Receiver {
 public:
  explicit Receiver(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }

  // The next message; "" if none comes within `patience_ms`.
  std::string Next(int patience_ms = kPatienceMs) const {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (poll(&waiting, 1, patience_ms) != 1) return "";
    char buffer[256];
    const ssize_t size = recv(fd_.get(), buffer, sizeof buffer, 0);
    return size < 0 ? "" : std::string(buffer, static_cast<std::size_t>(size));
  }

 private:
  const UniqueFd fd_;
};

class ServiceNotify : public testing::Test {
 protected:
  ~ServiceNotify() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }

  static ServiceManager Manager(const std::string& socket, const std::string& usec = "") {
    setenv("NOTIFY_SOCKET", socket.c_str(), 1);
    if (!usec.empty()) setenv("WATCHDOG_USEC", usec.c_str(), 1);
    absl::StatusOr<ServiceManager> manager = ServiceManager::FromEnvironment();
    EXPECT_THAT(manager, IsOk());
    return manager.ok() ? *manager : ServiceManager();
  }

  TempDir dir_;
};

TEST_F(ServiceNotify, WithoutAManagerMessagesDoNothing) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  const absl::StatusOr<ServiceManager> manager = ServiceManager::FromEnvironment();
  ASSERT_THAT(manager, IsOk());
  EXPECT_EQ(manager->patience(), absl::InfiniteDuration());
  EXPECT_THAT(manager->Ready("serving"), IsOk());
  EXPECT_THAT(manager->Alive(), IsOk());
  EXPECT_THAT(manager->Stopping("bye"), IsOk());
}

TEST_F(ServiceNotify, SaysThatTheProgramServesAndStops) {
  const Receiver receiver(dir_ / "notify");
  const ServiceManager manager = Manager(dir_ / "notify");
  EXPECT_THAT(manager.Ready("listening on a\nREADY=0"), IsOk());
  EXPECT_EQ(receiver.Next(), "READY=1\nSTATUS=listening on a READY=0");
  EXPECT_THAT(manager.Alive(), IsOk());
  EXPECT_EQ(receiver.Next(), "WATCHDOG=1");
  EXPECT_THAT(manager.Stopping("SIGTERM"), IsOk());
  EXPECT_EQ(receiver.Next(), "STOPPING=1\nSTATUS=SIGTERM");
}

TEST_F(ServiceNotify, ASocketMayBeInTheAbstractNamespace) {
  const std::string name = absl::StrCat("@", dir_ / "notify");
  const Receiver receiver(name);
  EXPECT_THAT(Manager(name).Alive(), IsOk());
  EXPECT_EQ(receiver.Next(), "WATCHDOG=1");
}

TEST_F(ServiceNotify, ChildProcessesDoNotInheritTheManager) {
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  Manager(dir_ / "notify", "1000000");
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    EXPECT_EQ(getenv(name), nullptr) << name;
  }
}

TEST_F(ServiceNotify, AManagerThatIsGoneIsAnError) {
  EXPECT_THAT(Manager(dir_ / "gone").Ready("serving"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_ / "gone")));
}

TEST_F(ServiceNotify, TheLimitMayBeMeantForAnotherProcess) {
  EXPECT_EQ(Manager(dir_ / "notify", "2500000").patience(), absl::Seconds(2.5));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(Manager(dir_ / "notify", "2500000").patience(), absl::InfiniteDuration());
}

TEST_F(ServiceNotify, VariablesThatCannotBeUsedAreNamed) {
  setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
  EXPECT_THAT(ServiceManager::FromEnvironment(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("NOTIFY_SOCKET"), HasSubstr("vsock:2:1234"))));
  setenv("NOTIFY_SOCKET", ("/" + std::string(200, 'x')).c_str(), 1);
  EXPECT_THAT(ServiceManager::FromEnvironment(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 107 bytes")));
  for (const char* usec : {"0", "-1", "soon"}) {
    setenv("NOTIFY_SOCKET", "/run/notify", 1);
    setenv("WATCHDOG_USEC", usec, 1);
    EXPECT_THAT(ServiceManager::FromEnvironment(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("WATCHDOG_USEC"), HasSubstr(usec))));
  }
}

TEST_F(ServiceNotify, AWatchdogPassesOnThatTheProgramIsAlive) {
  const Receiver receiver(dir_ / "notify");
  std::atomic<bool> stuck = false;
  const Watchdog watchdog(Manager(dir_ / "notify", "60000"), [&stuck](absl::Duration patience) {
    EXPECT_EQ(patience, absl::Milliseconds(20));
    return stuck ? absl::DeadlineExceededError("stuck") : absl::OkStatus();
  });
  EXPECT_EQ(receiver.Next(), "WATCHDOG=1");
  EXPECT_EQ(receiver.Next(), "WATCHDOG=1");
  stuck = true;
  receiver.Next(100);  // a check may have begun before
  while (!receiver.Next(0).empty()) {
  }
  EXPECT_EQ(receiver.Next(200), "");
  stuck = false;
  EXPECT_EQ(receiver.Next(), "WATCHDOG=1");
}

TEST_F(ServiceNotify, WithoutALimitAWatchdogChecksNothing) {
  const Receiver receiver(dir_ / "notify");
  std::atomic<int> checks = 0;
  {
    const Watchdog watchdog(Manager(dir_ / "notify"), [&checks](absl::Duration) {
      ++checks;
      return absl::OkStatus();
    });
    EXPECT_EQ(receiver.Next(50), "");
  }
  EXPECT_EQ(checks, 0);
}

}  // namespace
}  // namespace pelab
