// Addresses, back-off, status conversion and the lock file.
#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/process.h"
#include "core/rpc/address.h"
#include "core/rpc/backoff.h"
#include "core/rpc/lock_file.h"
#include "core/rpc/status.h"
#include "pelab/v1/common.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::rpc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Address, ReadsWhatItWrites) {
  for (const char* text :
       {"unix:/run/pelab.sock", "unix:relative", "localhost:1", "gpu-01.lab_net:65535",
        "10.0.0.1:7077", "[::1]:7077", "[2001:db8::7]:80"}) {
    const auto address = ParseAddress(text);
    ASSERT_THAT(address, IsOk());
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(ParseAddress("[::1]:7077")->host, "::1");
  EXPECT_EQ(ParseAddress("unix:/a:b")->path, "/a:b");
}

TEST(Address, KnowsWhatOthersCanReach) {
  for (const char* text : {"unix:/x", "localhost:1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1"}) {
    EXPECT_TRUE(ParseAddress(text)->IsLocal()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "example.org:1", "[::]:1",
                           "127.example.org:1", "[2001:db8::1]:1"}) {
    EXPECT_FALSE(ParseAddress(text)->IsLocal()) << text;
  }
}

TEST(Address, NamesWhatIsWrongAndWhatIsAllowed) {
  const struct {
    std::string text;
    const char* why;
  } cases[] = {
      {"", "there is no port"},
      {"host", "there is no port"},
      {"host:", "port \"\" is not a number from 1 to 65535"},
      {"host:0", "port \"0\" is not a number from 1 to 65535"},
      {"host:65536", "port \"65536\""},
      {"host:+5", "port \"+5\""},
      {"host:x", "port \"x\""},
      {":5", "there is no host"},
      {"::1:5", "needs brackets"},
      {"[x]:5", "\"x\" is not an IPv6 address"},
      {"ho st:5", "\"ho st\" is not a host name"},
      {"http://host:5", "leave out \"http://\""},
      {"unix:", "the path of the socket is empty"},
      {"unix:" + std::string(108, 'x'), "the path has 108 bytes and a socket's at most 107"}};
  for (const auto& wrong : cases) {
    EXPECT_THAT(
        ParseAddress(wrong.text),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("invalid address \"" + wrong.text + "\""), HasSubstr(wrong.why),
                       HasSubstr("allowed: unix:PATH or HOST:PORT"))));
  }
  EXPECT_EQ(ParseAddress("localhost:0", PortZero::kAllowed)->port, 0);
}

TEST(Backoff, DoublesUpToItsCapWithJitter) {
  double unit = 0;
  Backoff backoff(absl::Milliseconds(100), absl::Seconds(1), [&] { return unit; });
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(50));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(100));
  unit = 0.5;
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(300));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(600));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(backoff.Next(), absl::Milliseconds(750));
  backoff.SetCap(absl::Milliseconds(400));
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(300));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), absl::Milliseconds(75));
}

TEST(Status, GoesThereAndBack) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_THAT(FromGrpc(grpc::Status::OK), IsOk());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what");
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(Status, ViolationsTravelAlong) {
  v1::Violations violations;
  violations.add_violations()->set_message("unknown pe \"alibbi\"");
  violations.mutable_violations(0)->set_line(3);
  violations.add_violations()->set_message("seed is empty");
  const absl::Status back = FromGrpc(ToGrpc(ViolationsError(violations)));
  EXPECT_THAT(back,
              StatusIs(absl::StatusCode::kInvalidArgument, "unknown pe \"alibbi\"\nseed is empty"));
  const auto read = GetViolations(back);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->violations_size(), 2);
  EXPECT_EQ(read->violations(0).line(), 3);
  EXPECT_FALSE(GetViolations(absl::InvalidArgumentError("x")).has_value());
  EXPECT_FALSE(GetViolations(absl::OkStatus()).has_value());
}

TEST(Status, ManyViolationsAreCutToWhatHeadersHold) {
  v1::Violations violations;
  for (int i = 0; i < 1000; ++i)
    violations.add_violations()->set_message("violation " + std::to_string(i));
  const grpc::Status status = ToGrpc(ViolationsError(violations));
  EXPECT_LE(status.error_details().size(), 4096u);
  EXPECT_LE(status.error_message().size(), 2100u);
  const auto read = GetViolations(FromGrpc(status));
  ASSERT_TRUE(read.has_value());
  EXPECT_GT(read->violations_size(), 50);
  EXPECT_EQ(read->violations(49).message(), "violation 49");
}

