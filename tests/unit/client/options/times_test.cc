#include "client/options/times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNowMs = 1'764'000'000'000;
const absl::Time kNow = absl::FromUnixMillis(kNowMs);
constexpr std::int64_t kHourMs = 3'600'000;

TEST(ParseExpiry, CountsFromNow) {
  EXPECT_EQ(*ParseExpiry("90d", kNow), kNowMs + 90 * 24 * kHourMs);
  EXPECT_EQ(*ParseExpiry("12h", kNow), kNowMs + 12 * kHourMs);
  EXPECT_EQ(*ParseExpiry("never", kNow), 0);
  for (const char* wrong : {"", "90", "0d", "-1d", "Never", "2027-01-01"}) {
    EXPECT_THAT(ParseExpiry(wrong, kNow),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string("invalid --expires \"") + wrong + "\"; allowed:")))
        << wrong;
  }
}

TEST(ParseSince, CountsBackFromNow) {
  EXPECT_EQ(*ParseSince("1d", kNow), kNowMs - 24 * kHourMs);
  EXPECT_EQ(*ParseSince("2h30m", kNow), kNowMs - 2 * kHourMs - kHourMs / 2);
  EXPECT_EQ(*ParseSince("36500d", kNow), 0) << "before 1970 there is nothing";
}

TEST(ParseSince, IsADateOrATimeInUtc) {
  EXPECT_EQ(*ParseSince("1970-01-02", kNow), 24 * kHourMs);
  EXPECT_EQ(*ParseSince("1970-01-02T08:00:00Z", kNow), 32 * kHourMs);
  EXPECT_EQ(*ParseSince("1970-01-02T08:00:00+02:00", kNow), 30 * kHourMs);
  EXPECT_EQ(*ParseSince("1969-01-01", kNow), 0);
  for (const char* wrong : {"", "1", "2026-13-01", "2026-02-30", "2026-11-01 08:00", "yesterday",
                            "inf", "infinite-past"}) {
    EXPECT_THAT(ParseSince(wrong, kNow),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string("invalid --since \"") + wrong + "\"; allowed:")))
        << wrong;
  }
}

}  // namespace
}  // namespace pelab::client
