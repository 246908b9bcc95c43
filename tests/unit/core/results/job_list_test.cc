#include "core/results/job_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/results/rows.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

v1::ListJobsResponse Page(const std::vector<std::pair<std::int64_t, std::int64_t>>& jobs,
                          const std::map<std::int64_t, std::string>& templates) {
  v1::ListJobsResponse page;
  for (const auto& [configuration, seed] : jobs) {
    v1::JobRow& row = *page.add_jobs();
    row.set_configuration_id(configuration);
    row.set_seed(seed);
  }
  for (const auto& [id, text] : templates) {
    v1::Configuration& configuration = *page.add_configurations();
    configuration.set_configuration_id(id);
    configuration.set_spec_template(text);
  }
  return page;
}

TEST(JobListTest, PagesGiveEveryJobItsSpec) {
  JobList jobs;
  jobs.Add(Page({{4, 0}, {9, 1}}, {{4, "{\"seed\":\x1f}"}, {9, "{\"a\":1,\"seed\":\x1f}"}}));
  jobs.Add(Page({{9, 9007199254740991}}, {{9, "{\"a\":1,\"seed\":\x1f}"}}));
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs.SpecOf(jobs.rows()[0]), R"({"seed":0})");
  EXPECT_EQ(jobs.SpecOf(jobs.rows()[1]), R"({"a":1,"seed":1})");
  EXPECT_EQ(jobs.SpecOf(jobs.rows()[2]), R"({"a":1,"seed":9007199254740991})");
  EXPECT_EQ(jobs.templates().size(), 2u);
  EXPECT_EQ(ToJsonArray(jobs)[2]["spec"]["seed"], 9007199254740991);
  EXPECT_EQ(ToJsonArray(jobs)[2]["configuration_id"], 9);
}

TEST(JobListTest, WholeRowsOfACoordinatorWithoutConfigurationsAreTheSame) {
  const std::vector<v1::JobRow> rows = {
      MakeJob(1, "rope", 0, kDone, 100), MakeJob(2, "rope", 1, kDone, 100),
      MakeJob(3, "nope", 1, kDone, 100), MakeJob(4, "rope", 2, kDone, 100, "0.001", 7)};
  v1::ListJobsResponse first, second;
  for (int i = 0; i < 2; ++i) *first.add_jobs() = rows[i];
  for (int i = 2; i < 4; ++i) *second.add_jobs() = rows[i];
  JobList jobs;
  jobs.Add(first);
  jobs.Add(second);
  ASSERT_EQ(jobs.size(), 4u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(jobs.rows()[i].spec_json(), "");
    EXPECT_EQ(jobs.SpecOf(jobs.rows()[i]), rows[i].spec_json());
  }
  EXPECT_EQ(jobs.templates().size(), 3u) << "two seeds share theirs";
  EXPECT_TRUE(ToJsonArray(jobs)[0]["configuration_id"].is_null()) << "it has none there";
}

TEST(JobListTest, AConfigurationThatIsNotThereLeavesNoSpec) {
  JobList jobs;
  jobs.Add(Page({{4, 0}}, {}));
  EXPECT_EQ(jobs.SpecOf(jobs.rows()[0]), "");
}

}  // namespace
}  // namespace pelab::results
