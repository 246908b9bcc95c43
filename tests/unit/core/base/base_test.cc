// The small parts of core/base: status helpers, ids, durations, files, logging.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/duration.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/logging.h"
#include "core/base/status.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Status, ErrnoSaysWhatAndWhy) {
  EXPECT_THAT(ErrnoStatus(ENOENT, "cannot open x"),
              StatusIs(absl::StatusCode::kNotFound, "cannot open x: no such file or directory"));
  EXPECT_THAT(ErrnoStatus(99999, "cannot open x"),
              StatusIs(testing::_, "cannot open x: error 99999"));
}

TEST(Status, AnnotateKeepsCodeAndPayload) {
  absl::Status status = absl::InvalidArgumentError("bad");
  status.SetPayload("url", absl::Cord("bytes"));
  const absl::Status annotated = Annotate(status, "file.yaml");
  EXPECT_THAT(annotated, StatusIs(absl::StatusCode::kInvalidArgument, "file.yaml: bad"));
  EXPECT_EQ(annotated.GetPayload("url"), absl::Cord("bytes"));
  EXPECT_THAT(Annotate(absl::OkStatus(), "x"), IsOk());
}

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}
absl::StatusOr<int> Quarter(int number) {
  PELAB_ASSIGN_OR_RETURN(const int half, Half(number));
  PELAB_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}
absl::Status Check(int number) {
  PELAB_RETURN_IF_ERROR(Half(number).status());
  return absl::OkStatus();
}

TEST(Status, MacrosReturnTheError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Check(4), IsOk());
  EXPECT_THAT(Check(3), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

TEST(Ids, AreWellFormedAndDoNotRepeat) {
  std::set<std::string> uuids;
  std::set<std::uint64_t> tokens;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = RandomUuid();
    EXPECT_TRUE(IsUuid(uuid)) << uuid;
    EXPECT_EQ(uuid[14], '4');
    EXPECT_THAT(std::string("89ab"), HasSubstr(uuid.substr(19, 1)));
    uuids.insert(uuid);
    tokens.insert(RandomToken());
    const double unit = RandomUnit();
    EXPECT_GE(unit, 0);
    EXPECT_LT(unit, 1);
  }
  EXPECT_EQ(uuids.size(), 1000u);
  EXPECT_EQ(tokens.size(), 1000u);
  EXPECT_EQ(tokens.count(0), 0u);
  EXPECT_FALSE(IsUuid(""));
  EXPECT_FALSE(IsUuid("F81D4FAE-7DEC-4D0A-A765-00A0C91E6BF6"));
  EXPECT_FALSE(IsUuid("f81d4fae-7dec-4d0a-a765-00a0c91e6bf"));
  EXPECT_FALSE(IsUuid("f81d4fae_7dec-4d0a-a765-00a0c91e6bf6"));
}

TEST(Duration, ReadsTimesWithUnits) {
  EXPECT_EQ(*ParseDuration("500ms", "--lease"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseDuration("5s", "--lease"), absl::Seconds(5));
  EXPECT_EQ(*ParseDuration("1h30m", "--lease"), absl::Minutes(90));
  for (const char* wrong : {"", "5", "0s", "-1s", "inf", "5 s", "five", "5s "}) {
    EXPECT_THAT(ParseDuration(wrong, "--lease"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("invalid --lease \""), HasSubstr("such as 500ms, 5s"))))
        << wrong;
  }
}

TEST(Duration, ReadsDays) {
  EXPECT_EQ(*ParseDays("90d", "--expires"), absl::Hours(24 * 90));
  EXPECT_EQ(*ParseDays("1d12h", "--expires"), absl::Hours(36));
  EXPECT_EQ(*ParseDays("0d1s", "--expires"), absl::Seconds(1));
  EXPECT_EQ(*ParseDays("6h", "--expires"), absl::Hours(6));
  EXPECT_EQ(*ParseDays("36500d", "--expires"), absl::Hours(24 * 36500));
  for (const char* wrong : {"", "d", "0d", "90", "-1d", "1.5d", "1d-1h", "1d 2h", "36501d",
                            "36500d1s", "99999999999d", "d1h", "never", "inf"}) {
    EXPECT_THAT(ParseDays(wrong, "--expires"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith(absl::StrCat("invalid --expires \"", wrong, "\"")),
                               HasSubstr("such as 90d, 1d12h"))))
        << wrong;
  }
}

