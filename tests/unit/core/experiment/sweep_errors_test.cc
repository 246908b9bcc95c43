// Error messages for bad documents: one row for each mistake, with the place and the text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> Complaints(const std::string& document,
                                    const std::vector<Override>& overrides = {}) {
  const SweepResult result = ParseSweep(document, overrides);
  EXPECT_EQ(result.sweep.has_value(), result.violations.empty());
  std::vector<std::string> complaints;
  for (const Violation& violation : result.violations)
    complaints.push_back(Format(violation, "s.yaml"));
  return complaints;
}

// The names in the order in which messages list them.
std::string Known(const std::vector<catalog::Entry>& entries) {
  std::set<std::string> names;
  for (const catalog::Entry& entry : entries) names.emplace(entry.name);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// `text` with <pes> and <protocols> replaced by the names in the catalog.
std::string Filled(std::string text) {
  for (const auto& [mark, names] :
       {std::pair<std::string, std::string>{"<pes>", Known(catalog::Pes())},
        {"<protocols>", Known(catalog::Protocols())}}) {
    const std::size_t at = text.find(mark);
    if (at != std::string::npos) text.replace(at, mark.size(), names);
  }
  return text;
}

struct Case {
  const char* name;
  // The third line of the document. name, pe and task are valid unless this line replaces them.
  const char* line;
  const char* complaint;  // the whole message, or its start if it ends in …
};

void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

class ComplaintTest : public testing::TestWithParam<Case> {};

TEST_P(ComplaintTest, NamesPlaceValueAndWhatIsAllowed) {
  const std::string line = GetParam().line;
  std::string document = "# a sweep\nname: a\n" + line + "\n";
  if (line.rfind("pe:", 0) != 0) document += "pe: rope\n";
  if (line.rfind("task:", 0) != 0) document += "task: distance\n";
  const std::vector<std::string> complaints = Complaints(document);
  std::string expected = Filled(GetParam().complaint);
  const std::string more = "…";
  if (expected.size() > more.size() && expected.substr(expected.size() - more.size()) == more) {
    expected.resize(expected.size() - more.size());
    EXPECT_THAT(complaints, ElementsAre(StartsWith(expected)));
  } else {
    EXPECT_THAT(complaints, ElementsAre(expected));
  }
}

const Case kCases[] = {
    {"UnknownPe", "pe: [nope, absolute, alibbi]",
     "s.yaml:3:22: unknown pe \"alibbi\"; did you mean alibi? known: <pes>"},
    {"UnknownPeFar", "pe: xyzzy",
     "s.yaml:3:5: unknown pe \"xyzzy\"; known: <pes>; one of your own is {name: own, file: "
     "mine.pt}"},
    {"UnknownTask", "task: distanse",
     "s.yaml:3:7: unknown task \"distanse\"; did you mean distance? known: counting, distance"},
    {"UnknownProtocol", "protocol: cleen",
     "s.yaml:3:11: unknown protocol \"cleen\"; did you mean clean? known: <protocols>"},
    {"ProtocolIsMap", "protocol: {name: clean}",
     "s.yaml:3:11: protocol must be one of <protocols> or a list of them, not a map"},
    {"ProtocolTwice", "protocol: [clean, published, clean]",
     "s.yaml:3:30: protocol clean is there twice"},
    {"NoProtocols", "protocol: []", "s.yaml:3:11: protocol is an empty list"},
    {"UnknownProtocolInList", "protocol: [clean, publishd]",
     "s.yaml:3:19: unknown protocol \"publishd\"; did you mean published? known: "
     "<protocols>"},
    {"ProtocolAxis", "axes: {protocol: [clean]}",
     "s.yaml:3:8: unknown field \"protocol\"; protocol is given at the top of the document"},
    {"CausalOnly", "pe: [xpos]\nmodel: {mask: none}",
     "s.yaml:4:15: model.mask is none; it must be causal: the scales of xpos grow without bound "
     "for keys after the query (constraint causal-only)"},
    {"CausalOnlyUnderPublished", "pe: [nope, xpos]\nprotocol: published",
     "s.yaml:3:12: model.mask is none; it must be causal: …"},
    {"CausalOnlyUnderOneOfTwo", "pe: xpos\nprotocol: [clean, published]",
     "s.yaml:3:5: under protocol published, model.mask is none; it must be causal: …"},
    {"HeadsBeyondTheModelsUnderBoth",
     "pe: {name: partial_rope, heads: 17}\nprotocol: [clean, published]",
     "s.yaml:3:33: pe.heads is 17; it must be at most model.heads (16) (constraint heads-exist)"},
    {"HeadsBeyondTheModels", "pe: {name: partial_rope, heads: [2, 17]}",
     "s.yaml:3:37: pe.heads is 17; it must be at most model.heads (16) (constraint heads-exist)"},
    {"ListedHeadBeyondTheModels", "pe: {name: partial_rope, select: list, head_list: [0, 16]}",
     "s.yaml:3:51: pe.head_list is [0, 16]; it must be made of heads from 0 to 15, as model.heads "
     "(16) has them (constraint listed-heads-exist)"},
    {"NoHeadsListed", "pe: {name: partial_rope, select: list}",
     "s.yaml:3:34: pe.head_list is []; it must be a list of at least one head: pe.select is list "
     "(constraint heads-listed)"},
    {"HeadsListedForNothing", "pe: {name: partial_rope, head_list: [0]}",
     "s.yaml:3:37: pe.head_list applies only where pe.select is list; here it is first"},
    {"HeadListedTwice", "pe: {name: partial_rope, select: list, head_list: [1, 1]}",
     "s.yaml:3:51: pe.head_list must be a list of integers from 0 to 127, each at most once, not "
     "a list"},
    {"HeadListOfText", "pe: {name: partial_rope, select: list, head_list: ['1']}",
     "s.yaml:3:51: pe.head_list must be a list of integers …"},
    {"HeadListIsNumber", "pe: {name: partial_rope, select: list, head_list: 3}",
     "s.yaml:3:51: pe.head_list must be a list of integers from 0 to 127, each at most once, not "
     "3"},
    {"MlaWithBuckets", "pe: {name: mla, buckets: 32}",
     "s.yaml:3:17: unknown field of pe mla \"buckets\"; known: base, input_table, latent, "
     "latent_norm, rotary, rotary_query, rotation; the logits of mla are a content and a rotary "
     "part, with no bias or table of distances added; write pe: relative for one (constraint "
     "mla-no-bias)"},
    {"MlaWithForm", "pe: [{name: mla, form: table}]", "s.yaml:3:18: unknown field of pe mla …"},
    {"MlaWithBucketsAsAxis", "pe: mla\naxes: {pe.buckets: [16, 32]}",
     "s.yaml:4:8: pe.buckets applies to no job of this sweep; the logits of mla are …"},
    {"HeldOutCounting", "task: {name: counting, split: held_out_cells}",
     "s.yaml:3:31: task.split is held_out_cells; it must be disjoint or random: only the task "
     "distance has start places to hold out (constraint held-out-distance)"},
    {"HeldOutFractionAlone", "task: {name: distance, held_out_fraction: 0.2}",
     "s.yaml:3:43: task.held_out_fraction applies only where task.split is held_out_cells or "
     "held_out_starts; here it is disjoint"},
    {"HeldOutFractionWhole", "task: {name: distance, split: held_out_cells, held_out_fraction: 1}",
     "s.yaml:3:66: task.held_out_fraction must be a number above 0 and below 1, not 1"},
    {"ExcludeUnusedProtocol", "exclude: [{protocol: published}]",
     "s.yaml:3:11: exclude[0] matches no job of this sweep"},
    {"ExcludeProtocolTypo", "exclude: [{protocol: publishd}]",
     "s.yaml:3:22: unknown protocol \"publishd\"; did you mean published? …"},
    {"UnknownKey", "modle: {layers: 2}",
     "s.yaml:3:1: unknown key \"modle\"; did you mean model? known: analyses, …"},
    {"UnknownModelField", "model: {layer: 2}",
     "s.yaml:3:9: unknown field of model \"layer\"; did you mean layers? known: …"},
    {"UnknownPeField", "pe: {name: rope, bse: 5}",
     "s.yaml:3:18: unknown field of pe rope \"bse\"; did you mean base? known: base, "
     "input_sinusoid"},
    {"FieldOfNope", "pe: {name: nope, base: 5}",
     "s.yaml:3:18: unknown field of pe nope: \"base\"; it has no fields"},
    {"WrongType", "model: {layers: six}",
     "s.yaml:3:17: model.layers must be an integer from 1 to 64, not \"six\""},
    {"QuotedNumber", "model: {layers: '6'}",
     "s.yaml:3:17: model.layers must be an integer from 1 to 64, not \"6\""},
    {"RealForInteger", "model: {layers: 2.5}",
     "s.yaml:3:17: model.layers must be an integer from 1 to 64, not 2.5"},
    {"HugeInteger", "train: {epochs: 99999999999999999999}",
     "s.yaml:3:17: train.epochs must be an integer from 1 to 100000, not 99999999999999999999"},
    {"MapForInteger", "model: {layers: {a: 1}}",
     "s.yaml:3:17: model.layers must be an integer from 1 to 64, not a map"},
    {"ListForInteger", "model: {layers: [2, 4]}",
     "s.yaml:3:17: model.layers must be an integer from 1 to 64, not a list; to sweep over values, "
     "put model.layers under "
     "axes"},
    {"NothingForInteger", "model: {layers: }",
     "s.yaml:3:9: model.layers must be an integer from 1 to 64, not nothing"},
    {"NegativeEpochs", "train: {epochs: -3}",
     "s.yaml:3:17: train.epochs must be an integer from 1 to 100000, not -3"},
    {"InfiniteRate", "train: {lr: .inf}",
     "s.yaml:3:13: train.lr must be a number above 0 and at most 1000, not \".inf\""},
    {"NanRate", "train: {lr: nan}",
     "s.yaml:3:13: train.lr must be a number above 0 and at most 1000, not \"nan\""},
    {"DropoutOne", "model: {dropout: 1}",
     "s.yaml:3:18: model.dropout must be a number at least 0 and below 1, not 1"},
    {"YesForTrue", "model: {final_norm: yes}",
     "s.yaml:3:21: model.final_norm must be true or false, not \"yes\""},
    {"ChoiceTypo", "model: {mask: causl}",
     "s.yaml:3:15: model.mask must be one of causal, none, not \"causl\"; did you mean causal?"},
    {"SetTwice", "model: {dropout_sites: [ffn, ffn]}",
     "s.yaml:3:24: model.dropout_sites must be a list of attention, output, ffn_inner, ffn, each "
     "at most once, not a list"},
    {"SectionIsList", "model: [2]", "s.yaml:3:8: model must be a map of fields, not a list"},
    {"HeadsDoNotDivide", "model: {d_model: 100}",
     "s.yaml:3:18: model.d_model is 100; it must be a multiple of model.heads (16) "
     "(constraint heads-divide-width)"},
    {"HeadsSetAlone", "model: {heads: 7}",
     "s.yaml:3:16: model.d_model is 256; it must be a multiple of model.heads (7) "
     "(constraint heads-divide-width)"},
    {"TooShort", "task: {name: distance, length: 16, max_distance: 20}",
     "s.yaml:3:32: task.length is 16; it must be at least 21: the sequence is too short for two "
     "triggers "
     "task.max_distance (20) apart (constraint distance-fits)"},
    {"TooLong", "task: {name: distance, length: 200}",
     "s.yaml:3:32: task.length is 200; it must be at most model.max_len (128) "
     "(constraint length-fits-model)"},
    {"FieldOfTheOtherDefinition", "task: {name: distance, max_gap: 20}",
     "s.yaml:3:33: task.max_gap applies only where task.definition is published; here it is clean"},
    {"FieldOfTheOtherForm", "pe: {name: relative, form: table, buckets: 16}",
     "s.yaml:3:44: pe.buckets applies only where pe.form is t5; here it is table"},
    {"EmptyRange", "seed: 5..1",
     "s.yaml:3:7: range 5..1 is empty: the first must not exceed the last"},
    {"NegativeSeed", "seed: -1",
     "s.yaml:3:7: seed must be an integer from 0 to 9007199254740991, …"},
    {"SeedBeyondJson", "seed: 9007199254740992",
     "s.yaml:3:7: seed must be an integer from 0 to 9007199254740991, …"},
    {"SeedText", "seed: [0, many]", "s.yaml:3:11: seed must be an integer…"},
    {"SeedTwice", "seed: [0..4, 3]", "s.yaml:3:14: seed 3 is there twice"},
    {"NoSeeds", "seed: []", "s.yaml:3:7: seed is an empty list"},
    {"NoPes", "pe: []", "s.yaml:3:5: pe is an empty list"},
    {"PeIsNull", "pe:", "s.yaml:3:1: pe must be a name or a map with a name, not nothing"},
    {"PeListInList", "pe: [[rope]]",
     "s.yaml:3:6: pe must be a name or a map with a name, not a list"},
    {"PeWithoutName", "pe: [{base: 500}]", "s.yaml:3:6: this pe has no name: write {name: …"},
    {"PeTwice", "pe: [rope, nope, rope]",
     "s.yaml:3:18: pe[2] gives the same job as pe[0] (line 3); a sweep holds each job once"},
    {"PeTwiceInOtherWords", "pe: [rope, {name: rope, base: 1e4}]",
     "s.yaml:3:12: pe[1] gives the same job as pe[0] (line 3); a sweep holds each job once"},
    {"AxisValueTwice", "axes: {train.lr: [1e-4, 2e-4, 0.0001]}",
     "s.yaml:3:31: axes.train.lr[2] gives the same job as axes.train.lr[0] (line 3); a sweep holds "
     "each job once"},
    {"UnknownAxis", "axes: {lr: [1e-4]}",
     "s.yaml:3:8: unknown field \"lr\"; did you mean train.lr? …"},
    {"SeedAxis", "axes: {seed: [1]}",
     "s.yaml:3:8: unknown field \"seed\"; seed is given at the top of the document"},
    {"AxisForNoPe", "axes: {pe.buckets: [16, 32]}",
     "s.yaml:3:8: pe.buckets applies to no job of this sweep"},
    {"AxisBadValue", "axes: {model.layers: [2, four]}",
     "s.yaml:3:26: model.layers must be an integer from 1 to 64, not \"four\""},
    {"AxisInvalidCell", "axes: {model.heads: [16, 24]}",
     "s.yaml:3:26: model.d_model is 256; it must be a multiple of model.heads (24) "
     "(constraint heads-divide-width)"},
    {"AxesList", "axes: [1]",
     "s.yaml:3:7: axes must be a map from fields to lists of values, not a list"},
    {"ExcludeNothing", "exclude: [{pe: alibi}]",
     "s.yaml:3:11: exclude[0] matches no job of this sweep"},
    {"ExcludeAll", "exclude: {pe: rope}", "s.yaml:1:1: every job of the sweep is excluded"},
    {"ExcludeEmptyRule", "exclude: [{}]", "s.yaml:3:11: an exclude rule must be a map such as …"},
    {"ExcludeTypo", "exclude: [{pe: roppe}]",
     "s.yaml:3:16: unknown pe \"roppe\"; did you mean rope? …"},
    {"AnalysisTypo", "analyses: [head_ablatoin]",
     "s.yaml:3:12: unknown analysis \"head_ablatoin\"; did you mean head_ablation? known: "
     "cumulative_ablation, example_correctness, head_ablation, layer_ablation, "
     "split_accuracy"},
    {"AnalysisField", "analyses: {name: head_ablation, methd: zero}",
     "s.yaml:3:33: unknown field of analysis head_ablation \"methd\"; did you mean method? …"},
    {"AnalysisTwice", "analyses: [head_ablation, head_ablation]",
     "s.yaml:3:27: analysis head_ablation is there twice with the same parameters"},
    {"Device", "resources: {device: tpu}",
     "s.yaml:3:21: resources.device must be one of any, gpu, cpu, not \"tpu\""},
    {"Memory", "resources: {memory: lots}",
     "s.yaml:3:21: resources.memory must be a number of bytes …"},
    {"MemoryWithoutUnit", "resources: {memory: 8}",
     "s.yaml:3:21: resources.memory must be at least 1MiB, not 8; write 8GiB for gibibytes"},
    {"MemoryOfFewBytes", "resources: {memory: 1023KiB}",
     "s.yaml:3:21: resources.memory must be at least 1MiB, not \"1023KiB\"; write 8GiB for "
     "gibibytes"},
    {"NoMemory", "resources: {memory: 0}",
     "s.yaml:3:21: resources.memory must be at least 1MiB, not 0; write 8GiB for gibibytes"},
    {"DuplicateKey", "name: b", "s.yaml:3:1: duplicate key \"name\"; it is already in line 2"},
    {"Tag", "seed: !!int 4",
     "s.yaml:3:7: the tag tag:yaml.org,2002:int is not supported; leave it out"},
    {"UnknownAlias", "seed: *missing", "s.yaml:3:7: broken YAML: …"},
    {"KeyIsList", "[a, b]: 1", "s.yaml:3:1: a key must be text, not a list"},
    {"OpenBracket", "seed: [1, 2",
     "s.yaml:4:3: broken YAML: a list that starts with [ is not closed, or a comma is missing"},
    {"UnknownEscape", "seed: \"\\\xe2\x80\xae\"",
     "s.yaml:3:10: broken YAML: unknown escape character: ?"},
    {"Tab", "model:\n\tlayers: 2", "s.yaml:4:8: broken YAML: indentation must be spaces, not tabs"},
    {"SecondDocument", "seed: 1\n---\nname: b",
     "s.yaml:4:1: a second document starts here; only one is allowed"},
};

INSTANTIATE_TEST_SUITE_P(All, ComplaintTest, testing::ValuesIn(kCases),
                         [](const auto& which) { return std::string(which.param.name); });

TEST(Complaints, Documents) {
  EXPECT_THAT(Complaints(""), ElementsAre("s.yaml:1:1: the document is empty"));
  EXPECT_THAT(Complaints("# only a comment\n"), ElementsAre("s.yaml:1:1: the document is empty"));
  EXPECT_THAT(
      Complaints("hello"),
      ElementsAre(HasSubstr("the document must be a map with name, pe and task, not \"hello\"")));
  EXPECT_THAT(Complaints("name: s\nsweep: a.yaml\ncolor: red\nclaims: []\n"),
              ElementsAre("s.yaml:1:1: this is a claim sheet and no sweep: pelab settle tests its "
                          "claims"));
  EXPECT_THAT(Complaints("a: \xff"), ElementsAre("s.yaml:1:4: a byte that is not UTF-8 text"));
  EXPECT_THAT(Complaints("a: \"b\\_c\""),
              ElementsAre("s.yaml:1:4: an escape here is not a character"));
  EXPECT_THAT(Complaints(std::string("a: b\nc\0d", 8)),
              ElementsAre("s.yaml:2:2: a byte that is not UTF-8 text"));
}

TEST(Complaints, MissingKeysAllAtOnce) {
  EXPECT_THAT(
      Complaints("seed: 1"),
      ElementsAre(
          "s.yaml:1:1: name is missing; it must be 1 to 100 letters, digits, \".\", \"_\" or \"-\"",
          Filled("s.yaml:1:1: pe is missing; known: <pes>"),
          "s.yaml:1:1: task is missing; known: counting, distance"));
}

TEST(Complaints, Names) {
  for (const char* bad : {"''", "a b", "a/b", "ü", "[a]", "{a: b}"}) {
    EXPECT_THAT(Complaints("name: " + std::string(bad) + "\npe: rope\ntask: distance"),
                ElementsAre(StartsWith("s.yaml:1:7: name must be 1 to 100 letters")))
        << bad;
  }
  EXPECT_THAT(Complaints("name: " + std::string(101, 'a') + "\npe: rope\ntask: distance"),
              testing::SizeIs(1));
  EXPECT_THAT(Complaints("name: " + std::string(100, 'a') + "\npe: rope\ntask: distance"),
              testing::IsEmpty());
  EXPECT_THAT(Complaints("name: 2026-01.b_c\npe: rope\ntask: distance"), testing::IsEmpty());
}

TEST(Complaints, AllOfThemInTheOrderOfTheDocument) {
  EXPECT_THAT(
      Complaints("name: a\nmodel: {layers: 0, d_model: 100}\npe: [rope, ropes]\ntask: "
                 "distance\ntrain: {lr: 0}\n"),
      ElementsAre(StartsWith("s.yaml:2:17: model.layers"),
                  StartsWith("s.yaml:2:29: model.d_model is 100"),
                  StartsWith("s.yaml:3:12: unknown pe"), StartsWith("s.yaml:5:13: train.lr")));
}

TEST(Complaints, WhatDependsOnAnUnreadFieldIsNotJudged) {
  EXPECT_THAT(Complaints("{name: a, pe: rope, task: distance, model: {heads: ten, d_model: 100}}"),
              ElementsAre(HasSubstr("model.heads must be an integer")));
}

TEST(Complaints, AnAxisCannotAlsoBeSet) {
  EXPECT_THAT(
      Complaints(
          "name: a\npe: rope\ntask: distance\nmodel: {layers: 2}\naxes: {model.layers: [2, 4]}"),
      ElementsAre("s.yaml:5:8: model.layers is an axis here and set in line 4; it can be only one "
                  "of them"));
}

TEST(Complaints, Overrides) {
  const std::string good = "{name: a, pe: rope, task: distance}";
  const auto with = [&](const char* field, const char* value) {
    return Complaints(good, {{field, value}});
  };
  EXPECT_THAT(
      with("model.layers", "six"),
      ElementsAre("--set model.layers: model.layers must be an integer from 1 to 64, not \"six\""));
  EXPECT_THAT(with("model.layres", "6"),
              ElementsAre(HasSubstr("--set model.layres: unknown field \"model.layres\"; did "
                                    "you mean model.layers?")));
  EXPECT_THAT(with("pe", "nope"), ElementsAre(HasSubstr("pe is given at the top of the document")));
  EXPECT_THAT(with("seed", "5..1"),
              ElementsAre("--set seed: range 5..1 is empty: the first must not exceed the last"));
  EXPECT_THAT(with("protocol", "dirty"),
              ElementsAre(HasSubstr("--set protocol: unknown protocol \"dirty\"")));
  EXPECT_THAT(
      with("model.d_model", "100"),
      ElementsAre(
          "--set model.d_model: model.d_model is 100; it must be a multiple of model.heads (16) "
          "(constraint heads-divide-width)"));
  EXPECT_THAT(with("pe.buckets", "16"),
              ElementsAre("--set pe.buckets: pe.buckets applies to no job of this sweep"));
  EXPECT_THAT(with("model.layers", "[1"),
              ElementsAre(HasSubstr("--set model.layers: broken YAML")));
  EXPECT_THAT(with("model.layers", ""),
              ElementsAre(HasSubstr("--set model.layers: the value is empty")));
  EXPECT_THAT(with("protocol", "[clean, clean]"),
              ElementsAre("--set protocol[1]: protocol clean is there twice"));
  EXPECT_THAT(Complaints("{name: a, pe: mla, task: distance}", {{"pe.slopes", "geometric"}}),
              ElementsAre(testing::AllOf(
                  StartsWith("--set pe.slopes: pe.slopes applies to no job of this sweep; "),
                  HasSubstr("write pe: alibi"), testing::EndsWith("(constraint mla-no-bias)"))));
  EXPECT_THAT(Complaints("{name: a, pe: partial_rope, task: distance}", {{"pe.heads", "17"}}),
              ElementsAre(testing::EndsWith("(constraint heads-exist)")));
  EXPECT_THAT(Complaints("{name: a, pe: rope, task: distance, analyses: []}",
                         {{"head_ablation.max_examples", "3"}}),
              ElementsAre(HasSubstr("belongs to an analysis that this sweep does not ask for")));
}

// The change that an error message advises is accepted.
TEST(Complaints, SeveralValuesOfAnAnalysisAreAnalysesOfTheirOwn) {
  const std::string good = "name: a\npe: rope\ntask: distance\n";
  const std::string advice =
      "analyses: [{name: head_ablation, method: zero}, {name: head_ablation, method: mean}]";
  const std::string how = "list head_ablation once for each value: " + advice;
  EXPECT_THAT(
      Complaints(good + "analyses: [{name: head_ablation, method: [zero, mean]}]\n"),
      ElementsAre("s.yaml:4:42: head_ablation.method must be one of zero, mean, resample, not a "
                  "list; for several values, " +
                  how));
  EXPECT_THAT(
      Complaints(good + "axes: {head_ablation.method: [zero, mean]}\n"),
      ElementsAre("s.yaml:4:8: head_ablation.method is of an analysis, and no job has it; " + how));
  EXPECT_THAT(Complaints(good, {{"head_ablation.method", "[zero, mean]"}}),
              ElementsAre(testing::EndsWith(how)));
  EXPECT_THAT(Complaints(good + "axes: {head_ablation.method: all}\n"),
              ElementsAre(testing::EndsWith("once for each value under analyses")));
  const SweepResult followed = ParseSweep(good + advice + "\n");
  ASSERT_TRUE(followed.sweep.has_value());
  EXPECT_EQ(followed.sweep->analyses().size(), 2u);
}

TEST(Complaints, AFieldOfJobsWithSeveralValuesIsAnAxis) {
  const std::string good = "name: a\npe: rope\ntask: distance\n";
  EXPECT_THAT(Complaints(good + "model: {layers: [2, 4]}\n"),
              ElementsAre(testing::EndsWith("to sweep over values, put model.layers under axes")));
  const SweepResult followed = ParseSweep(good + "axes: {model.layers: [2, 4]}\n");
  ASSERT_TRUE(followed.sweep.has_value());
  EXPECT_EQ(followed.sweep->cells(), 2u);
}

TEST(Complaints, ViolationsCarryTheirParts) {
  const SweepResult result = ParseSweep("name: a\npe: [nope, alibbi]\ntask: distance\n");
  ASSERT_EQ(result.violations.size(), 1u);
  const Violation& violation = result.violations[0];
  EXPECT_EQ(violation.line, 2);
  EXPECT_EQ(violation.column, 12);
  EXPECT_EQ(violation.path, "pe[1]");
  EXPECT_EQ(violation.value, "alibbi");
  EXPECT_EQ(violation.allowed, Filled("<pes>"));
}

// The README shows this error below its sweep.
TEST(Readme, ShowsTheErrorThatItsOwnSweepGivesWithATypingMistake) {
  std::ifstream file(PELAB_SOURCE_DIR "/README.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::string begin = "## A sweep\n\n```yaml\n";
  const std::size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos);
  std::string document = text.substr(at + begin.size());
  document.resize(document.find("```"));
  const std::string task = "counting]";
  const std::size_t name = document.find(task);
  ASSERT_NE(name, std::string::npos);
  document.replace(name, task.size(), "countng]");
  const SweepResult result = ParseSweep(document);
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_THAT(text, HasSubstr("\n```\n" + Format(result.violations[0], "table1.yaml") + "\n```\n"));
}

}  // namespace
}  // namespace pelab::experiment
