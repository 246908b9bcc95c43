#include "client/options/repeat_command.h"

#include <gtest/gtest.h>

#include "core/experiment/sweep.h"

namespace pelab::client {
namespace {

TEST(ShellWord, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(ShellWord("runs/tiny-1.yaml"), "runs/tiny-1.yaml");
  EXPECT_EQ(ShellWord("my sweep.yaml"), "'my sweep.yaml'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(ShellWord(""), "''");
}

v1::Sweep Submitted(const std::string& file,
                    const std::vector<std::pair<std::string, std::string>>& overrides) {
  v1::Sweep sweep;
  sweep.set_file_name(file);
  for (const auto& [field, value] : overrides) {
    v1::Override& override = *sweep.add_overrides();
    override.set_field(field);
    override.set_value(value);
  }
  return sweep;
}

TEST(RunCommand, HasTheNameAndTheFieldsOfTheSubmission) {
  EXPECT_EQ(RunCommand(Submitted("tiny.yaml", {})), "pelab run tiny.yaml");
  EXPECT_EQ(RunCommand(Submitted("tiny.yaml", {{"train.epochs", "2000"},
                                               {"pe", "[nope, rope]"},
                                               {"file:decay.pt", "{}"},
                                               {"name", "foo"}})),
            "pelab run tiny.yaml --set train.epochs=2000 --set 'pe=[nope, rope]' --name foo");
}

TEST(RunCommand, OfASheetIsSettle) {
  EXPECT_EQ(RunCommand(Submitted("claims.yaml", {{"seed", std::string(experiment::kNoSeeds)}})),
            "pelab settle claims.yaml");
}

}  // namespace
}  // namespace pelab::client