TEST(Status, MessagesAreCutBetweenCharacters) {
  const std::string most(2047, 'x');
  EXPECT_EQ(ToGrpc(absl::InternalError(most + "é")).error_message(), most + "…");
  EXPECT_EQ(ToGrpc(absl::InternalError("half \xc3")).error_message(), "half ?");
}

TEST(LockFile, NamesTheLiveHolder) {
  TempDir dir;
  const std::string database = dir / "pelab.db";
  EXPECT_EQ(*ReadLiveAddress(database), std::nullopt);
  {
    auto lock = LockFile::Acquire(database);
    ASSERT_THAT(lock, IsOk());
    EXPECT_EQ(*ReadLiveAddress(database), "");
    EXPECT_THAT(LockFile::Acquire(database), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                      HasSubstr("that is just starting")));
    ASSERT_THAT(lock->WriteAddress("localhost:7077"), IsOk());
    ASSERT_THAT(lock->WriteAddress("unix:/s"), IsOk());
    EXPECT_EQ(*ReadLiveAddress(database), "unix:/s");
    EXPECT_THAT(LockFile::Acquire(database),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(database),
                               HasSubstr("already served by a coordinator at unix:/s"))));
    const LockFile moved = *std::move(lock);
    EXPECT_EQ(*ReadLiveAddress(database), "unix:/s");
  }
  EXPECT_EQ(*ReadLiveAddress(database),
            std::nullopt);  // the file still exists, but its address is not live
  EXPECT_THAT(LockFile::Acquire(database), IsOk());
}

TEST(LockFile, ReadersDoNotKeepACoordinatorOut) {
  TempDir dir;
  const std::string database = dir / "pelab.db";
  ASSERT_THAT(LockFile::Acquire(database), IsOk());
  // A reader that holds its shared lock, much longer than a real one.
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "exec flock --shared " + LockPath(database) + " sleep 0.2"};
  auto reader = Process::Spawn(options);
  ASSERT_THAT(reader, IsOk());
  EXPECT_THAT(LockFile::Acquire(database), IsOk());
  reader->Wait();
}

TEST(LockFile, SaysWhereItCannotLock) {
  EXPECT_THAT(
      LockFile::Acquire("/nowhere/pelab.db"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot open /nowhere/pelab.db.lock")));
}

TEST(LockFile, IsThatOfTheFileUnderEveryName) {
  TempDir dir;
  const std::string database = dir / "pelab.db";
  {
    auto lock = LockFile::Acquire(database);
    ASSERT_THAT(lock, IsOk());
    std::filesystem::create_hard_link(database, dir / "other.db");
    const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("is already served by a coordinator"));
    EXPECT_THAT(LockFile::Acquire(dir / "other.db"), refused);
    EXPECT_EQ(*ReadLiveAddress(dir / "other.db"), std::nullopt) << "a refused one holds nothing";
    std::filesystem::remove(LockPath(database));
    EXPECT_THAT(LockFile::Acquire(database), refused);
  }
  EXPECT_THAT(LockFile::Acquire(database), IsOk());
  // A file that its owner may only read can be locked, for instance for a backup.
  std::filesystem::permissions(database, std::filesystem::perms::owner_read);
  EXPECT_THAT(LockFile::Acquire(database), IsOk());
}

TEST(LockFile, IsARegularFile) {
  TempDir dir;
  const std::string database = dir / "pelab.db";
  const auto refused = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr(LockPath(database) + ":"), HasSubstr("it is not a regular file; remove it")));
  ASSERT_EQ(mkfifo(LockPath(database).c_str(), 0600), 0);
  EXPECT_THAT(ReadLiveAddress(database), refused);  // opening it would wait for a writer
  EXPECT_THAT(LockFile::Acquire(database), refused);
  std::filesystem::remove(LockPath(database));
  std::filesystem::create_symlink("elsewhere", LockPath(database));
  EXPECT_THAT(ReadLiveAddress(database), refused);
  EXPECT_THAT(LockFile::Acquire(database), refused);
  EXPECT_FALSE(std::filesystem::exists(dir / "elsewhere"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(LockFile::Acquire(dir / "pipe"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("pipe is a pipe, not a pelab database")));
}

}  // namespace
}  // namespace pelab::rpc
