// Which trace a sweep and its attempts belong to, and the spans that the coordinator records.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/trace_context.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using Json = nlohmann::json;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kClient[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class TracesTest : public CoordinatorTest {
 protected:
  TracesTest() { options_.trace_file = directory_ + "/spans"; }

  void SubmitWith(const std::string& traceparent, const std::string& name,
                  const std::string& seeds = "0") {
    v1::SubmitRequest request;
    request.set_document(Document(name, seeds));
    request.set_client_token(name + seeds);
    const auto context = Context();
    context->AddMetadata(kTraceparentKey, traceparent);
    v1::SubmitResponse response;
    const grpc::Status status = sweeps_->Submit(context.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  static TraceContext SpanOf(const v1::Assignment& assignment) {
    const auto read = ParseTraceparent(assignment.traceparent());
    EXPECT_TRUE(read) << assignment.traceparent();
    return read.value_or(TraceContext());
  }
  // The spans with this name, once there are any.
  std::vector<Json> Spans(const std::string& name) {
    const absl::Time end = absl::Now() + kPatience;
    std::vector<Json> spans = Recorded(name);
    for (; spans.empty() && absl::Now() < end; spans = Recorded(name)) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    return spans;
  }
  std::vector<Json> Recorded(const std::string& name) const {
    std::vector<Json> spans;
    for (const auto line : absl::StrSplit(*ReadFile(options_.trace_file, 1 << 20), '\n')) {
      if (line.empty()) continue;
      const Json span =
          Json::parse(std::string(line))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
      if (span["name"] == name) spans.push_back(span);
    }
    return spans;
  }
  v1::AttemptRow AttemptOf(std::int64_t job) {
    v1::ListAttemptsRequest request;
    request.mutable_filter()->add_jobs(absl::StrCat(job));
    v1::ListAttemptsResponse response;
    EXPECT_TRUE(results_->ListAttempts(Context().get(), request, &response).ok());
    EXPECT_GT(response.rows_size(), 0);
    return *response.rows().rbegin();
  }
};

TEST_F(TracesTest, FromTheClientToTheAttempt) {
  SubmitWith(kClient, "s");
  EXPECT_EQ(GetSweep("s").trace_id(), kTrace);
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  EXPECT_EQ(assignment.sweep_id(), GetSweep("s").sweep_id()) << "for the worker's logs";
  const TraceContext told = SpanOf(assignment);
  EXPECT_EQ(told.trace_id, kTrace);
  const v1::AttemptRow row = AttemptOf(assignment.job_id());
  EXPECT_EQ(row.trace_id(), kTrace);
  EXPECT_EQ(row.span_id(), told.span_id);
  worker.Send(Script(assignment).Whole(3));
  worker.AwaitAck(assignment.attempt_id(), 6);

  const std::vector<Json> attempts = Spans("attempt");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0]["spanId"], told.span_id);
  const std::vector<Json> calls = Spans("Sweeps/Submit");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(attempts[0]["parentSpanId"], calls[0]["spanId"]);
  EXPECT_EQ(attempts[0]["status"], Json::object());
  const Json method = {{"key", "rpc.method"}, {"value", {{"stringValue", "Submit"}}}};
  EXPECT_THAT(calls[0]["attributes"], testing::Contains(method));
}

TEST_F(TracesTest, AnAttemptKeepsItsSpanWhenTheCoordinatorRestarts) {
  SubmitWith(kClient, "s");
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  worker.Vanish();
  Restart();
  FakeWorker again(channel_, "w1", 1, {Holding(assignment)});
  again.Send(Script(assignment).Whole(3));
  again.AwaitAck(assignment.attempt_id(), 6);
  const std::vector<Json> attempts = Spans("attempt");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0]["spanId"], SpanOf(assignment).span_id);
  EXPECT_EQ(attempts[0]["parentSpanId"], Spans("Sweeps/Submit").at(0)["spanId"]);
}

