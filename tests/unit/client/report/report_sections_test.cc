// The setup, the comparisons and the learning speed in a report's data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/report/html_data.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "core/results/cells.h"
#include "tests/unit/client/report/report_fixture.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using render::Json;

v1::JobRow WithSpec(std::int64_t id, const std::string& pe, const std::string& protocol,
                    const catalog::Values& set, const std::string& label) {
  v1::JobRow job = MakeJob(id, pe, 0, kDone, 900);
  job.set_protocol(label);
  job.set_spec_json(
      experiment::ToCanonicalJson(experiment::MakeJob(protocol, pe, "distance", 0, set)));
  return job;
}

Json Find(const Json& rows, const std::string& member, const std::string& value) {
  for (const Json& row : rows) {
    if (row[member] == value) return row;
  }
  return nullptr;
}

TEST(ReportSetUp, SaysWhatIsSharedWhatVariesAndWhatItDepartsFrom) {
  const catalog::Values small = {{"model.layers", std::int64_t{2}}};
  catalog::Values odd = small;
  odd["model.mask"] = std::string("none");
  ReportInput input = InputOf({WithSpec(1, "rope", "clean", small, "clean"),
                               WithSpec(2, "nope", "clean", small, "clean"),
                               WithSpec(3, "alibi", "clean", odd, "custom")});
  v1::AttemptRow attempt;
  attempt.set_job_id(1);
  attempt.set_environment_json(R"({"parameters": 4321})");
  input.attempts = {attempt};
  const Json set_up = report::SetUp(input);

  const Json layers = Find(set_up["model"], "name", "model.layers");
  EXPECT_EQ(layers["value"], "2");
  EXPECT_EQ(layers["default"], "6");  // the default of the protocol `science`
  EXPECT_EQ(Find(set_up["model"], "name", "model.heads")["default"], nullptr);
  EXPECT_EQ(Find(set_up["varies"], "name", "model.mask")["values"], Json({"causal", "none"}));

  ASSERT_EQ(set_up["tasks"].size(), 1U);
  EXPECT_EQ(set_up["tasks"][0]["sentence"], catalog::FindTask("distance")->help);
  EXPECT_EQ(Find(set_up["tasks"][0]["fields"], "name", "task.length").is_null(), false);
  EXPECT_EQ(Find(set_up["encodings"], "label", "rope")["parameters"], Json({4321}));
  EXPECT_EQ(Find(set_up["encodings"], "label", "nope")["parameters"], Json::array());

  ASSERT_EQ(set_up["protocols"].size(), 2U);
  EXPECT_EQ(set_up["protocols"][0]["name"], "clean");
  EXPECT_EQ(set_up["protocols"][0]["cells"], 2);
  const Json& custom = set_up["protocols"][1];
  EXPECT_EQ(custom["near"], "clean");
  ASSERT_EQ(custom["departures"].size(), 1U);
  EXPECT_EQ(custom["departures"][0],
            Json({{"field", "model.mask"}, {"value", "none"}, {"protocol_value", "causal"}}));
}

TEST(ReportSetUp, OfSpecsThatNobodyKnowsSaysWhatItCan) {
  const Json set_up = report::SetUp(InputOf({MakeJob(1, "rope", 0, kDone, 900)}));
  EXPECT_EQ(Find(set_up["train"], "name", "train.lr")["value"], "0.001");
  EXPECT_EQ(set_up["protocols"][0]["name"], "clean");
}

