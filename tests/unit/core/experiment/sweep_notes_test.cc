#include "core/experiment/sweep_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/experiment/own_data_fixture.h"
#include "tests/unit/core/experiment/own_encoding_fixture.h"

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

// Splits whose longest sequences have these lengths; 0: not declared.
std::string SplitsOfLengths(int train, int test, int longer) {
  const auto split = [](const char* name, int longest) {
    return std::string(R"({"name":")") + name +
           R"(","examples":9,"targets":9,"chance":0.5,"repeats":0)" +
           (longest > 0 ? ",\"longest\":" + std::to_string(longest) : "") + "}";
  };
  return "[" + split("train", train) + "," + split("test", test) + "," + split("long", longer) +
         "]";
}

// A sweep of rope and an own encoding on own data, with max_len for it.
std::vector<std::string> NotesOnOwn(const std::string& extrapolates, const std::string& splits,
                                    const std::string& rest = "") {
  const SweepResult result = ParseSweep(
      "name: a\npe: [rope, {name: own, file: mine.pt, beta: [1, 2]}]\nprotocol: matched\n"
      "task: {name: own, file: data.safetensors, test: [test, long]}\n" +
          rest,
      {{"file:mine.pt", DeclaredEncoding("extrapolates", extrapolates)},
       {"file:data.safetensors", DeclaredData("splits", splits)}});
  EXPECT_THAT(Complaints(result), IsEmpty());
  return result.sweep ? NotesOn(*result.sweep) : std::vector<std::string>();
}

TEST(SweepNotes, AnEncodingThatDoesNotExtrapolateOnLongerSequences) {
  EXPECT_THAT(
      NotesOnOwn("false", SplitsOfLengths(32, 32, 64)),
      ElementsAre("the encoding decay declares extrapolates: false, but the split long of the data "
                  "parity has sequences of up to 64 tokens, and its training split of up to 32"));
  EXPECT_THAT(NotesOnOwn("false", SplitsOfLengths(16, 32, 64)),
              ElementsAre(HasSubstr("the split test of"), HasSubstr("the split long of")));
}

TEST(SweepNotes, NothingToSayOfLengths) {
  const std::string longer = SplitsOfLengths(32, 32, 64);
  EXPECT_THAT(NotesOnOwn("true", longer), IsEmpty());
  EXPECT_THAT(NotesOnOwn("", longer), IsEmpty()) << "not declared";
  EXPECT_THAT(NotesOnOwn("false", SplitsOfLengths(32, 32, 32)), IsEmpty());
  EXPECT_THAT(NotesOnOwn("false", SplitsOfLengths(32, 32, 0)), IsEmpty()) << "not declared";
  EXPECT_THAT(NotesOnOwn("false", SplitsOfLengths(0, 32, 64)), IsEmpty()) << "not declared";
  const std::string exclude = "exclude: [{pe: own, task.test: long}]\n";
  EXPECT_THAT(NotesOnOwn("false", longer, exclude), IsEmpty());
}

}  // namespace
}  // namespace pelab::experiment
