#include "worker/agent/attempt_spans.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/temporary_folder.h"
#include "tests/support/fake_clock.h"

namespace pelab::agent {
namespace {

using Json = nlohmann::json;

constexpr char kAbove[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

v1::Event StartedEvent() {
  v1::Event event;
  event.mutable_started();
  return event;
}
v1::Event EpochEvent() {
  v1::Event event;
  event.mutable_epoch();
  return event;
}
v1::Event AblationEvent() {
  v1::Event event;
  event.mutable_head_ablation();
  return event;
}
v1::Finished FinishedAs(v1::AttemptOutcome outcome, const std::string& error = "") {
  v1::Finished finished;
  finished.set_outcome(outcome);
  finished.set_error(error);
  return finished;
}

class AttemptSpansTest : public testing::Test {
 protected:
  AttemptSpansTest() {
    file_ = *trace::SpanFile::Open(path_, "pelab-worker", "w1");
    assignment_.set_job_id(7);
    assignment_.set_attempt_id(12);
    assignment_.set_label("rope distance seed 0");
    assignment_.set_traceparent(kAbove);
  }
  void After(int seconds) { clock_.Advance(absl::Seconds(seconds)); }
  // The spans by name; ends the file.
  std::map<std::string, Json> Read() {
    file_.reset();
    std::map<std::string, Json> spans;
    for (const auto line : absl::StrSplit(ReadFile(path_, 1 << 20).value_or(""), '\n')) {
      if (line.empty()) continue;
      const Json span =
          Json::parse(std::string(line))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
      EXPECT_TRUE(spans.emplace(span["name"], span).second) << line;
    }
    return spans;
  }
  static double Seconds(const Json& span) {
    std::int64_t start = 0;
    std::int64_t end = 0;
    EXPECT_TRUE(absl::SimpleAtoi(span["startTimeUnixNano"].get<std::string>(), &start));
    EXPECT_TRUE(absl::SimpleAtoi(span["endTimeUnixNano"].get<std::string>(), &end));
    return static_cast<double>(end - start) / 1e9;
  }

  TemporaryFolder folder_ = *TemporaryFolder::Make("spans");
  const std::string path_ = folder_.path() + "/spans";
  std::unique_ptr<trace::SpanFile> file_;
  FakeClock clock_;
  v1::Assignment assignment_;
};

TEST_F(AttemptSpansTest, EveryPartHasItsTime) {
  AttemptSpans spans(assignment_, clock_, file_.get());
  After(1);
  spans.Fetched();
  After(2);
  spans.Said(StartedEvent());
  After(4);
  spans.Said(EpochEvent());
  After(8);
  spans.Said(EpochEvent());
  After(16);
  spans.Said(AblationEvent());
  After(32);
  spans.Uploaded();
  After(64);
  spans.Ended(FinishedAs(v1::ATTEMPT_OUTCOME_SUCCEEDED));
  auto read = Read();
  ASSERT_EQ(read.size(), 6u);
  const Json attempt = read["attempt on worker"];
  EXPECT_EQ(Seconds(read["fetch"]), 1);
  EXPECT_EQ(Seconds(read["start trainer"]), 2);
  EXPECT_EQ(Seconds(read["train"]), 12);
  EXPECT_EQ(Seconds(read["analysis"]), 16);
  EXPECT_EQ(Seconds(read["upload"]), 32);
  EXPECT_EQ(Seconds(attempt), 127);
  EXPECT_EQ(attempt["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(attempt["status"], Json::object());
  EXPECT_EQ(spans.traceparent(), "") << "it has ended";
  for (const auto& [name, span] : read) {
    EXPECT_EQ(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    if (name != attempt["name"].get<std::string>()) {
      EXPECT_EQ(span["parentSpanId"], attempt["spanId"]) << name;
    }
  }
}

TEST_F(AttemptSpansTest, AnAttemptThatDoesNotSucceedSaysWhy) {
  AttemptSpans spans(assignment_, clock_, file_.get());
  spans.Said(StartedEvent());
  spans.Said(EpochEvent());
  spans.Ended(FinishedAs(v1::ATTEMPT_OUTCOME_FAILED, "out of memory"));
  spans.Ended(FinishedAs(v1::ATTEMPT_OUTCOME_SUCCEEDED));
  auto read = Read();
  EXPECT_EQ(read["attempt on worker"]["status"]["message"], "out of memory");
  EXPECT_EQ(read.count("train"), 1u) << "what was trained until then is shown";
}

TEST_F(AttemptSpansTest, AnInterruptedOneHasItsOutcome) {
  AttemptSpans spans(assignment_, clock_, file_.get());
  spans.Ended(FinishedAs(v1::ATTEMPT_OUTCOME_PREEMPTED));
  EXPECT_EQ(Read()["attempt on worker"]["status"]["message"], "preempted");
}

TEST_F(AttemptSpansTest, TheTrainerGetsTheSpanOfTheAttempt) {
  AttemptSpans spans(assignment_, clock_, nullptr);
  const auto told = ParseTraceparent(spans.traceparent());
  ASSERT_TRUE(told) << "also if nothing is recorded";
  EXPECT_EQ(told->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_NE(told->span_id, "b7ad6b7169203331");
}

TEST_F(AttemptSpansTest, WithoutATraceNothingIsRecorded) {
  for (const char* none : {"", "nonsense"}) {
    assignment_.set_traceparent(none);
    AttemptSpans spans(assignment_, clock_, file_.get());
    EXPECT_EQ(spans.traceparent(), "");
    spans.Said(StartedEvent());
    spans.Ended(FinishedAs(v1::ATTEMPT_OUTCOME_SUCCEEDED));
  }
  EXPECT_TRUE(Read().empty());
}

TEST_F(AttemptSpansTest, LogLinesHaveTheAttemptsIds) {
  assignment_.set_sweep_id(3);
  assignment_.set_principal("ada");
  const LogIds ids = IdsOf(assignment_);
  EXPECT_EQ(ids.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(ids.span_id, "b7ad6b7169203331");
  EXPECT_EQ(ids.principal, "ada");
  EXPECT_EQ(ids.sweep_id, 3);
  EXPECT_EQ(ids.job_id, 7);
  EXPECT_EQ(ids.attempt_id, 12);
}

}  // namespace
}  // namespace pelab::agent
