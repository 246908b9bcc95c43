#include "core/experiment/sweep_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Notes(const std::string& rest) {
  const SweepResult result = ParseSweep("name: a\ntask: [distance, counting]\n" + rest);
  if (!result.sweep) {
    ADD_FAILURE() << Format(result.violations.front(), "s.yaml");
    return {};
  }
  return NotesOn(*result.sweep);
}

TEST(SweepNotes, TwoEncodingsUnderCleanWithTheAuthorsBetas) {
  const auto said = ElementsAre(HasSubstr("(0.98, 0.9)"));
  EXPECT_THAT(Notes("pe: [rope, mla]"), said);
  EXPECT_THAT(Notes("pe: [rope, mla]\nprotocol: [published, clean]"), said);
  EXPECT_THAT(Notes("pe: [rope, mla]\naxes: {train.beta1: [0.9, 0.98]}"), said);
  EXPECT_THAT(Notes("pe: [rope, mla]\nexclude: [{pe: mla, task: counting}, {pe: mla, seed: 0}]"),
              said);
}

TEST(SweepNotes, NothingToSay) {
  EXPECT_THAT(Notes("pe: rope"), IsEmpty());
  EXPECT_THAT(Notes("pe: [{name: partial_rope, heads: [1, 2]}]"), IsEmpty());
  EXPECT_THAT(Notes("pe: [rope, mla]\nprotocol: matched"), IsEmpty());
  EXPECT_THAT(Notes("pe: [rope, mla]\nprotocol: published"), IsEmpty());
  EXPECT_THAT(Notes("pe: [rope, mla]\ntrain: {beta1: 0.9, beta2: 0.999}"), IsEmpty());
  EXPECT_THAT(Notes("pe: [rope, mla]\nexclude: [{pe: mla}]"), IsEmpty());
  EXPECT_THAT(Notes("pe: [rope, mla]\nmodel: {readout: last}"), IsEmpty()) << "custom";
}

}  // namespace
}  // namespace pelab::experiment
