#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/limits.h"
#include "client/report/html_data.h"
#include "client/report/html_page.h"
#include "core/results/cells.h"
#include "tests/unit/client/report/report_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using render::Json;

TEST(ReportCurves, AreMeansOverTheSeedsThatAreDone) {
  ReportInput input = InputOf({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 800),
                               MakeJob(3, "rope", 2, v1::JOB_STATE_FAILED, 100)});
  input.curves[1] = {{0.2, 0.9}, {0.3, 1.0}};
  input.curves[2] = {{0.4, 0.8}, {0.5, 0.9}};
  input.curves[3] = {{0.1}, {0.1}};
  const Json curves = report::Curves(input, false);
  ASSERT_EQ(curves["series"].size(), 1U);
  const Json& series = curves["series"][0];
  EXPECT_EQ(series["basis"], "done");
  EXPECT_EQ(series["n"], 2);
  EXPECT_EQ(series["of"], 3);
  EXPECT_EQ(series["epochs"], 2);
  EXPECT_NEAR(series["test"]["mean"][0].get<double>(), 0.3, 1e-12);
  // t(0.975, 1) = 12.7062, sd = 0.1 sqrt(2): half width 12.7062 * 0.1.
  EXPECT_NEAR(series["test"]["high"][0].get<double>(), 0.3 + 1.27062047, 1e-7);
  EXPECT_EQ(series["seeds"].size(), 3U);
  EXPECT_EQ(series["seeds"][2]["test"], Json::array({0.1}));
}

TEST(ReportCurves, OfSeedsThatHaveBegunEndWhereTheShortestEnds) {
  ReportInput input = InputOf({MakeJob(1, "rope", 0, v1::JOB_STATE_RUNNING, 900),
                               MakeJob(2, "rope", 1, v1::JOB_STATE_RUNNING, 800),
                               MakeJob(3, "rope", 2, v1::JOB_STATE_QUEUED, 0)});
  input.curves[1] = {{0.2, 0.9, 0.95}, {0.3, 1.0, 1.0}};
  input.curves[2] = {{0.4}, {0.5}};
  const Json series = report::Curves(input, false)["series"][0];
  EXPECT_EQ(series["basis"], "begun");
  EXPECT_EQ(series["n"], 2);
  EXPECT_EQ(series["epochs"], 1);
  EXPECT_EQ(series["test"]["mean"].size(), 1U);
}

TEST(ReportCurves, OfOneSeedHaveNoInterval) {
  ReportInput input = InputOf({MakeJob(1, "rope", 0, kDone, 900)});
  input.curves[1] = {{0.2}, {0.3}};
  const Json series = report::Curves(input, false)["series"][0];
  EXPECT_TRUE(series["test"]["low"][0].is_null());
  EXPECT_EQ(series["test"]["mean"][0], 0.2);
}

TEST(ReportCurves, LeaveManySeedsOutUnlessTheyAreAskedFor) {
  ReportInput input = InputOf({MakeJob(1, "rope", 0, kDone, 900)});
  input.curves[1] = {std::vector<double>(limits::kReportSeedPoints / 2 + 1, 0.5),
                     std::vector<double>(limits::kReportSeedPoints / 2 + 1, 0.5)};
  EXPECT_EQ(report::Curves(input, false)["with_seeds"], false);
  EXPECT_TRUE(report::Curves(input, false)["series"][0]["seeds"].empty());
  EXPECT_EQ(report::Curves(input, true)["series"][0]["seeds"].size(), 1U);
}

TEST(ReportData, SaysWhatIsMissing) {
  v1::JobRow failed = MakeJob(2, "rope", 1, v1::JOB_STATE_FAILED, 100);
  failed.set_error("out of memory");
  const ReportInput input = InputOf(
      {MakeJob(1, "rope", 0, kDone, 900), failed, MakeJob(3, "nope", 0, v1::JOB_STATE_QUEUED, 0)});
  const Json data = ReportData(input, {});
  ASSERT_EQ(data["lacking"].size(), 2U);
  EXPECT_EQ(data["lacking"][0]["error"], "out of memory");
  EXPECT_EQ(data["lacking"][1]["state"], "queued");
  EXPECT_EQ(data["cells"][0]["test"]["n"], 1);
  EXPECT_EQ(data["cells"][0]["test"]["failed"], 1);
  EXPECT_TRUE(data["cells"][1]["test"]["mean"].is_null());
  EXPECT_TRUE(data["heads"].empty());
  EXPECT_TRUE(data["head_counts"].empty());
}

TEST(ReportHeadCounts, HaveReferencesThatDifferInTheEncodingAlone) {
  const ReportInput input = InputOf({MakeJob(1, "partial_rope", 0, kDone, 500, "0.001"),
                                     MakeJob(2, "rope", 0, kDone, 900, "0.001"),
                                     MakeJob(3, "rope", 0, kDone, 700, "0.003"),
                                     MakeJob(4, "nope", 0, kDone, 200, "0.003")});
  const Json charts = report::HeadCounts(input);
  ASSERT_EQ(charts.size(), 1U);
  ASSERT_EQ(charts[0]["series"].size(), 1U);
  EXPECT_EQ(charts[0]["series"][0]["label"], "first k heads, train.lr=0.001");
  ASSERT_EQ(charts[0]["levels"].size(), 1U);
  EXPECT_EQ(charts[0]["levels"][0]["label"], "rope train.lr=0.001");
  EXPECT_EQ(charts[0]["levels"][0]["mean"], 0.9);
}

TEST(ReportData, NamesCellsWithinTheirGroup) {
  const ReportInput input = InputOf(
      {MakeJob(1, "rope", 0, kDone, 900, "0.001"), MakeJob(2, "rope", 0, kDone, 900, "0.003")});
  const report::CellName name = report::NameOf(input.cells, input.cells.cells[1]);
  EXPECT_EQ(name.group, "distance");
  EXPECT_EQ(name.label, "rope train.lr=0.003");
}

TEST(ReportPage, DataCannotEndItsElement) {
  const Json hostile = {
      {"</script><script>alert(1)</script>", "<!-- \xE2\x80\xA8 \xE2\x80\xA9 & \xFF"}};
  const std::string text = ScriptJson(hostile);
  for (const char* piece : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    EXPECT_EQ(text.find(piece), std::string::npos) << piece;
  }
  const Json read = Json::parse(text);
  EXPECT_EQ(read.items().begin().key(), "</script><script>alert(1)</script>");
  EXPECT_EQ(read.items().begin().value(), "<!-- \xE2\x80\xA8 \xE2\x80\xA9 & \xEF\xBF\xBD");
}

TEST(ReportPage, IsOneFileThatMayAskForNothing) {
  const std::string page = ReportPage("a <b> & \"c\"", {{"x", 1}});
  EXPECT_NE(page.find("<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("Plotly Technologies Inc."), std::string::npos);
  EXPECT_EQ(page.find("<script src"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
}

}  // namespace
}  // namespace pelab::client
