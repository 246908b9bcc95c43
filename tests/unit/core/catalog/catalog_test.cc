// The catalog's tables are data. These tests check what the rest of the program needs of every row,
// and the values that the paper fixes.
#include "core/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::catalog {
namespace {

using experiment::Job;
using experiment::MakeJob;
using testing::ElementsAre;

struct DefaultJob {
  std::string protocol;
  Job job;
};

std::vector<DefaultJob> EveryDefaultJob() {
  std::vector<DefaultJob> jobs;
  for (const Entry& protocol : Protocols()) {
    for (const Entry& pe : Pes()) {
      for (const Entry& task : Tasks()) {
        jobs.push_back({std::string(protocol.name), MakeJob(protocol.name, pe.name, task.name, 3)});
      }
    }
  }
  return jobs;
}

TEST(Entries, NamesAreUniqueAcrossKindsAndDescribed) {
  std::set<std::string_view> names;
  for (const auto* entries : {&Pes(), &Tasks(), &Protocols(), &Analyses()}) {
    for (const Entry& entry : *entries) {
      EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
      EXPECT_FALSE(entry.help.empty()) << entry.name;
      EXPECT_FALSE(entry.source.empty()) << entry.name;
      EXPECT_EQ(entry.version > 0, entries != &Protocols()) << entry.name;
    }
  }
}

TEST(Entries, HoldThoseOfThePaper) {
  for (const char* pe : {"nope", "absolute", "random", "relative", "alibi", "rope", "mla"}) {
    ASSERT_NE(FindPe(pe), nullptr) << pe;
    EXPECT_EQ(FindPe(pe)->version, 1) << pe << ": another version is another key of every job";
  }
  EXPECT_NE(FindTask("distance"), nullptr);
  EXPECT_NE(FindTask("counting"), nullptr);
  EXPECT_EQ(FindAnalysis("head_ablation")->version, 2);
  EXPECT_EQ(FindAnalysis("layer_ablation")->version, 1);
  EXPECT_EQ(FindAnalysis("cumulative_ablation")->version, 1);
  EXPECT_EQ(FindPe("distance"), nullptr);
}

TEST(Fields, RowsAreWellFormed) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::map<std::string_view, FieldType> types;
  for (const Field& field : Fields()) {
    SCOPED_TRACE(std::string(field.name) + " of " + std::string(field.owner));
    EXPECT_TRUE(seen.emplace(field.name, field.owner).second);
    EXPECT_NE(field.name.find('.'), std::string_view::npos);
    EXPECT_FALSE(field.help.empty());
    EXPECT_EQ(field.help.find('\n'), std::string_view::npos);
    const bool is_choice = field.type == FieldType::kChoice || field.type == FieldType::kChoiceSet;
    EXPECT_EQ(is_choice, !field.choices.empty());
    EXPECT_TRUE(field.owner.empty() || FindPe(field.owner) || FindTask(field.owner) ||
                FindAnalysis(field.owner));
    EXPECT_EQ(types.emplace(field.name, field.type).first->second, field.type)
        << "fields of one name have one type";
    EXPECT_TRUE(field.derived_default != nullptr || !field.defaults.empty());
    if (field.derived_default == nullptr) {
      const DefaultRule& last = field.defaults.back();
      EXPECT_TRUE(last.protocol.empty() && last.pe.empty() && last.task.empty());
    }
    for (const DefaultRule& rule : field.defaults) {
      EXPECT_EQ(CheckValue(field, rule.value), "") << ToText(rule.value);
      EXPECT_TRUE(rule.protocol.empty() || FindProtocol(rule.protocol)) << rule.protocol;
      EXPECT_TRUE(rule.pe.empty() || FindPe(rule.pe)) << rule.pe;
      EXPECT_TRUE(rule.task.empty() || FindTask(rule.task)) << rule.task;
    }
  }
}

TEST(Fields, ConditionsNameAnEarlierChoice) {
  for (std::size_t i = 0; i < Fields().size(); ++i) {
    const Field& field = Fields()[i];
    if (!field.applies_when) continue;
    const auto is_decider = [&](const Field& other) {
      return other.name == field.applies_when->field &&
             (other.owner.empty() || other.owner == field.owner || field.applies_when->unless);
    };
    const auto end = Fields().begin() + static_cast<std::ptrdiff_t>(i);
    const auto decider = std::find_if(Fields().begin(), end, is_decider);
    ASSERT_NE(decider, end) << field.name;
    const Condition& when = *field.applies_when;
    EXPECT_EQ(std::count_if(decider->choices.begin(), decider->choices.end(),
                            [&](std::string_view choice) { return when.Names(choice); }),
              when.or_choice.empty() ? 1 : 2);
  }
}

