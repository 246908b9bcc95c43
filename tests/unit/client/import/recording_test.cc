#include "client/import/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/strings.h"
#include "core/experiment/job.h"
#include "tests/support/status_matchers.h"

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kWritten = 1'000'000;  // ms

experiment::JobDocument Document() {
  return {.job_id = "j",
          .job = experiment::MakeJob("clean", "nope", "distance", 0,
                                     {{"train.epochs", std::int64_t{3}},
                                      {"task.train_examples", std::int64_t{100}},
                                      {"task.test_examples", std::int64_t{10}}}),
          .analyses = {}};
}

std::string Hello(int start_epoch, int threads = 1) {
  return Concat(R"({"event":"hello","job":"j","protocol":1,"epochs":3,"device":"cuda:0",)",
                R"("device_name":"H200","trainer":"0.1.0","micro_batch":0,"packing":1,"threads":)",
                threads, R"(,"start_epoch":)", start_epoch, "}");
}
std::string Epoch(int epoch, int test_correct = 1) {
  return Concat(R"({"event":"epoch","job":"j","epoch":)", epoch, R"(,"test_correct":)",
                test_correct,
                R"(,"train_loss":1,"train_correct":5,"train_total":100,"test_loss":2,)",
                R"("test_total":10,"learning_rate":0.001,"seconds":2})");
}
constexpr char kDoneLine[] = R"({"event":"done","job":"j","wall_seconds":7})";

class RecordingTest : public testing::Test {
 protected:
  void Add(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) ASSERT_THAT(recording_.Add(line), IsOk()) << line;
  }
  std::string Complaint(const std::string& line) {
    return std::string(recording_.Add(line).message());
  }

  Recording recording_{Document(), "/nowhere"};
};

TEST_F(RecordingTest, ALaterCallReplacesTheEpochsFromItsStartOn) {
  Add({Hello(0), Epoch(0), Epoch(1, 4), Hello(1), Epoch(1, 6)});
  EXPECT_FALSE(recording_.finished());
  Add({Epoch(2), kDoneLine});
  ASSERT_TRUE(recording_.finished());
  const db::ExportedJob job = recording_.Export(kWritten);
  std::vector<std::int64_t> correct;
  for (const v1::Epoch& epoch : job.epochs) correct.push_back(epoch.test_correct());
  EXPECT_THAT(correct, ElementsAre(1, 6, 1));
  ASSERT_EQ(job.job.attempts_size(), 2);
  EXPECT_EQ(job.job.attempts(0).outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_EQ(job.job.attempts(1).outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(job.job.attempts(1).start_epoch(), 1);
  EXPECT_EQ(job.job.device(), "cuda:0");
  EXPECT_EQ(job.job.execution_json(), R"({"threads":1,"micro_batch":0,"packing":1})");
  EXPECT_EQ(job.job.pe_label(), "nope");
  EXPECT_EQ(job.job.protocol(), "clean");
  EXPECT_DOUBLE_EQ(job.job.wall_seconds(), 7);
}

TEST_F(RecordingTest, TimesFollowFromTheFileIfNothingIsSaidOfThem) {
  Add({Hello(0), Epoch(0), Epoch(1), Hello(2), Epoch(2), kDoneLine});
  const v1::ImportedJob job = recording_.Export(kWritten).job;
  // The last call took 7 s and ended when the file was written; the first one had two epochs.
  EXPECT_EQ(job.attempts(1).ended_at_ms(), kWritten);
  EXPECT_EQ(job.attempts(1).started_at_ms(), kWritten - 7000);
  EXPECT_EQ(job.attempts(0).ended_at_ms(), kWritten - 7000);
  EXPECT_EQ(job.attempts(0).started_at_ms(), kWritten - 11000);
  EXPECT_EQ(job.created_at_ms(), kWritten - 11000);
  EXPECT_EQ(job.workers(0).host(), "unknown");
}

TEST_F(RecordingTest, CallsSayWhenAndWhereTheyWere) {
  Add({R"({"event":"call","job":"j","host":"a","unix_ms":1000})", Hello(0), Epoch(0),
       R"({"event":"returned","job":"j","unix_ms":9000})",
       R"({"event":"call","job":"j","host":"b","unix_ms":20000})", Hello(1), Epoch(1), Epoch(2),
       kDoneLine});
  const v1::ImportedJob job = recording_.Export(kWritten).job;
  EXPECT_EQ(job.attempts(0).started_at_ms(), 1000);
  EXPECT_EQ(job.attempts(0).ended_at_ms(), 9000);
  EXPECT_EQ(job.attempts(1).started_at_ms(), 20000);
  EXPECT_EQ(job.attempts(1).ended_at_ms(), 27000);
  ASSERT_EQ(job.workers_size(), 2);
  EXPECT_EQ(job.workers(1).host(), "b");
  EXPECT_NE(job.attempts(0).worker_id(), job.attempts(1).worker_id());
}

TEST_F(RecordingTest, ACallWithoutAHelloChangesNoOther) {
  Add({R"({"event":"call","job":"j","host":"a","unix_ms":1000})", Hello(0), Epoch(0), Epoch(1),
       Epoch(2), kDoneLine, R"({"event":"returned","job":"j","unix_ms":9000})",
       R"({"event":"call","job":"j","host":"b","unix_ms":20000})",
       R"({"event":"returned","job":"j","unix_ms":21000})"});
  const v1::ImportedJob job = recording_.Export(kWritten).job;
  ASSERT_EQ(job.attempts_size(), 1);
  EXPECT_EQ(job.attempts(0).ended_at_ms(), 9000);
}

TEST_F(RecordingTest, AnErrorEndsItsCallAlone) {
  Add({Hello(0), Epoch(0), R"({"event":"error","job":"j","kind":"io","message":"full"})"});
  EXPECT_FALSE(recording_.finished());
  Add({Hello(0), Epoch(0), Epoch(1), Epoch(2), kDoneLine});
  const v1::ImportedJob job = recording_.Export(kWritten).job;
  EXPECT_EQ(job.attempts(0).outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(job.attempts(0).error_kind(), "io");
  EXPECT_EQ(job.attempts(0).error(), "full");
}

TEST_F(RecordingTest, LinesThatCannotFollow) {
  EXPECT_THAT(Complaint(Epoch(0)), HasSubstr("a result comes before a hello"));
  EXPECT_THAT(Complaint(kDoneLine), HasSubstr("it comes before a hello"));
  EXPECT_THAT(Complaint(Hello(1)), HasSubstr("starts at epoch 1, but epoch 0 is not there"));
  EXPECT_THAT(Complaint(R"({"event":"call","job":"j","unix_ms":"now"})"), HasSubstr("unix_ms"));
  Add({Hello(0), Epoch(0)});
  EXPECT_THAT(Complaint(Epoch(2)), HasSubstr("epoch 2 comes where epoch 1 is due"));
  EXPECT_THAT(Complaint(Epoch(1, 11)), HasSubstr("test_correct"));
  EXPECT_THAT(Complaint(kDoneLine), HasSubstr("done after 1 of 3 epochs"));
  EXPECT_THAT(Complaint(Hello(1, 2)), HasSubstr("other threads"));
  Add({R"({"event":"of a later version","job":"j"})", Epoch(1), Epoch(2), kDoneLine});
  EXPECT_TRUE(recording_.finished());
}

}  // namespace
}  // namespace pelab::client
