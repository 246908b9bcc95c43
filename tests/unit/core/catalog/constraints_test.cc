// Each constraint: a job that breaks only this one, and the same job just inside the bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::catalog {
namespace {

using testing::HasSubstr;

Value I(std::int64_t value) { return value; }
Value L(std::vector<std::int64_t> values) { return values; }
Value S(const char* value) { return std::string(value); }

struct Case {
  const char* name;
  const char* pe;
  const char* task;
  const char* protocol;
  Values broken;
  Values mended;          // applied on top of `broken`
  const char* violation;  // part of the message
};

void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"heads-divide-width",
       "nope",
       "distance",
       "clean",
       {{"model.d_model", I(100)}},
       {{"model.heads", I(10)}},
       "model.d_model is 100; it must be a multiple of model.heads (16)"},
      {"even-head-size",
       "rope",
       "distance",
       "clean",
       {{"model.d_model", I(48)}},
       {{"model.heads", I(8)}},
       "model.d_model is 48; it must be an even multiple of model.heads (16)"},
      {"even-width",
       "absolute",
       "distance",
       "clean",
       {{"model.d_model", I(33)}, {"model.heads", I(3)}},
       {{"model.heads", I(3)}, {"pe.form", S("learned")}},
       "model.d_model is 33; it must be even"},
      {"even-head-size",
       "xpos",
       "distance",
       "clean",
       {{"model.d_model", I(48)}},
       {{"model.heads", I(8)}},
       "xpos rotates pairs of channels"},
      {"even-head-size",
       "partial_rope",
       "distance",
       "clean",
       {{"model.d_model", I(48)}},
       {{"model.heads", I(8)}},
       "partial_rope rotates pairs of channels"},
      {"even-head-size",
       "rope_abs",
       "distance",
       "clean",
       {{"model.d_model", I(48)}},
       {{"model.heads", I(8)}},
       "rope_abs rotates pairs of channels"},
      {"even-rotary",
       "mla",
       "distance",
       "clean",
       {{"pe.rotary", I(7)}},
       {{"pe.rotary", I(6)}},
       "pe.rotary is 7; it must be even: rotary channels go in pairs"},
      {"even-rotary",
       "mla",
       "distance",
       "published",
       {{"model.d_model", I(48)}},
       {{"pe.rotary", I(2)}},
       "pe.rotary is 3; it must be even: rotary channels go in pairs; the default is the head "
       "size"},
      {"causal-only",
       "xpos",
       "distance",
       "clean",
       {{"model.mask", S("none")}},
       {{"model.mask", S("causal")}},
       "model.mask is none; it must be causal: the scales of xpos"},
      {"scales-fit",
       "xpos",
       "distance",
       "clean",
       {{"pe.scale_base", 1.9}},
       {{"pe.scale_base", 2.0}},
       "pe.scale_base is 1.9; it must be at least 2, a 64th of model.max_len (128)"},
      {"heads-exist",
       "partial_rope",
       "distance",
       "clean",
       {{"pe.heads", I(17)}},
       {{"pe.heads", I(16)}},
       "pe.heads is 17; it must be at most model.heads (16)"},
      {"listed-heads-exist",
       "partial_rope",
       "distance",
       "published",
       {{"pe.select", S("list")}, {"pe.head_list", L({0, 16})}},
       {{"pe.head_list", L({0, 15})}},
       "pe.head_list is [0, 16]; it must be made of heads from 0 to 15, as model.heads (16)"},
      {"heads-listed",
       "partial_rope",
       "distance",
       "clean",
       {{"pe.select", S("list")}},
       {{"pe.head_list", L({3})}},
       "pe.head_list is []; it must be a list of at least one head: pe.select is list"},
      {"held-out-distance",
       "nope",
       "counting",
       "clean",
       {{"task.split", S("held_out_cells")}},
       {{"task.split", S("random")}},
       "task.split is held_out_cells; it must be disjoint or random: only the task distance has"},
      {"held-out-starts",
       "nope",
       "distance",
       "clean",
       {{"task.split", S("held_out_cells")}, {"task.max_distance", I(127)}},
       {{"task.max_distance", I(126)}},
       "here there is 1 with task.length (128) and task.max_distance (127)"},
      {"held-out-starts",
       "nope",
       "distance",
       "published",
       {{"task.split", S("held_out_cells")}, {"task.max_segment", I(1)}},
       {{"task.max_segment", I(2)}},
       "here there is 1 with task.max_segment (1)"},
      {"length-fits-model",
       "nope",
       "counting",
       "clean",
       {{"task.length", I(129)}},
       {{"model.max_len", I(129)}},
       "task.length is 129; it must be at most model.max_len (128)"},
      {"distance-fits",
       "nope",
       "distance",
       "clean",
       {{"task.length", I(16)}, {"task.max_distance", I(16)}},
       {{"task.max_distance", I(15)}},
       "task.length is 16; it must be at least 17: the sequence is too short"},
      {"truncate-fits",
       "nope",
       "distance",
       "published",
       {{"task.truncate", I(129)}},
       {{"task.truncate", I(128)}},
       "task.truncate is 129; it must be at most task.length (128)"},
      {"triggers-survive",
       "nope",
       "distance",
       "published",
       {{"task.truncate", I(96)}},
       {{"task.truncate", I(97)}},
       "task.truncate is 96; it must be at least 97"},
      {"content-fits",
       "nope",
       "counting",
       "published",
       {{"task.content_length", I(129)}},
       {{"task.content_length", I(128)}},
       "task.content_length is 129; it must be at most task.length (128)"},
      {"count-fits",
       "nope",
       "counting",
       "clean",
       {{"task.max_count", I(129)}},
       {{"task.max_count", I(128)}},
       "task.max_count is 129; it must be at most task.length (128)"},
      {"triggers-fit",
       "nope",
       "counting",
       "clean",
       {{"task.triggers", I(569)}},
       {{"task.triggers", I(500)}},
       "task.vocabulary is 574; it must be at least 575"},
      {"segments-fit",
       "nope",
       "distance",
       "published",
       {{"task.vocabulary", I(74)}},
       {{"task.vocabulary", I(75)}},
       "task.vocabulary is 74; it must be at least 75"},
      {"labels-fit",
       "nope",
       "counting",
       "clean",
       {{"task.vocabulary", I(100)}, {"task.label_space", S("vocabulary")}},
       {{"task.vocabulary", I(101)}},
       "task.vocabulary is 100; it must be at least 101"},
      {"enough-sequences",
       "nope",
       "distance",
       "clean",
       {{"task.length", I(4)}, {"task.max_distance", I(3)}, {"task.vocabulary", I(10)}},
       {{"task.train_examples", I(1)}, {"task.test_examples", I(1)}},
       "task.train_examples is 70000; it must be at most 0 beside task.test_examples (30000)"},
      {"enough-sequences",
       "nope",
       "counting",
       "clean",
       {{"task.vocabulary", I(36)}},
       {{"task.vocabulary", I(37)}},
       "task.train_examples is 35000; it must be at most"},
      {"data-fits",
       "nope",
       "distance",
       "clean",
       {{"task.train_examples", I(200000000)}},
       {{"task.train_examples", I(100000000)}},
       "the data set may take 64 GiB"},
      {"state-fits",
       "nope",
       "distance",
       "clean",
       {{"model.d_model", I(8192)}, {"model.layers", I(64)}, {"train.batch_size", I(1)}},
       {{"model.layers", I(8)}},
       "the limit is 4294967296"},
      {"labels-are-ids",
       "nope",
       "own",
       "clean",
       {{"task.first_label", I(-1)}, {"task.label_space", S("vocabulary")}},
       {{"task.first_label", I(0)}},
       "task.first_label (-1) is no token id"},
      {"step-fits",
       "nope",
       "distance",
       "clean",
       {{"train.batch_size", I(65536)}},
       {{"train.batch_size", I(32768)}},
       "1024 GiB of activations"},
      {"state-fits",
       "mla",
       "distance",
       "clean",
       {{"model.d_model", I(8192)},
        {"pe.latent", I(8192)},
        {"model.layers", I(11)},
        {"train.batch_size", I(1)},
        {"pe.rotary", I(2)}},
       {{"pe.latent", I(512)}},
       "the limit is 4294967296"},
      {"state-fits",
       "mla",
       "distance",
       "clean",
       {{"model.d_model", I(4096)},
        {"model.heads", I(128)},
        {"pe.rotary", I(8192)},
        {"pe.latent", I(4096)},
        {"model.layers", I(1)},
        {"train.batch_size", I(1)}},
       {{"pe.rotary_query", S("shared")}},
       "the limit is 4294967296"},
      {"step-fits",
       "shaw",
       "distance",
       "clean",
       {{"model.max_len", I(8192)}, {"pe.values", true}, {"train.batch_size", I(8000)}},
       {{"pe.max_distance", I(127)}},
       "1024 GiB of activations"},
      {"step-fits",
       "mla",
       "distance",
       "clean",
       {{"model.heads", I(128)}, {"pe.rotary", I(8192)}, {"train.batch_size", I(512)}},
       {{"pe.rotary", I(2)}},
       "1024 GiB of activations"},
      {"buckets-split",
       "relative",
       "distance",
       "clean",
       {{"pe.buckets", I(31)}},
       {{"pe.buckets", I(30)}},
       "pe.buckets is 31; it must be even"},
      {"buckets-split",
       "relative",
       "distance",
       "clean",
       {{"pe.buckets", I(30)}, {"model.mask", S("none")}},
       {{"pe.buckets", I(28)}},
       "pe.buckets is 30; it must be a multiple of 4"},
      {"buckets-reach",
       "relative",
       "distance",
       "clean",
       {{"pe.max_distance", I(16)}},
       {{"pe.max_distance", I(17)}},
       "pe.max_distance is 16; it must be above 16"},
  };
  return cases;
}

