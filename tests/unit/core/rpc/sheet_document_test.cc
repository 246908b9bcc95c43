// Sheets together with their sweeps, as they are sent and stored.
#include "core/rpc/sheet_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/claims/sheet_reader.h"
#include "core/rpc/status.h"
#include "pelab/v1/common.pb.h"
#include "tests/unit/core/experiment/own_data_fixture.h"

namespace pelab::rpc {
namespace {

using testing::HasSubstr;

constexpr char kSheet[] = R"(name: s
sweep:
  name: t
  pe: [rope, nope]
  task: {name: own, file: mine.safetensors}
  train: {lr: 1e-3}
  model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 64}
claims:
  - id: any
    between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1.01}
)";

claims::Sheet SheetOf(const std::string& text) { return *claims::ReadSheet(text).sheet; }

nlohmann::json WithFiles() {
  nlohmann::json sweep = nlohmann::json::parse(SheetOf(kSheet).sweep_document);
  sweep["files"]["mine.safetensors"] = nlohmann::json::parse(experiment::DeclaredData());
  return sweep;
}

std::string FirstOf(const absl::Status& status) {
  const auto violations = GetViolations(status);
  return violations && violations->violations_size() > 0 ? violations->violations(0).message()
                                                         : std::string(status.message());
}

TEST(SheetDocumentTest, AnInlineSweepTakesWhatItsFilesDeclare) {
  const auto bound = BindSheetDocument(kSheet, WithFiles().dump());
  ASSERT_TRUE(bound.ok()) << FirstOf(bound.status());
  EXPECT_EQ(bound->configurations[0].task_label, "own:parity");
  EXPECT_THAT(FirstOf(BindSheetDocument(kSheet, "").status()),
              HasSubstr("the file \"mine.safetensors\" did not come with this document"));
}

TEST(SheetDocumentTest, AnInlineSweepIsThatOfTheSheet) {
  nlohmann::json other = WithFiles();
  other["train"]["lr"] = 0.01;
  const absl::Status status = BindSheetDocument(kSheet, other.dump()).status();
  EXPECT_EQ(FirstOf(status),
            "the sweep that came along with the sheet differs from the sheet's in more than files");
  EXPECT_EQ(GetViolations(status)->violations(0).line(), 3);
  EXPECT_EQ(GetViolations(status)->violations(0).path(), "sweep");
}

TEST(SheetDocumentTest, WithoutFilesTheSheetAloneCounts) {
  const claims::Sheet sheet = SheetOf(kSheet);
  for (const char* given : {"", "{}", "no JSON: [", "[1]", R"({"name":"other"})"}) {
    const auto document = SweepDocumentOf(sheet, given);
    ASSERT_TRUE(document.ok()) << given;
    EXPECT_EQ(*document, sheet.sweep_document) << given;
  }
}

TEST(SheetDocumentTest, ASweepFileIsTakenAsItIs) {
  const claims::Sheet sheet = SheetOf(
      "name: s\nsweep: t.yaml\nclaims:\n"
      "  - {id: a, between: {metric: test_accuracy, cell: pe=rope, low: 0, high: 1}}\n");
  EXPECT_EQ(*SweepDocumentOf(sheet, "name: t # as written\n"), "name: t # as written\n");
}

}  // namespace
}  // namespace pelab::rpc