TEST(Duration, ReadsSizes) {
  EXPECT_EQ(*ParseByteSize("1000", "--quota"), 1000u);
  EXPECT_EQ(*ParseByteSize("64KiB", "--quota"), 65536u);
  EXPECT_EQ(*ParseByteSize("2GiB", "--quota"), std::uint64_t{2} << 30);
  EXPECT_EQ(*ParseByteSize("1048576TiB", "--quota"), std::uint64_t{1} << 60);
  for (const char* wrong :
       {"", "0", "-1", "1.5GiB", "GiB", "1GB", "1048577TiB", "99999999999999999999", "+5", " 5"}) {
    EXPECT_THAT(ParseByteSize(wrong, "--quota"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("invalid --quota")))
        << wrong;
  }
}

TEST(File, ReadsWithinItsBound) {
  TempDir dir;
  std::ofstream(dir / "f") << "12345";
  EXPECT_EQ(*ReadFile(dir / "f", 5), "12345");
  EXPECT_THAT(ReadFile(dir / "f", 4),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("longer than 4 bytes")));
  EXPECT_THAT(ReadFile(dir / "g", 4), StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir / "g")));
  EXPECT_THAT(ReadFile(dir.path(), 4),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a directory")));
}

TEST(File, ReplacesWholeOrNotAtAll) {
  TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir / "f", "old"), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir / "f", std::string(1 << 20, 'n'), 0600), IsOk());
  EXPECT_EQ(ReadFile(dir / "f", 2 << 20)->size(), std::size_t{1} << 20);
  struct stat info {};
  ASSERT_EQ(stat((dir / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // If the target cannot be replaced, it stays, and no temporary file stays beside it.
  ASSERT_THAT(CreateDirectories(dir / "d/e"), IsOk());
  EXPECT_FALSE(WriteFileAtomically(dir / "d", "x").ok());
  EXPECT_THAT(
      WriteFileAtomically(dir / "none/f", "x"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot create " + (dir / "none/f: "))))
      << "the file that was asked for, and not the temporary one";
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path()))
    ++entries;
  EXPECT_EQ(entries, 2);
}

TEST(File, CreatesButNeverReplaces) {
  TempDir dir;
  ASSERT_THAT(WriteNewFile(dir / "f", "secret", 0600), IsOk());
  struct stat info {};
  ASSERT_EQ(stat((dir / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(WriteNewFile(dir / "f", "other"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(dir / "f")));
  EXPECT_EQ(*ReadFile(dir / "f", 100), "secret");
  std::filesystem::create_symlink("nothing", dir / "link");
  EXPECT_THAT(CreateNewFile(dir / "link"), StatusIs(absl::StatusCode::kAlreadyExists, _));
  EXPECT_FALSE(std::filesystem::exists(dir / "nothing"));
  EXPECT_THAT(CreateNewFile(dir / "none/f"), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST(File, LinksAreResolvedToOneName) {
  TempDir dir;
  const std::string file = dir / "file";
  EXPECT_EQ(ResolveLinks(file), file);
  EXPECT_EQ(ResolveLinks("pelab.db"), "pelab.db");
  std::filesystem::create_symlink("file", dir / "relative");
  std::filesystem::create_symlink(dir / "relative", dir / "absolute");
  EXPECT_EQ(ResolveLinks(dir / "absolute"), file) << "which does not exist yet";
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  EXPECT_EQ(ResolveLinks(dir / "absolute"), file);
  std::filesystem::create_symlink("circle", dir / "circle");
  EXPECT_EQ(ResolveLinks(dir / "circle"), dir / "circle");
}

TEST(File, NamesThatArePlain) {
  for (const std::string name : {"w", "weights.safetensors", "...", " ", "poids-é"}) {
    EXPECT_TRUE(IsPlainFileName(name)) << name;
  }
  EXPECT_TRUE(IsPlainFileName(std::string(256, 'w')));
  for (const std::string name : {"", ".", "..", "/", "a/b", "../x", "a\nb", "\x7f"}) {
    EXPECT_FALSE(IsPlainFileName(name)) << name;
  }
  EXPECT_FALSE(IsPlainFileName(std::string("a\0b", 3)));
  EXPECT_FALSE(IsPlainFileName(std::string(257, 'w')));
}

TEST(File, AppendsAndRemoves) {
  TempDir dir;
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<UniqueFd> fd = OpenForAppend(dir / "log");
    ASSERT_THAT(fd, IsOk());
    ASSERT_THAT(WriteAll(fd->get(), "line\n", "log"), IsOk());
    EXPECT_NE(fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(*ReadFile(dir / "log", 100), "line\nline\n");
  ASSERT_THAT(CreateDirectories(dir / "a/b/c"), IsOk());
  EXPECT_THAT(RemoveAll(dir / "a"), IsOk());
  EXPECT_THAT(RemoveAll(dir / "a"), IsOk());
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  EXPECT_EQ(DirectoryOf("x"), ".");
  EXPECT_EQ(DirectoryOf("/a/x"), "/a");
}

TEST(Clock, MonotonicNeverGoesBack) {
  const SystemClock& clock = SystemClock::Instance();
  absl::Duration last = clock.Monotonic();
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration now = clock.Monotonic();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_GT(clock.Wall(), absl::FromUnixSeconds(1'600'000'000));
}

TEST(Logging, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(SetUpLogging("p", {"xml", "info"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown log format \"xml\"; allowed: text, json")));
  EXPECT_THAT(SetUpLogging("p", {"text", "loud"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown log level \"loud\"; allowed: trace")));
}

TEST(Logging, JsonLinesAreEscaped) {
  testing::internal::CaptureStderr();
  ASSERT_THAT(SetUpLogging("prog", {"json", "info"}), IsOk());
  spdlog::debug("hidden");
  spdlog::info("say \"{}\"\nand \x01 \\", "x");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, StartsWith("{\"time\":\"2"));
  EXPECT_THAT(
      text, HasSubstr(R"("level":"info","program":"prog","message":"say \"x\"\nand \u0001 \\"})"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  ASSERT_THAT(SetUpLogging("prog", {"text", "info"}), IsOk());
}

// "\xc2\x9b" is U+009B, which some terminals take for ESC [; U+202E turns the direction of text.
constexpr char kHostile[] = "gpu\n2026 info\t\x1b[31m\xc2\x9b\xe2\x80\xae\xff ü";

TEST(Logging, WhatAMessageQuotesStaysInItsLine) {
  testing::internal::CaptureStderr();
  ASSERT_THAT(SetUpLogging("prog", {"text", "info"}), IsOk());
  spdlog::warn("worker {} left", kHostile);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      text,
      EndsWith(" warning prog: worker gpu\\n2026 info\\t\\x1b[31m\\x9b\\u202e\\xff ü left\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Logging, JsonIsUtf8WithoutControlCharacters) {
  testing::internal::CaptureStderr();
  ASSERT_THAT(SetUpLogging("prog", {"json", "info"}), IsOk());
  spdlog::info("{}", kHostile);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, EndsWith(R"("message":"gpu\n2026 info\t\u001b[31m\u009b\u202e\ufffd ü"})"
                             "\n"));
  ASSERT_THAT(SetUpLogging("prog", {"text", "info"}), IsOk());
}

}  // namespace
}  // namespace pelab
