// All differences between the authors' code and the clean protocol, one row for each: the values of
// each protocol, for MLA and for the other encodings. Each difference can be set alone, in a
// document and on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

using catalog::Field;

struct Row {
  const char* name;
  const char* field;
  const char* owner;  // an encoding, or "" for fields that every encoding has
  const char* published;
  const char* published_mla;  // for fields that every encoding has
  const char* clean;
  bool is_switch = true;     // sizes do not decide the label
  const char* matched = "";  // if it differs from the clean value
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.field; }

const Row kRows[] = {
    {"Generator", "task.definition", "", "published", "published", "clean"},
    {"Mask", "model.mask", "", "none", "none", "causal"},
    {"Pads", "model.key_padding", "", "attended", "masked", "masked"},
    {"KeysAndValues", "model.kv_source", "", "input", "self", "self"},
    {"Readout", "model.readout", "", "mean", "masked_mean", "masked_mean", true, "last"},
    {"FinalNorm", "model.final_norm", "", "false", "true", "true"},
    {"Classes", "task.label_space", "", "vocabulary", "vocabulary", "exact"},
    {"ScoredClasses", "task.scored_classes", "", "nonzero", "all", "all"},
    {"Split", "task.split", "", "random", "random", "disjoint"},
    {"DropoutSites", "model.dropout_sites", "", "[attention, output, ffn]", "[ffn_inner, ffn]",
     "[attention, output, ffn]"},
    {"Activation", "model.activation", "", "relu", "gelu", "relu"},
    {"AttentionBiases", "model.attention_bias", "", "true", "false", "true"},
    {"Epochs", "train.epochs", "", "100", "150", "100", false},
    {"Batch", "train.batch_size", "", "512", "1024", "512", false},
    {"Beta1", "train.beta1", "", "0.98", "0.98", "0.98", false, "0.9"},
    {"Beta2", "train.beta2", "", "0.9", "0.9", "0.9", false, "0.999"},
    {"Rope", "pe.input_sinusoid", "rope", "true", "", "false"},
    {"Random", "pe.trainable", "random", "true", "", "false"},
    {"Relative", "pe.form", "relative", "table", "", "t5"},
    {"Alibi", "pe.slopes", "alibi", "exponential", "", "geometric"},
    {"MlaRotation", "pe.rotation", "mla", "sliced", "", "rope"},
    {"MlaRotaryQuery", "pe.rotary_query", "mla", "shared", "", "per_head"},
    {"MlaLatentNorm", "pe.latent_norm", "mla", "false", "", "true"},
    {"MlaInputTable", "pe.input_table", "mla", "true", "", "false"},
};

std::string TextOf(const Job& job, const char* field) {
  return catalog::ToText(job.values.at(field));
}

std::vector<std::string> PesOf(const Row& row) {
  if (row.owner[0] != '\0') return {row.owner};
  std::vector<std::string> pes;
  for (const catalog::Entry& pe : catalog::Pes()) {
    if (pe.causal_because.empty()) pes.emplace_back(pe.name);  // else it has no bidirectional job
  }
  return pes;
}

// The document with the field in its group.
std::string DocumentWith(const std::string& protocol, const std::string& pe,
                         const std::string& field, const std::string& value) {
  const std::string group = field.substr(0, field.find('.'));
  const std::string setting = field.substr(field.find('.') + 1) + ": " + value;
  std::string document = "name: a\nprotocol: " + protocol + "\n";
  document += "pe: {name: " + pe + (group == "pe" ? ", " + setting : "") + "}\n";
  document += "task: {name: distance" + (group == "task" ? ", " + setting : "") + "}\n";
  if (group == "model" || group == "train") document += group + ": {" + setting + "}\n";
  return document;
}

Cell OnlyCell(const std::string& document, const std::vector<Override>& overrides) {
  const SweepResult result = ParseSweep(document, overrides);
  for (const Violation& violation : result.violations) ADD_FAILURE() << violation.message;
  if (!result.sweep || result.sweep->cells() != 1) return {};
  return result.sweep->At(0).value_or(Cell());
}

// True if the two jobs differ in the field and, apart from it, only in fields that exist because of
// it.
bool DifferOnlyBy(const Row& row, const Job& a, const Job& b) {
  for (const Field& field : catalog::Fields()) {
    const bool owned = field.owner.empty() || field.owner == a.pe || field.owner == a.task;
    if (!owned || field.name == row.field) continue;
    if (field.applies_when && field.applies_when->field == row.field) continue;
    const auto in_a = a.values.find(field.name);
    const auto in_b = b.values.find(field.name);
    const bool same = (in_a == a.values.end()) == (in_b == b.values.end()) &&
                      (in_a == a.values.end() || in_a->second == in_b->second);
    if (!same) return false;
  }
  return a.values.at(row.field) != b.values.at(row.field);
}

class ProtocolRowTest : public testing::TestWithParam<Row> {};

TEST_P(ProtocolRowTest, HasAFieldThatSaysWhatItIs) {
  const Field* field = catalog::FindField(GetParam().field, GetParam().owner);
  ASSERT_NE(field, nullptr);
  EXPECT_EQ(field->owner, GetParam().owner);
  EXPECT_FALSE(field->help.empty());
  EXPECT_EQ(field->is_switch, GetParam().is_switch);
}

