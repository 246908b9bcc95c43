// The line of a job in CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_text.h"
#include "core/render/json.h"
#include "core/results/rows.h"

namespace pelab::results {
namespace {

using render::Json;

// RFC 8785 writes 0.00001 and 1e-8 where the library writes 1e-05 and 1e-08.
constexpr char kSpec[] =
    R"({"format":1,"pe":{"name":"rope"},"seed":3,"train":{"epsilon":1e-8,"lr":0.00001}})";

v1::JobRow Row() {
  v1::JobRow row;
  row.set_job_id(7);
  row.set_key("ab");
  row.set_pe_label(R"(rope, "wide")");
  row.set_state(v1::JOB_STATE_SUCCEEDED);
  row.set_test_accuracy(0.1 + 0.2);
  row.set_trained(true);
  row.set_configuration_id(2);
  return row;
}

std::string LineOf(const v1::JobRow& row) {
  std::string line;
  AppendJobCsv(row, kSpec, line);
  return line;
}

TEST(JobCsvTest, HasTheSpecAsItIsStored) {
  std::string quoted = "\"";
  for (const char c : std::string(kSpec)) quoted += c == '"' ? "\"\"" : std::string(1, c);
  EXPECT_THAT(LineOf(Row()), testing::HasSubstr("," + quoted + "\","));
}

TEST(JobCsvTest, HasTheValuesOfTheJsonObjectOtherwise) {
  Json json = ToJson(Row(), kSpec);
  EXPECT_EQ(json["spec"], ParseJson<Json>(kSpec));
  json["spec"] = kSpec;
  std::string line;
  render::AppendCsv(ColumnsOf<v1::JobRow>(), json, line);
  EXPECT_EQ(LineOf(Row()), line);
  EXPECT_THAT(line, testing::StartsWith("7,ab,0,,\"rope, \"\"wide\"\"\","));
  EXPECT_THAT(line, testing::HasSubstr(",0.30000000000000004,"));
}

TEST(JobCsvTest, AConfigurationThatTheListMadeUpIsLeftOut) {
  v1::JobRow row = Row();
  const std::string with = LineOf(row);
  row.set_configuration_id(-1);
  EXPECT_NE(LineOf(row), with);
  EXPECT_THAT(LineOf(row), testing::Not(testing::HasSubstr(",-1,")));
}

}  // namespace
}  // namespace pelab::results
