// Fields task.*, which decide a job's data set and labels. The default sizes scale with task.length
// from the paper's values at 128 tokens.
#include <algorithm>
#include <cstdint>

#include "core/catalog/own.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

constexpr double kMaxSeed = 9007199254740991.0;  // 2^53 - 1: exact in JSON
constexpr double kMaxExamples = 1e9;
constexpr double kMaxTargets = 2e9;  // the most that an epoch's counts may have

// floor(numerator * (length - shrink) / denominator), at least `least`.
Value Scaled(const Values& values, std::int64_t numerator, std::int64_t denominator,
             std::int64_t shrink, std::int64_t least) {
  const std::int64_t length = std::get<std::int64_t>(values.at("task.length"));
  return std::max(least, numerator * (length - shrink) / denominator);
}
Value DefaultDistance(const Values& values) { return Scaled(values, 70, 127, 1, 2); }
Value DefaultSegment(const Values& values) { return Scaled(values, 25, 128, 0, 1); }
Value DefaultContent(const Values& values) { return Scaled(values, 120, 128, 0, 1); }
Value DefaultCount(const Values& values) { return Scaled(values, 100, 128, 0, 1); }
Value JobSeed(const Values& values) { return values.at("seed"); }

Rules Examples(std::int64_t distance, std::int64_t otherwise) {
  return {{"", "", "distance", Whole(distance)}, {"", "", "", Whole(otherwise)}};
}

std::vector<Field> CommonFields() {
  return {
      OfGenerated(Switch(
          ChoiceField("task.definition", "", {"clean", "published"},
                      PublishedOr(Text("published"), Text("clean")),
                      "how sequences are made: without padding or chance triggers, or as the "
                      "authors' generator does"))),
      IntField("task.length", "", 2, 8192, Always(Whole(128)), "tokens",
               "tokens in a sequence, padding included"),
      IntField("task.vocabulary", "", 8, 1000000, Always(Whole(574)), "tokens",
               "token ids: 0 is padding, 1 to 4 are set apart, the others are words"),
      OfGenerated(Derived(IntField("task.data_seed", "", 0, kMaxSeed, {}, "",
                                   "seed of the data set; the job's seed by default"),
                          JobSeed)),
      IntField("task.train_examples", "", 1, kMaxExamples, Examples(70000, 35000), "examples",
               "training examples"),
      IntField("task.test_examples", "", 1, kMaxExamples, Examples(30000, 15000), "examples",
               "test examples"),
      OfGenerated(Switch(
          ChoiceField("task.split", "", {"disjoint", "random", "held_out_cells", "held_out_starts"},
                      PublishedOr(Text("random"), Text("disjoint")),
                      "disjoint: no test sequence is a training sequence; random: a permutation "
                      "seeded with 42; held_out_cells: no test pair of start place and distance "
                      "is a training pair; held_out_starts: no start place of the test set is one "
                      "of the training set"))),
      Switch(ChoiceField("task.label_space", "", {"exact", "vocabulary"},
                         PublishedOr(Text("vocabulary"), Text("exact")),
                         "classes: the labels that occur, or every token id")),
      Switch(ChoiceField("task.scored_classes", "", {"all", "nonzero"},
                         PublishedOr(Text("all"), Text("nonzero"), Text("all")),
                         "nonzero leaves examples of class 0 out of loss and accuracy")),
  };
}

// These fields repeat what a file of data holds (core/experiment/own_task.h), so that a job can be
// checked without the file. Only task.test can be set.
std::vector<Field> OwnDataFields() {
  const Condition by_position = {"task.targets", "position"};
  return {
      TextField("task.data", "own", IsOwnName, kOwnNameRule, Always(Text("data")),
                "the name that the file gives itself"),
      TextField("task.file", "own", IsHash, "64 hexadecimal digits in lower case",
                Always(Text(kNoFile)), "the SHA-256 of the file"),
      TextField("task.test", "own", IsOwnName, kOwnNameRule, Always(Text("test")),
                "the file's split that is the test set"),
      IntField("task.classes", "own", 1, 1000000, Always(Whole(2)), "",
               "labels that the file may have"),
      IntField("task.first_label", "own", -1000000, 1000000, Always(Whole(0)), "",
               "the smallest of these labels"),
      BoolField("task.padded", "own", Always(false),
                "whether some sequence is shorter than task.length"),
      RealField("task.chance", "own", {0, 1}, Always(0.0), "fraction",
                "test accuracy without looking: as the file says, or of always answering the most "
                "frequent training label"),
      When(by_position, IntField("task.train_targets", "own", 1, kMaxTargets, Always(Whole(1)), "",
                                 "positions of the training examples that have a target")),
      When(by_position, IntField("task.test_targets", "own", 1, kMaxTargets, Always(Whole(1)), "",
                                 "positions of the test examples that have a target")),
  };
}

std::vector<Field> DistanceFields() {
  const Condition clean = {"task.definition", "clean"};
  const Condition published = {"task.definition", "published"};
  return {
      When(clean,
           Derived(IntField("task.max_distance", "distance", 2, 8191, {}, "tokens",
                            "largest distance between the triggers; 70(length - 1)/127 by default"),
                   DefaultDistance)),
      When(published, Derived(IntField("task.max_segment", "distance", 1, 8192, {}, "tokens",
                                       "largest number of words before and after the triggers; "
                                       "25 length/128 by default"),
                              DefaultSegment)),
      When(published, Derived(IntField("task.max_gap", "distance", 2, 8192, {}, "tokens",
                                       "largest number of words between the triggers; "
                                       "70(length - 1)/127 by default"),
                              DefaultDistance)),
      When(published,
           Derived(IntField("task.truncate", "distance", 1, 8192, {}, "tokens",
                            "sequences are cut to this before padding; 120 length/128 by "
                            "default"),
                   DefaultContent)),
      When({"task.split", "held_out_cells", /*unless=*/false, "held_out_starts"},
           RealField("task.held_out_fraction", "distance", {0, 1, true, true}, Always(0.3),
                     "fraction",
                     "share of a distance's start places (published: lengths of the segment "
                     "before the first trigger) that only the test set has")),
  };
}

std::vector<Field> CountingFields() {
  return {
      IntField("task.triggers", "counting", 1, 999994, Always(Whole(30)), "tokens",
               "words that count as triggers"),
      When({"task.definition", "published"},
           Derived(IntField("task.content_length", "counting", 1, 8192, {}, "tokens",
                            "words in a sequence, the rest is padding; 120 length/128 by default"),
                   DefaultContent)),
      Derived(IntField("task.max_count", "counting", 1, 8192, {}, "tokens",
                       "largest number of triggers in a sequence; 100 length/128 by default"),
              DefaultCount),
  };
}

}  // namespace

std::vector<Field> TargetFields() {
  return {ChoiceField("task.targets", "own", {"sequence", "position"}, Always(Text("sequence")),
                      "whether the file has one target for a sequence or one for each position")};
}

std::vector<Field> TaskFields() {
  std::vector<Field> fields = CommonFields();
  for (auto* group : {DistanceFields, CountingFields, OwnDataFields}) {
    for (Field& field : group()) fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace pelab::catalog
