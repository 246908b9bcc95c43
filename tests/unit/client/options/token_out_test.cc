#include "client/options/token_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;

TEST(TokenOut, IsForTheOwnerAlone) {
  const TempDir dir;
  {
    const auto out = TokenOut::Create(dir / "token");
    ASSERT_THAT(out, IsOk());
    struct stat info {};
    ASSERT_EQ(stat((dir / "token").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << "also before the token is there";
    EXPECT_THAT((*out)->Write("secret-of-alice"), IsOk());
  }
  EXPECT_EQ(*ReadFile(dir / "token", 100), "secret-of-alice\n");
}

TEST(TokenOut, LeavesNothingWithoutAToken) {
  const TempDir dir;
  ASSERT_THAT(TokenOut::Create(dir / "token"), IsOk());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(TokenOut, NeverReplacesAFile) {
  const TempDir dir;
  ASSERT_THAT(WriteFileAtomically(dir / "token", "mine"), IsOk());
  EXPECT_THAT(TokenOut::Create(dir / "token"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("--token-out: cannot create")));
  EXPECT_EQ(*ReadFile(dir / "token", 100), "mine");
}

TEST(TokenOut, NoneWithoutAPath) {
  const auto none = TokenOut::Create("");
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ(*none, nullptr);
}

}  // namespace
}  // namespace pelab::client
