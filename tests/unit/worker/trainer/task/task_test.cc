// Data sets: against tests/golden/data.py, and against the tasks' definitions, by counting tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <thread>

#include "tests/support/chi_square.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "tests/unit/worker/trainer/rows_fixture.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/task/registry.h"

namespace pelab::trainer {
namespace {

using Int = std::int64_t;

Dataset Make(std::string_view protocol, std::string_view task, const catalog::Values& set = {}) {
  return MakeDataset(SmallJob(protocol, "nope", task, set));
}

std::map<Int, Int> Labels(const Dataset& data, Int begin, Int end) {
  std::map<Int, Int> counts;
  for (Int i = begin; i < end; ++i) ++counts[data.labels[i]];
  return counts;
}

TEST(Data, MatchesTheGoldenDataSets) {
  const nlohmann::json cases = Golden("data.json");
  ASSERT_EQ(cases.size(), 15u);
  for (const auto& golden : cases) {
    SCOPED_TRACE(golden["spec"].dump());
    catalog::Values set = {{"model.max_len", Int{64}}};
    for (const auto& [name, value] : golden["spec"].items()) {
      if (name == "task") continue;
      if (value.is_string()) {
        set["task." + name] = value.get<std::string>();
      } else if (value.is_number_float()) {
        set["task." + name] = value.get<double>();
      } else {
        set["task." + name] = value.get<Int>();
      }
    }
    const Dataset data = Make("clean", golden["spec"]["task"].get<std::string>(), set);
    EXPECT_EQ(data.triggers, golden["triggers"].get<Row>());
    EXPECT_EQ(RowOf(data, 0), golden["first"].get<Row>());
    EXPECT_EQ(data.labels[0], golden["label"].get<std::int32_t>());
    EXPECT_EQ(DatasetSha256(data), golden["data_sha256"].get<std::string>());
  }
}

TEST(Data, RegistryIsTheCatalogs) {
  std::set<std::pair<std::string, int>> catalog, registry;
  for (const auto& entry : catalog::Tasks()) catalog.emplace(entry.name, entry.version);
  for (const auto& entry : TaskRegistry()) registry.emplace(entry.name, entry.version);
  EXPECT_EQ(registry, catalog);
}

TEST(Data, UnknownVersionIsRefused) {
  experiment::Job job = SmallJob("clean", "nope", "distance");
  job.task_version = 99;
  EXPECT_THAT(
      [&] { MakeDataset(job); },
      testing::ThrowsMessage<TrainerError>(testing::HasSubstr("no task \"distance\" version 99")));
}

TEST(CleanDistance, LabelIsTheDistanceOfTheTriggersAndNothingElseTells) {
  const Dataset data = Make("clean", "distance", {{"task.train_examples", Int{20000}}});
  ASSERT_EQ(data.triggers.size(), 2u);
  EXPECT_FALSE(data.HasPadding());
  const Int most = data.label_count;
  EXPECT_EQ(most, 70 * 15 / 127);
  EXPECT_EQ(data.label_min, 0);
  std::map<Int, Int> starts, words, cells;
  for (Int i = 0; i < data.size(); ++i) {
    const Row row = RowOf(data, i);
    const auto first = std::find(row.begin(), row.end(), data.triggers[0]);
    const auto second = std::find(row.begin(), row.end(), data.triggers[1]);
    ASSERT_NE(first, row.end());
    ASSERT_NE(second, row.end());
    EXPECT_EQ(std::count(row.begin(), row.end(), data.triggers[0]), 1);
    EXPECT_EQ(std::count(row.begin(), row.end(), data.triggers[1]), 1);
    ASSERT_EQ(second - first, data.labels[i] + 1);
    ++starts[first - row.begin()];
    ++cells[(first - row.begin()) * 100 + data.labels[i]];
    for (const Int word : row) ++words[word];
  }
  ExpectUniform(Labels(data, 0, data.train_examples), most, data.train_examples);
  ExpectUniform(starts, 16 - most, data.size());
  ExpectUniform(cells, (16 - most) * most, data.size());  // start and distance are independent
  words.erase(data.triggers[0]);
  words.erase(data.triggers[1]);
  EXPECT_GE(words.begin()->first, kFirstWordId);
  EXPECT_LT(words.rbegin()->first, 40);
  ExpectUniform(words, 40 - kFirstWordId - 2, data.size() * 14);
}

TEST(PublishedDistance, FollowsTheAuthorsGenerator) {
  const Dataset data = Make("published", "distance",
                            {{"task.length", Int{64}},
                             {"model.max_len", Int{64}},
                             {"task.vocabulary", Int{80}},
                             {"task.train_examples", Int{6000}},
                             {"task.test_examples", Int{2000}}});
  const Int most_gap = 70 * 63 / 127, segment = 25 * 64 / 128, truncate = 120 * 64 / 128;
  EXPECT_EQ(data.label_min, 2);
  EXPECT_EQ(data.label_count, most_gap);
  EXPECT_TRUE(data.HasPadding());
  std::set<Row> seen;
  bool ambiguous = false;
  for (Int i = 0; i < data.size(); ++i) {
    const Row row = RowOf(data, i);
    EXPECT_TRUE(seen.insert(row).second) << "example " << i << " repeats";
    for (Int t = data.lengths[i]; t < data.length; ++t) {
      ASSERT_EQ(data.tokens[i * data.length + t], kPadId);
    }
    const Int gap = data.labels[i] - 1;
    ASSERT_LE(data.lengths[i], truncate);
    const auto distinct = [&](Int begin, Int end) {
      return static_cast<Int>(std::set<Int>(row.begin() + begin, row.begin() + end).size()) ==
             end - begin;
    };
    // At some position there is the first trigger, the second one follows at the labeled distance,
    // the segments around them have an allowed length, and no word occurs twice in a segment.
    bool found = false;
    for (Int at = 1; at <= segment && at + gap + 1 < data.lengths[i]; ++at) {
      const Int rest = data.lengths[i] - at - gap - 2;
      found |= row[at] == data.triggers[0] && row[at + gap + 1] == data.triggers[1] && rest >= 1 &&
               rest <= segment && distinct(0, at) && distinct(at + 1, at + gap + 1) &&
               distinct(at + gap + 2, data.lengths[i]);
    }
    EXPECT_TRUE(found) << "example " << i;
    ambiguous |= std::count(row.begin(), row.end(), data.triggers[0]) > 1;
    for (const Int word : row) ASSERT_TRUE(word >= kFirstWordId && word < 80);
  }
  EXPECT_TRUE(ambiguous) << "triggers recur as distractors";
  ExpectUniform(Labels(data, 0, data.size()), most_gap, data.size());
}

TEST(Counting, LabelIsTheNumberOfTriggers) {
  for (const char* protocol : {"clean", "published"}) {
    SCOPED_TRACE(protocol);
    const Dataset data = Make(protocol, "counting", {{"task.train_examples", Int{10000}}});
    const std::set<Int> triggers(data.triggers.begin(), data.triggers.end());
    ASSERT_EQ(triggers.size(), 6u);
    const Int content = std::string(protocol) == "clean" ? 16 : 15;
    std::map<Int, Int> words;
    Int total = 0;
    for (Int i = 0; i < data.size(); ++i) {
      ASSERT_EQ(data.lengths[i], content);
      Int count = 0;
      for (const Int word : RowOf(data, i)) {
        if (triggers.count(word) == 0) continue;
        ++count;
        ++words[word];
      }
      ASSERT_EQ(count, data.labels[i]);
      total += count;
    }
    EXPECT_EQ(data.label_min, 0);
    EXPECT_EQ(data.label_count, 100 * 16 / 128 + 1);
    ExpectUniform(Labels(data, 0, data.size()), data.label_count, data.size());
    ExpectUniform(words, 6, total);
  }
}

// All positions are equally likely. There is one trigger per sequence, so that the positions are
// independent.
TEST(Counting, TriggersStandAnywhere) {
  const Dataset data =
      Make("clean", "counting", {{"task.train_examples", Int{20000}}, {"task.max_count", Int{1}}});
  const std::set<Int> triggers(data.triggers.begin(), data.triggers.end());
  std::map<Int, Int> places;
  Int total = 0;
  for (Int i = 0; i < data.size(); ++i) {
    const Row row = RowOf(data, i);
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (triggers.count(row[t]) != 0) ++places[static_cast<Int>(t)], ++total;
    }
  }
  ExpectUniform(places, 16, total);
}

TEST(Data, DisjointTestSetHasNoTrainingSequence) {
  // So few possible sequences that a carelessly drawn test set would overlap: 2 * 2 * 5^2 = 100 and
  // 120 draws.
  const Dataset data = Make("clean", "distance",
                            {{"task.length", Int{4}},
                             {"task.max_distance", Int{2}},
                             {"task.vocabulary", Int{12}},
                             {"task.train_examples", Int{60}},
                             {"task.test_examples", Int{60}}});
  std::set<Row> train;
  for (Int i = 0; i < data.train_examples; ++i) train.insert(RowOf(data, i));
  EXPECT_LT(train.size(), 60u) << "the training set may repeat itself";
  for (Int i = data.train_examples; i < data.size(); ++i) {
    EXPECT_EQ(train.count(RowOf(data, i)), 0u) << "test example " << i;
  }
}

std::string Refusal(std::string_view protocol, std::string_view task, const catalog::Values& set) {
  try {
    Make(protocol, task, set);
  } catch (const TrainerError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadSpec);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Data, TooFewDifferentSequencesAreAnError) {
  EXPECT_THAT(Refusal("clean", "distance",
                      {{"task.length", Int{3}},
                       {"task.max_distance", Int{2}},
                       {"task.vocabulary", Int{8}},
                       {"task.train_examples", Int{500}}}),
              testing::HasSubstr("too few different sequences"));
}

TEST(Data, FieldsThatContradictAreRefusedHereToo) {
  using testing::HasSubstr;
  EXPECT_THAT(Refusal("clean", "distance", {{"task.length", Int{17}}}),
              HasSubstr("exceeds model.max_len 16"));
  EXPECT_THAT(Refusal("clean", "distance", {{"task.max_distance", Int{16}}}),
              HasSubstr("task.max_distance 16"));
  EXPECT_THAT(Refusal("clean", "counting", {{"task.max_count", Int{17}}}),
              HasSubstr("task.max_count 17"));
  EXPECT_THAT(Refusal("clean", "counting", {{"task.triggers", Int{35}}}),
              HasSubstr("holds 35 words"));
  EXPECT_THAT(Refusal("published", "distance", {{"task.vocabulary", Int{11}}}),
              HasSubstr("task.vocabulary 11"));
  EXPECT_THAT(Refusal("published", "counting", {{"task.content_length", Int{20}}}),
              HasSubstr("task.content_length 20"));
}

TEST(Data, DependsOnTheDataSeedAloneAndNotOnTheThread) {
  const auto hash = [](Int data_seed, Int seed) {
    experiment::Job job = SmallJob("clean", "rope", "distance", {{"task.data_seed", data_seed}});
    job.seed = seed;
    return DatasetSha256(MakeDataset(job));
  };
  const std::string reference = hash(1, 1);
  EXPECT_EQ(hash(1, 2), reference);
  EXPECT_NE(hash(2, 1), reference);
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (auto& slot : found) threads.emplace_back([&slot, &hash] { slot = hash(1, 1); });
  for (auto& thread : threads) thread.join();
  for (const auto& text : found) EXPECT_EQ(text, reference);
}

TEST(LabelSpace, MapsLabelsToClasses) {
  const auto space = [](std::string_view protocol, std::string_view task,
                        const catalog::Values& set = {}) {
    const experiment::Job job = SmallJob(protocol, "nope", task, set);
    return LabelSpaceOf(job, MakeDataset(job));
  };
  const LabelSpace clean = space("clean", "distance");
  EXPECT_EQ(clean.classes, 70 * 15 / 127);
  EXPECT_EQ(clean.offset, 0);
  EXPECT_TRUE(clean.score_zero);
  const LabelSpace published = space("published", "distance");
  EXPECT_EQ(published.classes, 40);
  EXPECT_EQ(published.offset, 0);
  EXPECT_FALSE(published.score_zero);
  const LabelSpace exact =
      space("published", "distance", {{"task.label_space", std::string("exact")}});
  EXPECT_EQ(exact.classes, 70 * 15 / 127);
  EXPECT_EQ(exact.offset, 2);
  EXPECT_EQ(space("clean", "counting").classes, 13);
}

TEST(LabelSpace, LabelWithoutAClassIsRefused) {
  const experiment::Job job = SmallJob("published", "nope", "distance");
  Dataset data = MakeDataset(job);
  EXPECT_NO_THROW(LabelSpaceOf(job, data));
  data.label_count = 40;  // labels 2 … 41 of 40 classes
  EXPECT_THROW(LabelSpaceOf(job, data), TrainerError);
}

}  // namespace
}  // namespace pelab::trainer