TEST(ReportComparisons, ArePairedBySeedAgainstRope) {
  const ReportInput input =
      InputOf({MakeJob(1, "nope", 0, kDone, 500), MakeJob(2, "nope", 1, kDone, 700),
               MakeJob(3, "nope", 2, kDone, 100), MakeJob(4, "rope", 0, kDone, 600),
               MakeJob(5, "rope", 1, kDone, 900)});
  const Json found = report::Comparisons(input);
  EXPECT_EQ(found["baseline"], "rope");
  ASSERT_EQ(found["rows"].size(), 1U);
  const Json& row = found["rows"][0];
  EXPECT_EQ(row["encoding"], "nope");
  EXPECT_EQ(row["n"], 2);  // seed 2 has no partner
  // Differences -0.1 and -0.2: mean -0.15, t(0.975, 1) 0.05 sqrt(2) / sqrt(2) = 12.7062 * 0.05.
  EXPECT_NEAR(row["difference"].get<double>(), -0.15, 1e-12);
  EXPECT_NEAR(row["low"].get<double>(), -0.15 - 12.7062047 * 0.05, 1e-7);
  // t = 3 with one degree of freedom: p = 1 - 2 atan(3) / pi.
  EXPECT_NEAR(row["p"].get<double>(), 0.2048327646991335, 1e-9);
}

TEST(ReportComparisons, StayWithinTheSameSetting) {
  const ReportInput input = InputOf(
      {MakeJob(1, "nope", 0, kDone, 500, "0.001"), MakeJob(2, "nope", 0, kDone, 700, "0.003"),
       MakeJob(3, "alibi", 0, kDone, 600, "0.001"), MakeJob(4, "alibi", 0, kDone, 900, "0.003")});
  const Json found = report::Comparisons(input);
  EXPECT_EQ(found["baseline"], "nope");  // the first encoding, since there is no rope
  ASSERT_EQ(found["rows"].size(), 2U);
  EXPECT_NEAR(found["rows"][0]["difference"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(found["rows"][1]["difference"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(found["rows"][1]["values"]["train.lr"], "0.003");
  EXPECT_TRUE(found["rows"][0]["low"].is_null());
}

TEST(ReportComparisons, NeedTwoEncodings) {
  EXPECT_TRUE(
      report::Comparisons(InputOf({MakeJob(1, "rope", 0, kDone, 500)}))["baseline"].is_null());
}

TEST(ReportSpeed, SeedsThatNeverHaveItAreSlowerThanAllOthers) {
  ReportInput input = InputOf({MakeJob(1, "rope", 0, kDone, 500), MakeJob(2, "rope", 1, kDone, 700),
                               MakeJob(3, "rope", 2, kDone, 100), MakeJob(4, "nope", 0, kDone, 1),
                               MakeJob(5, "nope", 1, kDone, 1)});
  input.curves[1] = {{0.2, 0.5}, {0, 0}};
  input.curves[2] = {{0.6, 0.9}, {0, 0}};
  input.curves[3] = {{0.1, 0.1}, {0, 0}};
  input.curves[4] = {{0.1, 0.7}, {0, 0}};
  input.curves[5] = {{0.1, 0.1}, {0, 0}};
  const Json found = report::EpochsToHalf(input);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], Json({{"cell", 0}, {"median", 1.0}, {"reached", 2}, {"of", 3}}));
  EXPECT_EQ(found[1], Json({{"cell", 1}, {"median", 1.0}, {"reached", 1}, {"of", 2}}));
}

TEST(ReportNames, TellTheEncodingsFieldsFromTheAxis) {
  std::vector<v1::JobRow> rows;
  std::int64_t id = 0;
  for (const char* heads : {"1", "2"}) {
    for (const char* lr : {"0.001", "0.003"}) {
      v1::JobRow job = MakeJob(++id, "partial_rope", 0, kDone, 900);
      job.set_spec_json(Concat(R"({"format":1,"pe":{"heads":)", heads,
                               R"(,"name":"partial_rope"},"seed":0,"task":{"name":"distance"},)",
                               R"("train":{"lr":)", lr, "}}"));
      rows.push_back(job);
    }
  }
  const ReportInput input = InputOf(std::move(rows));
  const report::CellName name = report::NameOf(input.cells, input.cells.cells[3]);
  EXPECT_EQ(name.encoding, "partial_rope");
  EXPECT_EQ(name.own, "pe.heads=2");
  EXPECT_EQ(name.axis, "train.lr=0.003");
}

}  // namespace
}  // namespace pelab::client