class ConstraintTest : public testing::TestWithParam<Case> {};

std::vector<std::string> Messages(const Case& which, const Values& set) {
  std::vector<std::string> messages;
  for (const experiment::Violation& violation :
       experiment::CheckJob(experiment::MakeJob(which.protocol, which.pe, which.task, 0, set))) {
    messages.push_back(violation.message);
  }
  return messages;
}

TEST_P(ConstraintTest, BrokenIsToldAndMendedIsNot) {
  EXPECT_THAT(Messages(GetParam(), GetParam().broken),
              testing::ElementsAre(testing::AllOf(
                  HasSubstr(GetParam().violation),
                  testing::EndsWith(" (constraint " + std::string(GetParam().name) + ")"))));
  Values mended = GetParam().broken;
  for (const auto& [field, value] : GetParam().mended) mended[field] = value;
  EXPECT_THAT(Messages(GetParam(), mended), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, ConstraintTest, testing::ValuesIn(Cases()), [](const auto& which) {
  std::string name = std::to_string(which.index) + "_" + which.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(Constraints, EachHasACaseHereAndNamesRealFields) {
  std::set<std::string_view> tested;
  for (const Case& which : Cases()) tested.insert(which.name);
  const auto exists = [](std::string_view name) {
    for (const Field& field : Fields()) {
      if (field.name == name) return true;
    }
    return false;
  };
  std::set<std::string_view> names;
  for (const Constraint& constraint : Constraints()) {
    EXPECT_TRUE(names.insert(constraint.name).second) << constraint.name;
    EXPECT_FALSE(constraint.help.empty()) << constraint.name;
    EXPECT_EQ(tested.count(constraint.name), 1u) << constraint.name;
    EXPECT_TRUE(exists(constraint.field)) << constraint.name;
    for (const std::string_view other : constraint.others) EXPECT_TRUE(exists(other)) << other;
  }
}

// Every field at an end of its range, alone and together. A constraint may refuse the job, but must
// never overflow or trap.
TEST(Constraints, SurviveTheEndsOfEveryRange) {
  for (const Entry& protocol : Protocols()) {
    for (const Entry& pe : Pes()) {
      for (const Entry& task : Tasks()) {
        for (const bool high : {false, true}) {
          Values all;
          for (const Field& field : Fields()) {
            if (field.type != FieldType::kInt) continue;
            const Value end = static_cast<std::int64_t>(high ? field.max : field.min);
            all[std::string(field.name)] = end;
            experiment::CheckJob(experiment::MakeJob(protocol.name, pe.name, task.name, 0,
                                                     {{std::string(field.name), end}}));
          }
          experiment::CheckJob(experiment::MakeJob(protocol.name, pe.name, task.name, 0, all));
        }
      }
    }
  }
}

TEST(Constraints, TooShortForTheTask) {
  const auto violations = experiment::CheckJob(
      experiment::MakeJob("clean", "rope", "distance", 0, {{"task.length", I(2)}}));
  ASSERT_FALSE(violations.empty());
  EXPECT_THAT(violations[0].message,
              HasSubstr("task.length is 2; it must be at least 3: the sequence is too short"));
  EXPECT_EQ(violations[0].value, "2");
  EXPECT_EQ(violations[0].path, "task.length");
}

}  // namespace
}  // namespace pelab::catalog
