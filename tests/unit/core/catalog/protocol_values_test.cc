// The settings of the protocols with their reasons, and the note for comparisons of encodings under
// one protocol.
#include "core/catalog/protocol_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/experiment/job.h"

namespace pelab::catalog {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ProtocolValues, EachHasAReasonOfOneLine) {
  for (const Entry& protocol : Protocols()) {
    for (const ProtocolValue& row : ProtocolValues(protocol.name)) {
      SCOPED_TRACE(std::string(protocol.name) + " " + std::string(row.field));
      EXPECT_THAT(row.reason, Not(IsEmpty()));
      EXPECT_EQ(row.reason.find('\n'), std::string_view::npos);
      EXPECT_THAT(row.value, Not(IsEmpty()));
      EXPECT_NE(FindField(row.field, row.owner), nullptr);
    }
  }
}

// Everything that makes two protocols' jobs differ is listed, and so is every switch.
TEST(ProtocolValues, CoverWhatDiffersBetweenProtocols) {
  std::set<std::string_view> listed;
  for (const ProtocolValue& row : ProtocolValues("clean")) listed.insert(row.field);
  for (const Field& field : Fields()) {
    if (field.is_switch) {
      EXPECT_EQ(listed.count(field.name), 1u) << field.name;
    }
  }
  for (const Entry& protocol : Protocols()) {
    for (const Entry& pe : Pes()) {
      for (const Entry& task : Tasks()) {
        const experiment::Job one = experiment::MakeJob("clean", pe.name, task.name, 0);
        const experiment::Job other = experiment::MakeJob(protocol.name, pe.name, task.name, 0);
        for (const auto& [name, value] : one.values) {
          const auto found = other.values.find(name);
          if (found == other.values.end() || found->second == value) continue;
          EXPECT_EQ(listed.count(name), 1u) << name << " of " << pe.name;
        }
      }
    }
  }
}

std::string ValueOf(std::string_view protocol, std::string_view field) {
  for (const ProtocolValue& row : ProtocolValues(protocol)) {
    if (row.field == field) return row.value;
  }
  return "";
}

TEST(ProtocolValues, SayWhatHoldsInGeneralAndForWhomElse) {
  EXPECT_EQ(ValueOf("clean", "train.beta1"), "0.98");
  EXPECT_EQ(ValueOf("clean", "train.beta2"), "0.9");
  EXPECT_EQ(ValueOf("matched", "train.beta1"), "0.9");
  EXPECT_EQ(ValueOf("matched", "train.beta2"), "0.999");
  EXPECT_EQ(ValueOf("matched", "model.readout"), "last");
  EXPECT_EQ(ValueOf("published", "model.key_padding"), "attended; mla: masked");
  EXPECT_EQ(ValueOf("clean", "model.key_padding"), "masked");
  EXPECT_EQ(ValueOf("clean", "train.epochs"), "100; counting: 150");
  EXPECT_EQ(ValueOf("published", "train.epochs"), "100; mla: 150");
  EXPECT_EQ(ValueOf("published", "model.dropout_sites"),
            "[attention, output, ffn]; mla: [ffn_inner, ffn]");
}

// Except for its betas and its readout, `matched` equals `clean`.
TEST(ProtocolValues, MatchedIsCleanButForBetasAndReadout) {
  const std::vector<ProtocolValue> clean = ProtocolValues("clean");
  const std::vector<ProtocolValue> matched = ProtocolValues("matched");
  ASSERT_EQ(clean.size(), matched.size());
  std::set<std::string_view> different;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (clean[i].value == matched[i].value) {
      EXPECT_EQ(clean[i].reason, matched[i].reason) << clean[i].field;
    } else {
      EXPECT_NE(clean[i].reason, matched[i].reason) << clean[i].field;
      different.insert(clean[i].field);
    }
  }
  EXPECT_EQ(different, (std::set<std::string_view>{"model.readout", "train.beta1", "train.beta2"}));
}

TEST(NoteOnComparison, NamesTheBetasThatCleanKeeps) {
  const std::string note =
      NoteOnComparison({{"clean", "rope", 0.98, 0.9}, {"clean", "mla", 0.98, 0.9}});
  EXPECT_THAT(note, HasSubstr("(0.98, 0.9)"));
  EXPECT_THAT(note, HasSubstr("protocol clean"));
  EXPECT_THAT(note, HasSubstr("protocol matched"));
}

TEST(NoteOnComparison, IsSilentWhereNothingIsComparedUnderThem) {
  EXPECT_EQ(NoteOnComparison({}), "");
  EXPECT_EQ(NoteOnComparison({{"clean", "rope", 0.98, 0.9}, {"clean", "rope", 0.98, 0.9}}), "");
  EXPECT_EQ(NoteOnComparison({{"clean", "rope", 0.9, 0.999}, {"clean", "mla", 0.9, 0.999}}), "");
  EXPECT_EQ(NoteOnComparison({{"clean", "rope", 0.98, 0.9}, {"clean", "mla", 0.9, 0.98}}), "");
  EXPECT_EQ(NoteOnComparison({{"clean", "rope", 0.98, 0.9}, {"published", "mla", 0.98, 0.9}}), "");
  EXPECT_EQ(NoteOnComparison({{"matched", "rope", 0.9, 0.999}, {"matched", "mla", 0.9, 0.999}}),
            "");
}

}  // namespace
}  // namespace pelab::catalog