TEST(Fields, EveryDefaultJobIsValidAndCarriesItsProtocolsName) {
  for (const auto& [protocol, job] : EveryDefaultJob()) {
    SCOPED_TRACE(job.pe + " x " + job.task + " " + protocol);
    std::vector<std::string> messages;
    for (const experiment::Violation& violation : experiment::CheckJob(job)) {
      messages.push_back(violation.message);
    }
    // The published protocol has no mask, so it excludes encodings that need one.
    if (!FindPe(job.pe)->causal_because.empty() && protocol == "published") {
      EXPECT_THAT(messages, ElementsAre(testing::HasSubstr("(constraint causal-only)")));
    } else {
      EXPECT_THAT(messages, testing::IsEmpty());
    }
    EXPECT_EQ(ProtocolLabel(job.pe, job.task, job.values), protocol);
  }
}

TEST(Fields, FindFieldNeedsTheOwner) {
  ASSERT_NE(FindField("pe.base", "rope"), nullptr);
  EXPECT_EQ(FindField("pe.base", "nope"), nullptr);
  EXPECT_EQ(FindField("pe.base", ""), nullptr);
  EXPECT_NE(FindField("task.length", "counting"), nullptr);
  EXPECT_NE(FindField("model.layers", "rope"), nullptr);
  ASSERT_NE(FindField("pe.form", "relative"), nullptr);
  EXPECT_THAT(FindField("pe.form", "relative")->choices, ElementsAre("t5", "table"));
  EXPECT_THAT(FindField("pe.form", "absolute")->choices, ElementsAre("sinusoidal", "learned"));
}

TEST(Defaults, PaperRecipe) {
  const Job job = MakeJob("clean", "rope", "distance", 5);
  EXPECT_EQ(job.Int("model.layers"), 6);
  EXPECT_EQ(job.Int("model.heads"), 16);
  EXPECT_EQ(job.Int("model.d_model"), 256);
  EXPECT_EQ(job.Int("model.d_ff"), 512);
  EXPECT_EQ(job.Real("model.dropout"), 0.1);
  EXPECT_EQ(job.Real("train.lr"), 1e-4);
  EXPECT_EQ(job.Real("train.beta1"), 0.98);
  EXPECT_EQ(job.Real("train.beta2"), 0.9);
  EXPECT_EQ(job.Real("train.warmup_fraction"), 0.06);
  EXPECT_EQ(job.Int("train.batch_size"), 512);
  EXPECT_EQ(job.Int("train.epochs"), 100);
  EXPECT_EQ(job.Int("task.vocabulary"), 574);
  EXPECT_EQ(job.Int("task.max_distance"), 70);
  EXPECT_EQ(job.Int("task.data_seed"), 5);
  EXPECT_EQ(job.Real("pe.base"), 10000);
  EXPECT_TRUE(job.Has("model.dropout_sites", "ffn"));
  EXPECT_FALSE(job.Has("model.dropout_sites", "ffn_inner"));
  EXPECT_FALSE(job.HasField("task.max_gap"));
}

TEST(Defaults, DependOnTaskAndProtocol) {
  EXPECT_EQ(MakeJob("clean", "rope", "counting", 0).Int("train.epochs"), 150);
  EXPECT_EQ(MakeJob("published", "rope", "counting", 0).Int("train.epochs"), 100);
  EXPECT_EQ(MakeJob("clean", "rope", "counting", 0).Int("task.max_count"), 100);
  EXPECT_EQ(MakeJob("clean", "rope", "counting", 0).Int("task.train_examples"), 35000);
  const Job published = MakeJob("published", "relative", "distance", 0);
  EXPECT_EQ(published.Choice("model.mask"), "none");
  EXPECT_EQ(published.Choice("model.key_padding"), "attended");
  EXPECT_EQ(published.Choice("model.kv_source"), "input");
  EXPECT_EQ(published.Choice("model.readout"), "mean");
  EXPECT_FALSE(published.Bool("model.final_norm"));
  EXPECT_EQ(published.Choice("task.label_space"), "vocabulary");
  EXPECT_EQ(published.Choice("task.scored_classes"), "nonzero");
  EXPECT_EQ(published.Choice("task.split"), "random");
  EXPECT_EQ(published.Int("task.max_segment"), 25);
  EXPECT_EQ(published.Int("task.max_gap"), 70);
  EXPECT_EQ(published.Int("task.truncate"), 120);
  EXPECT_EQ(published.Choice("pe.form"), "table");
  EXPECT_FALSE(published.HasField("pe.buckets"));
  EXPECT_TRUE(MakeJob("published", "random", "distance", 0).Bool("pe.trainable"));
  EXPECT_TRUE(MakeJob("published", "rope", "distance", 0).Bool("pe.input_sinusoid"));
  EXPECT_EQ(MakeJob("published", "alibi", "distance", 0).Choice("pe.slopes"), "exponential");
  EXPECT_EQ(MakeJob("published", "nope", "counting", 0).Int("task.content_length"), 120);
}

