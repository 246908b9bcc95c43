#include "core/results/varying.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(VaryingTest, NothingBesideTheSeed) {
  const JobList jobs({MakeJob(1, "nope", 0, kDone, 100), MakeJob(2, "nope", 1, kDone, 300),
                      MakeJob(3, "rope", 0, kDone, 700)});
  const Varying varying(jobs);
  EXPECT_THAT(varying.fields(), IsEmpty());
  EXPECT_EQ(varying.LabelOf(0), "");
}

TEST(VaryingTest, AnAxisAndItsValues) {
  const JobList jobs({MakeJob(1, "rope", 0, kDone, 100, "0.0001"),
                      MakeJob(2, "rope", 0, kDone, 300, "0.0003"),
                      MakeJob(3, "rope", 1, kDone, 700, "0.0003")});
  const Varying varying(jobs);
  EXPECT_THAT(varying.fields(), ElementsAre("train.lr"));
  EXPECT_EQ(varying.LabelOf(0), "train.lr=0.0001");
  EXPECT_EQ(varying.LabelOf(2), "train.lr=0.0003");
}

TEST(VaryingTest, SeveralFieldsAndOneThatIsNotThere) {
  std::vector<v1::JobRow> rows = {MakeJob(1, "rope", 0, kDone, 100, "0.1"),
                                  MakeJob(2, "rope", 0, kDone, 300, "0.2")};
  rows[1].set_spec_json(R"({"format":1,"model":{"layers":4},"pe":{"name":"rope"},"seed":0,)"
                        R"("task":{"data_seed":0,"name":"distance"},"train":{"lr":0.2}})");
  rows[1].set_protocol("published");
  const JobList jobs(rows);
  const Varying varying(jobs);
  // A protocol stands for the fields that it sets.
  EXPECT_THAT(varying.fields(), ElementsAre("protocol"));
  EXPECT_EQ(varying.LabelOf(1), "protocol=published");
  rows[1].set_protocol("clean");
  const JobList one_protocol(rows);
  EXPECT_EQ(Varying(one_protocol).LabelOf(0), "train.lr=0.1") << "it has no model.layers";
  EXPECT_EQ(Varying(one_protocol).LabelOf(1), "model.layers=4 train.lr=0.2");
}

}  // namespace
}  // namespace pelab::results