TEST_P(ProtocolRowTest, HasTheValueOfEachSet) {
  const Row& row = GetParam();
  for (const std::string& pe : PesOf(row)) {
    const bool as_mla = pe == "mla" && row.owner[0] == '\0';
    EXPECT_EQ(TextOf(MakeJob("published", pe, "distance", 0), row.field),
              as_mla ? row.published_mla : row.published)
        << pe;
    EXPECT_EQ(TextOf(MakeJob("clean", pe, "distance", 0), row.field), row.clean) << pe;
    EXPECT_EQ(TextOf(MakeJob("matched", pe, "distance", 0), row.field),
              row.matched[0] == '\0' ? row.clean : row.matched)
        << pe;
  }
}

TEST_P(ProtocolRowTest, CanBeSetAlone) {
  const Row& row = GetParam();
  std::set<std::string> values = {row.published, row.clean};
  if (row.published_mla[0] != '\0') values.insert(row.published_mla);
  if (row.matched[0] != '\0') values.insert(row.matched);
  ASSERT_GE(values.size(), 2u);
  for (const std::string protocol : {"clean", "published"}) {
    for (const std::string& pe : PesOf(row)) {
      const std::string plain =
          "{name: a, protocol: " + protocol + ", pe: " + pe + ", task: distance}";
      const Cell as_it_is = OnlyCell(plain, {});
      EXPECT_EQ(as_it_is.protocol_label, protocol) << pe;
      for (const std::string& value : values) {
        SCOPED_TRACE(protocol + " " + pe + " " + value);
        const Cell by_override = OnlyCell(plain, {{row.field, value}});
        const Cell by_document = OnlyCell(DocumentWith(protocol, pe, row.field, value), {});
        EXPECT_EQ(TextOf(by_override.job, row.field), value);
        EXPECT_EQ(by_override.canonical_json, by_document.canonical_json);
        const bool departs = value != TextOf(as_it_is.job, row.field);
        EXPECT_EQ(by_override.key != as_it_is.key, departs);
        EXPECT_EQ(by_override.protocol_label, departs && row.is_switch ? "custom" : protocol);
        EXPECT_TRUE(!departs || DifferOnlyBy(row, as_it_is.job, by_override.job));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ProtocolRowTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ProtocolRows, CoverEverySwitch) {
  std::set<std::pair<std::string_view, std::string_view>> covered;
  for (const Row& row : kRows) covered.emplace(row.field, row.owner);
  for (const Field& field : catalog::Fields()) {
    if (!field.is_switch) continue;
    EXPECT_EQ(covered.count({field.name, field.owner}), 1u) << field.name << " of " << field.owner;
  }
}

TEST(ProtocolRows, EpochsOfTheCountingTask) {
  EXPECT_EQ(MakeJob("published", "rope", "counting", 0).Int("train.epochs"), 100);
  EXPECT_EQ(MakeJob("published", "mla", "counting", 0).Int("train.epochs"), 150);
  EXPECT_EQ(MakeJob("clean", "rope", "counting", 0).Int("train.epochs"), 150);
  EXPECT_EQ(MakeJob("clean", "mla", "counting", 0).Int("train.epochs"), 150);
}

TEST(ProtocolRows, HowHeadsAreAblated) {
  const Row rows[] = {
      {"AblationData", "head_ablation.data", "head_ablation", "all", "", "test"},
      {"AblationHygiene", "head_ablation.hygiene", "head_ablation", "authors", "", "clean"},
      {"AblationOfMla", "head_ablation.target", "head_ablation", "authors", "", "head"},
  };
  for (const Row& row : rows) {
    ASSERT_NE(catalog::FindField(row.field, row.owner), nullptr) << row.field;
    for (const std::string protocol : {"clean", "published"}) {
      for (const std::string value : {row.published, row.clean}) {
        const std::string document =
            "{name: a, protocol: " + protocol + ", pe: mla, task: distance, ";
        const std::string parameter =
            std::string(row.field).substr(std::string(row.field).find('.') + 1);
        const auto parse = [](const std::string& text, const std::vector<Override>& overrides) {
          const SweepResult result = ParseSweep(text, overrides);
          return result.sweep ? result.sweep->analyses().at(0) : Analysis();
        };
        const Analysis standard = parse(document + "analyses: head_ablation}", {});
        const Analysis by_override =
            parse(document + "analyses: head_ablation}", {{row.field, value}});
        const Analysis by_document = parse(
            document + "analyses: {name: head_ablation, " + parameter + ": " + value + "}}", {});
        catalog::Values expected = standard.parameters;
        EXPECT_EQ(catalog::ToText(expected.at(row.field)),
                  protocol == "clean" ? row.clean : row.published);
        expected[row.field] = value;
        EXPECT_EQ(by_override.parameters, expected) << row.field;
        EXPECT_EQ(by_document.parameters, expected) << row.field;
      }
    }
  }
}

}  // namespace
}  // namespace pelab::experiment