TEST(Defaults, SizesScaleWithLength) {
  const Job job = MakeJob("clean", "rope", "distance", 0, {{"task.length", std::int64_t{32}}});
  EXPECT_EQ(job.Int("task.max_distance"), 17);  // floor(70 * 31 / 127)
  EXPECT_EQ(MakeJob("clean", "rope", "counting", 0, {{"task.length", std::int64_t{32}}})
                .Int("task.max_count"),
            25);
}

TEST(Defaults, OfTheLaterPes) {
  const Job shaw = MakeJob("clean", "shaw", "distance", 0, {{"model.max_len", std::int64_t{64}}});
  EXPECT_EQ(shaw.Int("pe.max_distance"), 63);
  EXPECT_FALSE(shaw.Bool("pe.values"));
  EXPECT_EQ(shaw.Real("pe.init_std"), 0.02);
  const Job xpos = MakeJob("clean", "xpos", "distance", 0);
  EXPECT_EQ(xpos.Real("pe.base"), 10000);
  EXPECT_EQ(xpos.Real("pe.scale_base"), 512);
  const Job partial = MakeJob("clean", "partial_rope", "distance", 0);
  EXPECT_EQ(partial.Choice("pe.select"), "first");
  EXPECT_EQ(partial.Int("pe.heads"), 1);
  EXPECT_FALSE(partial.HasField("pe.head_list"));
  const Job listed = MakeJob(
      "clean", "partial_rope", "distance", 0,
      {{"pe.select", std::string("list")}, {"pe.head_list", std::vector<std::int64_t>{0, 5}}});
  EXPECT_THAT(listed.Ints("pe.head_list"), ElementsAre(0, 5));
  EXPECT_FALSE(listed.HasField("pe.heads"));
  const Job mla = MakeJob("clean", "mla", "distance", 0);
  EXPECT_EQ(mla.Int("pe.latent"), 128);
  EXPECT_EQ(mla.Int("pe.rotary"), 16);
  EXPECT_EQ(mla.Real("pe.base"), 10000);
  const Job narrow =
      MakeJob("clean", "mla", "distance", 0,
              {{"model.d_model", std::int64_t{64}}, {"model.heads", std::int64_t{4}}});
  EXPECT_EQ(narrow.Int("pe.latent"), 32);
  EXPECT_EQ(narrow.Int("pe.rotary"), 16);
}

TEST(Defaults, HeldOutFractionBelongsToItsSplit) {
  EXPECT_FALSE(MakeJob("clean", "rope", "distance", 0).HasField("task.held_out_fraction"));
  const Job job =
      MakeJob("clean", "rope", "distance", 0, {{"task.split", std::string("held_out_cells")}});
  EXPECT_EQ(job.Real("task.held_out_fraction"), 0.3);
}

TEST(WhyNoField, MlaHasNoTableOfBiases) {
  for (const char* field :
       {"pe.form", "pe.buckets", "pe.max_distance", "pe.init_std", "pe.slopes", "pe.values"}) {
    EXPECT_THAT(WhyNoField("mla", field), testing::HasSubstr("(constraint mla-no-bias)")) << field;
    EXPECT_EQ(WhyNoField("rope", field), "") << field;
  }
  EXPECT_THAT(WhyNoField("mla", "pe.slopes"), testing::HasSubstr("pe: alibi"));
  EXPECT_EQ(WhyNoField("mla", "pe.latent"), "");
  EXPECT_EQ(WhyNoField("mla", "pe.scale_base"), "") << "no bias";
  EXPECT_EQ(WhyNoField("mla", "pe.unheard_of"), "");
}

