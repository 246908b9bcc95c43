// Who shows what, and what it is worth.
#include "server/access/principals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/access/token.h"
#include "server/access/methods.h"
#include "server/access/rates.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace pelab::access {
namespace {

using testing::HasSubstr;

class PrincipalsTest : public testing::Test {
 protected:
  std::int64_t In(absl::Duration time) const { return absl::ToUnixMillis(clock_.Wall() + time); }
  static store::Principal Named(const std::string& name, const std::string& token) {
    return {.name = name, .role = v1::ROLE_READER, .token_sha256 = TokenHash(token)};
  }
  std::string Who(const std::string& token) const {
    const auto found = principals_.Find({.token = token, .cert_uris = {}});
    return found.ok() ? found->name : std::string(found.status().message());
  }
  std::string WhoHas(std::vector<std::string> uris) const {
    const auto found = principals_.Find({.token = {}, .cert_uris = std::move(uris)});
    return found.ok() ? found->name : std::string(found.status().message());
  }

  FakeClock clock_;
  Principals principals_{clock_, nullptr};
};

TEST_F(PrincipalsTest, IsOnOnceThereIsOne) {
  EXPECT_FALSE(principals_.on());
  principals_.Set(Named("alice", "token-of-alice"));
  EXPECT_TRUE(principals_.on());
  EXPECT_TRUE(Principals(clock_, rpc::TokenFile::Fixed("a-shared-token")).on());
}

TEST_F(PrincipalsTest, AreFoundByTheirTokens) {
  principals_.Set(Named("alice", "token-of-alice"));
  principals_.Set(Named("bob", "token-of-bob"));
  EXPECT_EQ(Who("token-of-alice"), "alice");
  EXPECT_EQ(Who("token-of-bob"), "bob");
  EXPECT_THAT(Who("token-of-eve"), HasSubstr("not one of this coordinator's"));
  EXPECT_THAT(Who(""), HasSubstr("not one of this coordinator's"));
  EXPECT_THAT(WhoHas({}), HasSubstr("needs a token"));
}

TEST_F(PrincipalsTest, AnEmptyHashIsNobodysToken) {
  store::Principal with_certificate{.name = "gpu01", .certificate_uri = "pelab://worker/gpu01"};
  principals_.Set(with_certificate);
  EXPECT_THAT(Who(""), HasSubstr("not one of this coordinator's"));
  EXPECT_EQ(WhoHas({"pelab://worker/gpu01"}), "gpu01");
  EXPECT_EQ(WhoHas({"pelab://other", "pelab://worker/gpu01"}), "gpu01");
  EXPECT_THAT(WhoHas({"pelab://worker/gpu02"}),
              HasSubstr("the certificate of pelab://worker/gpu02"));
  // Whoever shows a wrong token is refused, whatever the certificate.
  EXPECT_FALSE(principals_.Find({.token = "wrong", .cert_uris = {"pelab://worker/gpu01"}}).ok());
}

TEST_F(PrincipalsTest, ThePreviousTokenEnds) {
  store::Principal alice = Named("alice", "second");
  alice.previous_token_sha256 = TokenHash("first");
  alice.previous_until = In(absl::Hours(1));
  principals_.Set(alice);
  EXPECT_EQ(Who("first"), "alice");
  clock_.Advance(absl::Minutes(59));
  EXPECT_EQ(Who("first"), "alice");
  clock_.Advance(absl::Minutes(1));
  EXPECT_THAT(Who("first"), HasSubstr("the token of principal alice was replaced"));
  EXPECT_EQ(Who("second"), "alice");
  principals_.Set(Named("alice", "third"));
  EXPECT_THAT(Who("second"), HasSubstr("not one of this coordinator's"));
}

TEST_F(PrincipalsTest, ExpireAndAreDisabled) {
  store::Principal alice = Named("alice", "token");
  alice.expires_at = In(absl::Hours(1));
  principals_.Set(alice);
  EXPECT_EQ(Who("token"), "alice");
  clock_.Advance(absl::Hours(1));
  EXPECT_THAT(Who("token"), HasSubstr("alice has expired"));
  alice.expires_at = 0;
  alice.disabled = true;
  principals_.Set(alice);
  EXPECT_THAT(Who("token"), HasSubstr("alice is disabled"));
}

TEST(RatesTest, ABucketIsFilledAgain) {
  FakeClock clock;
  Rates rates(clock, /*per_second=*/10, /*at_once=*/3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.Take("a")) << i;
  EXPECT_FALSE(rates.Take("a"));
  EXPECT_TRUE(rates.Take("b")) << "each principal has its own";
  clock.Advance(absl::Milliseconds(250));
  EXPECT_TRUE(rates.Take("a"));
  EXPECT_TRUE(rates.Take("a"));
  EXPECT_FALSE(rates.Take("a"));
  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(rates.Take("a")) << i;
  EXPECT_FALSE(rates.Take("a")) << "no more than at once, however long nobody called";
}

TEST(MethodsTest, EveryMethodSaysWhatItNeeds) {
  const auto methods = Methods::Build();
  ASSERT_THAT(methods, IsOk());
  EXPECT_EQ(methods->all().size(), 53u);
  const Methods::Method* submit = methods->Find("/pelab.v1.Sweeps/Submit");
  ASSERT_NE(submit, nullptr);
  EXPECT_EQ(submit->name, "Sweeps/Submit");
  EXPECT_EQ(submit->needs.role(), v1::ROLE_SUBMITTER);
  EXPECT_FALSE(submit->streams);
  EXPECT_TRUE(methods->Find("/pelab.v1.Sweeps/WatchSweep")->streams);
  EXPECT_EQ(methods->Find("/pelab.v1.Sweeps/"), nullptr);
}

}  // namespace
}  // namespace pelab::access
