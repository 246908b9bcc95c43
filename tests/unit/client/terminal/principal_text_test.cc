#include "client/terminal/principal_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/access/role.h"

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMomentMs = 1'764'000'000'000;
const absl::Time kMoment = absl::FromUnixMillis(kMomentMs);

v1::Principal Alice() {
  v1::Principal alice;
  alice.set_name("alice");
  alice.set_role(v1::ROLE_SUBMITTER);
  alice.set_created_at_ms(kMomentMs - 1000);
  alice.set_expires_at_ms(kMomentMs + 1000);
  alice.set_running_jobs(3);
  alice.set_queued_jobs(12);
  alice.set_gpu_seconds_used(5400);
  alice.mutable_limits()->set_share(2);
  alice.mutable_limits()->set_max_slots(8);
  alice.mutable_limits()->set_max_queued(100);
  alice.mutable_limits()->set_gpu_seconds(36000);
  alice.mutable_limits()->set_max_priority(5);
  return alice;
}

v1::Principal Gpu01() {
  v1::Principal worker;
  worker.set_name("gpu01");
  worker.set_role(v1::ROLE_WORKER);
  worker.set_certificate_uri("pelab://worker/gpu01");
  worker.set_disabled(true);
  return worker;
}

TEST(PrincipalText, RolesHaveNames) {
  for (const std::string& name : kRoleNames) EXPECT_TRUE(access::ParseRole(name)) << name;
}

TEST(PrincipalText, AStateIsOfAMoment) {
  v1::Principal alice = Alice();
  EXPECT_EQ(PrincipalState(alice, kMoment), "active");
  EXPECT_EQ(PrincipalState(alice, kMoment + absl::Seconds(1)), "expired");
  alice.set_disabled(true);
  EXPECT_EQ(PrincipalState(alice, kMoment + absl::Seconds(1)), "disabled");
  alice.set_disabled(false);
  alice.set_expires_at_ms(0);
  EXPECT_EQ(PrincipalState(alice, absl::InfiniteFuture()), "active");
}

TEST(PrincipalText, ATableOfAll) {
  EXPECT_EQ(
      PrincipalTable({Alice(), Gpu01()}, kMoment, {.width = 100}),
      "name   role       by           expires     state     slots  queued  GPU hours  share\n"
      "alice  submitter  token        2025-11-24  active      3/8  12/100   1.5/10.0      2\n"
      "gpu01  worker     certificate  never       disabled      0       0        0.0      1\n");
}

TEST(PrincipalText, ATableFitsATerminalOf80Columns) {
  const std::string table = PrincipalTable({Alice(), Gpu01()}, kMoment, {.width = 80});
  EXPECT_EQ(table.find('\n'), std::string("name  role      by          expires    state    slots "
                                          "queued GPU hours share")
                                  .size());
}

TEST(PrincipalText, EveryPropertyOfOne) {
  const std::string alice = PrincipalText(Alice(), kMoment, {});
  EXPECT_THAT(alice, HasSubstr("expires    2025-11-24 16:00:01 UTC\n"));
  EXPECT_THAT(alice, HasSubstr("GPU hours  1.5/10.0\n"));
  EXPECT_THAT(alice, HasSubstr("priority   at most 5\n"));
  EXPECT_THAT(PrincipalText(Gpu01(), kMoment, {}),
              HasSubstr("by         certificate pelab://worker/gpu01\n"));
  EXPECT_THAT(alice, HasSubstr("created    2025-11-24 15:59:59 UTC\n"));
  EXPECT_THAT(PrincipalText(Gpu01(), kMoment, {}), Not(HasSubstr("created")));
}

TEST(PrincipalText, JsonHasNullForWhatThereIsNot) {
  EXPECT_EQ(PrincipalJson(Alice(), kMoment).dump(),
            R"({"name":"alice","role":"submitter","state":"active","certificate_uri":null,)"
            R"("created_at_ms":1763999999000,"expires_at_ms":1764000001000,"disabled":false,)"
            R"("running_jobs":3,"max_slots":8,"queued_jobs":12,"max_queued":100,)"
            R"("gpu_seconds_used":5400.0,"gpu_seconds":36000.0,"share":2.0,"max_priority":5})");
  const render::Json worker = PrincipalJson(Gpu01(), kMoment);
  EXPECT_EQ(worker["certificate_uri"], "pelab://worker/gpu01");
  for (const char* none :
       {"created_at_ms", "expires_at_ms", "max_slots", "max_queued", "gpu_seconds"}) {
    EXPECT_TRUE(worker[none].is_null()) << none;
  }
  EXPECT_EQ(worker["share"], 1.0);
  EXPECT_EQ(PrincipalColumns().size(), worker.size());
}

TEST(PrincipalText, DataCannotControlATerminal) {
  v1::Principal hostile = Gpu01();
  hostile.set_name("a\x1b[31m\nb");
  hostile.set_certificate_uri("pelab://\x1b]0;x\a");
  const std::string all =
      PrincipalTable({hostile}, kMoment, {.width = 200}) + PrincipalText(hostile, kMoment, {});
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_THAT(all, HasSubstr("a\\x1b[31m\\nb"));
}

}  // namespace
}  // namespace pelab::client