TEST(ProtocolLabel, OneSwitchMakesItCustomAndSizesDoNot) {
  Values set = {
      {"model.layers", std::int64_t{2}}, {"train.lr", 1e-3}, {"task.length", std::int64_t{64}}};
  Job job = MakeJob("published", "rope", "distance", 0, set);
  EXPECT_EQ(ProtocolLabel(job.pe, job.task, job.values), "published");
  set["model.mask"] = std::string("causal");
  job = MakeJob("published", "rope", "distance", 0, set);
  EXPECT_EQ(ProtocolLabel(job.pe, job.task, job.values), "custom");
}

// A job of `clean` with the betas of `matched` keeps the name `clean`, as it always had. `matched`
// requires its betas.
TEST(ProtocolLabel, BetasTellMatchedApartAndLeaveTheOthersTheirNames) {
  const auto label = [](const char* protocol, const Values& set) {
    const Job job = MakeJob(protocol, "rope", "distance", 0, set);
    return ProtocolLabel(job.pe, job.task, job.values);
  };
  const Values usual = {{"train.beta1", 0.9}, {"train.beta2", 0.999}};
  const Values authors = {{"train.beta1", 0.98}, {"train.beta2", 0.9}};
  EXPECT_EQ(label("clean", usual), "clean");
  EXPECT_EQ(label("published", usual), "published");
  EXPECT_EQ(label("matched", authors), "custom");
  EXPECT_EQ(label("matched", {{"train.beta2", 0.98}}), "custom");
  Values both = usual;
  both["model.readout"] = std::string("last");
  EXPECT_EQ(label("clean", both), "matched") << "the same job under another name";
  EXPECT_EQ(label("clean", {{"model.readout", std::string("last")}}), "custom");
}

TEST(ProtocolLabel, EverySwitchDecides) {
  for (const auto& [protocol, job] : EveryDefaultJob()) {
    for (const Field& field : Fields()) {
      if (!field.is_switch || !job.HasField(field.name) ||
          !Applies(field, job.pe, job.task, WithCoordinates(job))) {
        continue;
      }
      Values set = {};
      const Value& now = job.values.at(std::string(field.name));
      if (field.type == FieldType::kBool) {
        set[std::string(field.name)] = !std::get<bool>(now);
      } else if (field.type == FieldType::kChoice) {
        // With masked_mean and the usual betas it would be a job of `clean`.
        const bool mean = protocol == "matched" && field.name == "model.readout";
        set[std::string(field.name)] =
            std::string(mean || field.choices[0] == std::get<std::string>(now) ? field.choices[1]
                                                                               : field.choices[0]);
      } else {
        set[std::string(field.name)] = std::vector<std::string>{};
      }
      const Job changed = MakeJob(protocol, job.pe, job.task, 0, set);
      EXPECT_EQ(ProtocolLabel(job.pe, job.task, changed.values), "custom")
          << field.name << " of " << job.pe;
    }
  }
}