TEST_F(TracesTest, ASweepWhoseClientNamesNoneHasATraceOfItsOwn) {
  Submit(Document("plain", "0"), "a");
  SubmitWith("nonsense", "odd", "1");
  const std::string plain = GetSweep("plain").trace_id();
  EXPECT_TRUE(ParseTraceparent("00-" + plain + "-b7ad6b7169203331-01")) << plain;
  EXPECT_NE(GetSweep("odd").trace_id(), plain);
  FakeWorker worker(channel_, "w1", 1);
  const v1::Assignment assignment = worker.AwaitAssignment();
  EXPECT_EQ(SpanOf(assignment).trace_id, plain);
  worker.Send({Script(assignment).Finished(v1::ATTEMPT_OUTCOME_FAILED, v1::ERROR_KIND_BAD_SPEC)});
  worker.AwaitAck(assignment.attempt_id(), 1);
  const std::vector<Json> attempts = Spans("attempt");
  ASSERT_EQ(attempts.size(), 1u);
  EXPECT_EQ(attempts[0].count("parentSpanId"), 0u) << "it is the first span of its trace";
  EXPECT_EQ(attempts[0]["status"]["message"], "bad_spec");
}

// A job that two sweeps have runs for the older one.
TEST_F(TracesTest, ASharedJobBelongsToTheOlderSweep) {
  SubmitWith(kClient, "old", "0");
  SubmitWith("00-11111111111111111111111111111111-b7ad6b7169203331-01", "new", "[0, 1]");
  FakeWorker worker(channel_, "w1", 4);
  std::map<std::string, int> attempts;
  for (int i = 0; i < 4; ++i) ++attempts[SpanOf(worker.AwaitAssignment()).trace_id];
  EXPECT_EQ(attempts[kTrace], 2);
  EXPECT_EQ(attempts["11111111111111111111111111111111"], 2);
}

// A script may submit several sweeps in one trace.
TEST_F(TracesTest, SweepsOfOneTraceHaveAttemptsOfTheirOwn) {
  SubmitWith(kClient, "first", "0");
  SubmitWith("00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01", "second", "[0, 1]");
  FakeWorker worker(channel_, "w1", 4);
  std::vector<std::int64_t> attempts;
  for (int i = 0; i < 4; ++i) {
    const v1::Assignment assignment = worker.AwaitAssignment();
    attempts.push_back(assignment.attempt_id());
    worker.Send({Script(assignment).Finished(v1::ATTEMPT_OUTCOME_FAILED, v1::ERROR_KIND_BAD_SPEC)});
  }
  for (const std::int64_t attempt : attempts) worker.AwaitAck(attempt, 1);
  const absl::Time end = absl::Now() + kPatience;
  while (Recorded("attempt").size() < 4 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  std::map<std::string, int> of_call;
  for (const Json& span : Recorded("attempt")) ++of_call[span["parentSpanId"]];
  std::map<std::string, std::string> client_of;
  for (const Json& span : Recorded("Sweeps/Submit")) {
    client_of[span["spanId"]] = span["parentSpanId"];
  }
  std::map<std::string, int> of_client;
  for (const auto& [call, count] : of_call) of_client[client_of[call]] = count;
  EXPECT_EQ(of_client,
            (std::map<std::string, int>{{"b7ad6b7169203331", 2}, {"1111111111111111", 2}}));
}

TEST_F(TracesTest, ASweepThatGoesOnKeepsItsTrace) {
  SubmitWith(kClient, "s");
  v1::SubmitRequest request;
  request.set_document(Document("s", "0"));
  request.set_client_token("again");
  const auto context = Context();
  context->AddMetadata(kTraceparentKey, "00-11111111111111111111111111111111-b7ad6b7169203331-01");
  v1::SubmitResponse response;
  ASSERT_TRUE(sweeps_->Submit(context.get(), request, &response).ok());
  EXPECT_TRUE(response.went_on());
  EXPECT_EQ(GetSweep("s").trace_id(), kTrace);
}

}  // namespace
}  // namespace pelab
