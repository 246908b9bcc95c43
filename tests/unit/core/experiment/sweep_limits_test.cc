// Documents that are expensive by design: each is answered quickly, with a number and a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Timed {
  std::vector<std::string> complaints;
  double milliseconds;
};

Timed Parse(const std::string& document) {
  const auto start = std::chrono::steady_clock::now();
  const SweepResult result = ParseSweep(document);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Timed timed{{}, took.count()};
  for (const Violation& violation : result.violations)
    timed.complaints.push_back(violation.message);
  return timed;
}

// The shortest of a few runs: the cost of the work itself, without the load of a busy machine.
double BestOf(int runs, const std::string& document) {
  double best = Parse(document).milliseconds;
  for (int i = 1; i < runs; ++i) best = std::min(best, Parse(document).milliseconds);
  return best;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlowdown = 20;
#else
constexpr double kSlowdown = 1;
#endif

TEST(Limits, ATrillionJobsAreCountedNotMade) {
  const std::string document = "{name: a, pe: rope, task: distance, seed: 0..999999999999}";
  EXPECT_THAT(Parse(document).complaints,
              ElementsAre("the sweep has 1000000000000 jobs (1 pe x 1 task x 1000000000000 seeds); "
                          "at most 1000000 are "
                          "allowed"));
  EXPECT_LT(BestOf(5, document), 10 * kSlowdown);
}

TEST(Limits, ProductsBeyond64Bits) {
  std::string document = "{name: a, pe: rope, task: distance, seed: 0..9007199254740991, axes: {";
  for (const char* field :
       {"train.lr", "train.epsilon", "train.weight_decay", "train.warmup_fraction"}) {
    document += std::string(field) + ": [";
    for (int i = 1; i <= 100; ++i) document += "0.00" + std::to_string(i) + ", ";
    document += "], ";
  }
  EXPECT_THAT(Parse(document + "}}").complaints,
              ElementsAre(HasSubstr("more than 18446744073709551615 jobs")));
}

TEST(Limits, TheLargestSweepIsAllowedAndOneMoreIsNot) {
  EXPECT_TRUE(ParseSweep("{name: a, pe: rope, task: distance, seed: 0..999999}").sweep);
  EXPECT_FALSE(ParseSweep("{name: a, pe: rope, task: distance, seed: 0..1000000}").sweep);
}

TEST(Limits, ProtocolsMultiply) {
  const std::string start = "{name: a, protocol: [clean, published], pe: rope, task: distance, ";
  EXPECT_TRUE(ParseSweep(start + "seed: 0..499999}").sweep);
  EXPECT_THAT(Parse(start + "seed: 0..500000}").complaints,
              ElementsAre(HasSubstr("the sweep has 1000002 jobs (2 protocols x 1 pe x 1 task x "
                                    "500001 seeds)")));
}

TEST(Limits, Configurations) {
  std::string document = "{name: a, pe: rope, task: distance, axes: {train.lr: [";
  for (int i = 1; i <= 300; ++i) document += std::to_string(i) + "e-6, ";
  document += "], train.epochs: [";
  for (int i = 1; i <= 300; ++i) document += std::to_string(i) + ", ";
  EXPECT_THAT(Parse(document + "]}}").complaints,
              ElementsAre(HasSubstr("the sweep has 90000 different configurations")));
}

TEST(Limits, DocumentSize) {
  EXPECT_THAT(Parse(std::string(kMaxDocumentBytes + 1, '#')).complaints,
              ElementsAre(HasSubstr("1048577 bytes")));
}

TEST(Limits, AliasBomb) {
  std::string document = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    document += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) document += "*" + before + ", ";
    document += "]\n";
  }
  const Timed timed = Parse(document);
  EXPECT_THAT(timed.complaints,
              ElementsAre(HasSubstr("too many values, those behind aliases counted each time")));
  EXPECT_LT(timed.milliseconds, 1000 * kSlowdown);
}

TEST(Limits, AliasOfItself) {
  EXPECT_THAT(Parse("a: &a [*a]").complaints, ElementsAre("the alias refers to what it stands in"));
}

TEST(Limits, DeepNesting) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string document;
    while (document.size() < 200000) document += open;
    const Timed timed = Parse(document);
    EXPECT_THAT(timed.complaints,
                ElementsAre("lists and maps are more than 64 deep in each other here"))
        << open;
    EXPECT_LT(timed.milliseconds, 2000 * kSlowdown) << open;
  }
}

TEST(Limits, DeepNestingHasAPlace) {
  const std::string nested = std::string(100, '[') + std::string(100, ']');
  const SweepResult result = ParseSweep("name: a\npe: " + nested);
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].line, 2);
  EXPECT_EQ(result.violations[0].column, 4 + 1 + 63) << "the map of the document is one of the 64";
}

TEST(Limits, AtMostAHundredViolations) {
  std::string document = "{name: a, task: distance, pe: [";
  for (int i = 0; i < 500; ++i) document += "x" + std::to_string(i) + ", ";
  EXPECT_EQ(Parse(document + "]}").complaints.size(), 100u);
}

TEST(Limits, TooManyRules) {
  std::string document = "{name: a, pe: rope, task: distance, seed: 0..9, exclude: [";
  for (int i = 0; i < 201; ++i) document += "{seed: 1}, ";
  EXPECT_THAT(Parse(document + "]}").complaints,
              ElementsAre(HasSubstr("exclude has 201 rules; at most 200")));
}

}  // namespace
}  // namespace pelab::experiment
