#include "core/event/enums.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/ascii.h"

namespace pelab::event {
namespace {

// The names are the proof that the numbers belong together.
TEST(Enums, AnOutcomeKeepsItsName) {
  EXPECT_EQ(OutcomeOf(v1::ATTEMPT_OUTCOME_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(OutcomeOf(static_cast<v1::AttemptOutcome>(99)), std::nullopt);
  for (int i = 1; i < v1::AttemptOutcome_ARRAYSIZE; ++i) {
    const auto outcome = static_cast<v1::AttemptOutcome>(i);
    const std::string name = absl::AsciiStrToLower(v1::AttemptOutcome_Name(outcome));
    ASSERT_TRUE(OutcomeOf(outcome).has_value()) << name;
    EXPECT_EQ(name, "attempt_outcome_" + std::string(state::Name(*OutcomeOf(outcome))));
  }
}

TEST(Enums, AnErrorKindKeepsItsName) {
  EXPECT_EQ(ErrorKindOf(static_cast<v1::ErrorKind>(99)), state::ErrorKind::kNone);
  for (int i = 1; i < v1::ErrorKind_ARRAYSIZE; ++i) {
    const auto kind = static_cast<v1::ErrorKind>(i);
    EXPECT_EQ(ToProto(ErrorKindOf(kind)), kind);
    EXPECT_EQ(absl::AsciiStrToLower(v1::ErrorKind_Name(kind)),
              "error_kind_" + std::string(state::Name(ErrorKindOf(kind))));
  }
}

TEST(Enums, ADrainIsSpelledAsTheDatabaseHasIt) {
  EXPECT_EQ(NameOf(v1::Drain::RESUME), "");
  EXPECT_EQ(NameOf(v1::Drain::CHECKPOINT), "checkpoint");
  for (const auto drain :
       {v1::Drain::FINISH, v1::Drain::CHECKPOINT, v1::Drain::KILL, v1::Drain::RESUME}) {
    EXPECT_EQ(ParseDrain(NameOf(drain)), drain);
  }
  EXPECT_EQ(ParseDrain("explode"), std::nullopt);
}

}  // namespace
}  // namespace pelab::event
