#include "core/access/role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace pelab::access {
namespace {

using testing::HasSubstr;

TEST(RoleTest, NamesAreReadBack) {
  for (const v1::Role role :
       {v1::ROLE_READER, v1::ROLE_SUBMITTER, v1::ROLE_OPERATOR, v1::ROLE_WORKER, v1::ROLE_SCALER}) {
    EXPECT_EQ(ParseRole(NameOf(role)), role);
  }
  EXPECT_EQ(NameOf(v1::ROLE_SUBMITTER), "submitter");
  EXPECT_EQ(ParseRole("unspecified"), std::nullopt);
  EXPECT_EQ(ParseRole("Reader"), std::nullopt);
  EXPECT_EQ(NameOf(static_cast<v1::Role>(99)), "unknown");
}

TEST(RoleTest, EachRoleMayWhatTheLesserOnesMayExceptForWorkers) {
  const auto may = [](v1::Role role, v1::Role needed, bool worker_too = false) {
    v1::Needs needs;
    needs.set_role(needed);
    needs.set_worker_too(worker_too);
    return Suffices(role, needs);
  };
  EXPECT_TRUE(may(v1::ROLE_READER, v1::ROLE_READER));
  EXPECT_FALSE(may(v1::ROLE_READER, v1::ROLE_SUBMITTER));
  EXPECT_TRUE(may(v1::ROLE_OPERATOR, v1::ROLE_READER));
  EXPECT_FALSE(may(v1::ROLE_SUBMITTER, v1::ROLE_OPERATOR));
  EXPECT_FALSE(may(v1::ROLE_OPERATOR, v1::ROLE_WORKER));
  EXPECT_TRUE(may(v1::ROLE_WORKER, v1::ROLE_WORKER));
  EXPECT_FALSE(may(v1::ROLE_WORKER, v1::ROLE_READER));
  EXPECT_TRUE(may(v1::ROLE_WORKER, v1::ROLE_READER, /*worker_too=*/true));
  EXPECT_FALSE(may(v1::ROLE_UNSPECIFIED, v1::ROLE_READER));
  EXPECT_TRUE(may(v1::ROLE_SCALER, v1::ROLE_READER));
  EXPECT_TRUE(may(v1::ROLE_SCALER, v1::ROLE_SCALER));
  EXPECT_FALSE(may(v1::ROLE_SCALER, v1::ROLE_SUBMITTER));
  EXPECT_FALSE(may(v1::ROLE_SCALER, v1::ROLE_OPERATOR));
  EXPECT_FALSE(may(v1::ROLE_SCALER, v1::ROLE_WORKER));
  EXPECT_TRUE(may(v1::ROLE_OPERATOR, v1::ROLE_SCALER));
  for (const v1::Role role : {v1::ROLE_READER, v1::ROLE_SUBMITTER, v1::ROLE_WORKER}) {
    EXPECT_FALSE(may(role, v1::ROLE_SCALER)) << NameOf(role);
  }
}

TEST(RoleTest, NamesOfPrincipalsAreShortAndPlain) {
  for (const char* good : {"a", "alice", "gpu-01.site_b", "0"}) {
    EXPECT_THAT(CheckPrincipalName(good), IsOk()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("-a"), std::string(".a"), std::string("a/b"),
        std::string("\xc3\xa4"), std::string(65, 'a'), std::string("a\n")}) {
    EXPECT_THAT(CheckPrincipalName(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 to 64 letters")))
        << bad;
  }
}

TEST(RoleTest, UrisOfCertificatesBeginWithPelab) {
  EXPECT_THAT(CheckCertificateUri("pelab://worker/gpu01"), IsOk());
  for (const std::string& bad : {std::string("pelab://"), std::string("spiffe://x"),
                                 std::string("pelab://a b"), "pelab://" + std::string(200, 'a')}) {
    EXPECT_THAT(CheckCertificateUri(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pelab://worker/NAME")))
        << bad;
  }
}

}  // namespace
}  // namespace pelab::access