TEST(CheckValue, RangesAndTypes) {
  const Field& layers = *FindField("model.layers", "");
  EXPECT_EQ(CheckValue(layers, std::int64_t{1}), "");
  EXPECT_EQ(CheckValue(layers, std::int64_t{64}), "");
  EXPECT_EQ(CheckValue(layers, std::int64_t{0}), "an integer from 1 to 64");
  EXPECT_NE(CheckValue(layers, std::int64_t{65}), "");
  EXPECT_NE(CheckValue(layers, 6.0), "") << "a real is no integer";
  const Field& dropout = *FindField("model.dropout", "");
  EXPECT_EQ(CheckValue(dropout, 0.0), "");
  EXPECT_EQ(CheckValue(dropout, 1.0), "a number at least 0 and below 1");
  EXPECT_NE(CheckValue(dropout, std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(CheckValue(*FindField("train.lr", ""), 0.0), "a number above 0 and at most 1000");
  EXPECT_NE(CheckValue(*FindField("train.lr", ""), std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(CheckValue(*FindField("model.mask", ""), std::string("both")), "one of causal, none");
}

TEST(CheckValue, SetsAreOrderedAndWithoutRepeats) {
  using Set = std::vector<std::string>;
  const Field& sites = *FindField("model.dropout_sites", "");
  EXPECT_EQ(CheckValue(sites, Set{}), "");
  EXPECT_EQ(CheckValue(sites, Set{"attention", "ffn"}), "");
  EXPECT_NE(CheckValue(sites, Set{"ffn", "attention"}), "");
  EXPECT_NE(CheckValue(sites, Set{"ffn", "ffn"}), "");
  EXPECT_NE(CheckValue(sites, Set{"elsewhere"}), "");
}

TEST(CheckValue, SetsOfIntegersAreAscendingAndWithoutRepeats) {
  using Set = std::vector<std::int64_t>;
  const Field& heads = *FindField("pe.head_list", "partial_rope");
  EXPECT_EQ(CheckValue(heads, Set{}), "");
  EXPECT_EQ(CheckValue(heads, Set{0, 5, 127}), "");
  EXPECT_EQ(CheckValue(heads, Set{5, 0}), "a list of integers from 0 to 127, each at most once");
  EXPECT_NE(CheckValue(heads, Set{5, 5}), "");
  EXPECT_NE(CheckValue(heads, Set{128}), "");
  EXPECT_NE(CheckValue(heads, Set{-1}), "");
  EXPECT_NE(CheckValue(heads, std::vector<std::string>{"0"}), "");
  EXPECT_NE(CheckValue(*FindField("model.dropout_sites", ""), Set{0}), "");
}

double FromBits(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// RFC 8785, appendix B.
TEST(NumberToText, Rfc8785Vectors) {
  const std::vector<std::pair<std::uint64_t, std::string>> vectors = {
      {0x0000000000000000, "0"},
      {0x8000000000000000, "0"},
      {0x0000000000000001, "5e-324"},
      {0x8000000000000001, "-5e-324"},
      {0x7fefffffffffffff, "1.7976931348623157e+308"},
      {0xffefffffffffffff, "-1.7976931348623157e+308"},
      {0x4340000000000000, "9007199254740992"},
      {0xc340000000000000, "-9007199254740992"},
      {0x4430000000000000, "295147905179352830000"},
      {0x44b52d02c7e14af5, "9.999999999999997e+22"},
      {0x44b52d02c7e14af6, "1e+23"},
      {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
      {0x444b1ae4d6e2ef4e, "999999999999999700000"},
      {0x444b1ae4d6e2ef4f, "999999999999999900000"},
      {0x444b1ae4d6e2ef50, "1e+21"},
      {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
      {0x3eb0c6f7a0b5ed8d, "0.000001"},
      {0x41b3de4355555553, "333333333.3333332"},
      {0x41b3de4355555554, "333333333.33333325"},
      {0x41b3de4355555555, "333333333.3333333"},
      {0x41b3de4355555556, "333333333.3333334"},
      {0x41b3de4355555557, "333333333.33333343"},
      {0xbecbf647612f3696, "-0.0000033333333333333333"},
      {0x43143ff3c1cb0959, "1424953923781206.2"},
  };
  for (const auto& [bits, text] : vectors) EXPECT_EQ(NumberToText(FromBits(bits)), text);
}

TEST(NumberToText, ValuesOfTheCatalog) {
  EXPECT_EQ(NumberToText(1e-8), "1e-8");
  EXPECT_EQ(NumberToText(1e-5), "0.00001");
  EXPECT_EQ(NumberToText(1e21), "1e+21");
  EXPECT_EQ(NumberToText(10000), "10000");
  EXPECT_EQ(NumberToText(0.1), "0.1");
  EXPECT_EQ(NumberToText(123.456), "123.456");
}

TEST(DidYouMean, NearAndFar) {
  const std::vector<std::string_view> known = {"absolute", "alibi", "nope", "rope"};
  EXPECT_EQ(DidYouMean("alibbi", known), "alibi");
  EXPECT_EQ(DidYouMean("absolut", known), "absolute");
  EXPECT_EQ(DidYouMean("xyz", known), "");
  EXPECT_EQ(DidYouMean("", known), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'a'), known), "");
}

TEST(ToText, EveryType) {
  EXPECT_EQ(ToText(true), "true");
  EXPECT_EQ(ToText(std::int64_t{-3}), "-3");
  EXPECT_EQ(ToText(0.5), "0.5");
  EXPECT_EQ(ToText(std::string("causal")), "causal");
  EXPECT_EQ(ToText(std::vector<std::string>{"a", "b"}), "[a, b]");
  EXPECT_EQ(ToText(std::vector<std::int64_t>{0, 5}), "[0, 5]");
  EXPECT_EQ(ToText(std::vector<std::int64_t>{}), "[]");
}

}  // namespace
}  // namespace pelab::catalog
