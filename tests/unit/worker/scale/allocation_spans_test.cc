// The traces of allocations: their spans, and which calls and workers they are passed on to.
#include "worker/scale/allocation_spans.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/temporary_folder.h"
#include "tests/unit/worker/scale/scaler_fixture.h"

namespace pelab::scale {
namespace {

using Json = nlohmann::json;

const TraceContext kOuter{"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"};

class AllocationSpansTest : public ScalerTest {
 protected:
  AllocationSpansTest() { coordinator_.given = {{.queue = Named("a")}}; }

  void BeginTraced(std::optional<TraceContext> outer) {
    file_ = *trace::SpanFile::Open(path_, "pelab-scale", "");
    traces_.emplace(clock_, file_.get(), std::move(outer));
    scaler_.emplace(&batch_, &coordinator_, &*traces_);
    ASSERT_THAT(scaler_->Report(), IsOk());
    Look();
  }
  void Report() { ASSERT_THAT(scaler_->Report(), IsOk()); }
  // Submits one allocation, if one less than `jobs` is on its way.
  std::string Submit(std::int64_t jobs = 1) {
    coordinator_.demand = {.waiting_jobs = jobs};
    Step();
    coordinator_.demand = {};
    return absl::StrCat(batch_.last);
  }
  void After(int seconds) { clock_.Advance(absl::Seconds(seconds)); }
  // The spans by name; ends the file.
  std::map<std::string, Json> Read() {
    scaler_.reset();
    file_->Finish();
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
  std::optional<AllocationSpans> traces_;
};

TEST_F(AllocationSpansTest, AnAllocationHasASpanForEachOfItsPhases) {
  BeginTraced(kOuter);
  const std::string id = Submit();
  After(30);
  batch_.Set(id, "RUNNING");
  Look();
  After(5);
  Start(id);
  After(600);
  batch_.Set(id, "COMPLETING");
  Look();
  After(2);
  batch_.Set(id, "COMPLETED");
  Look();
  const std::map<std::string, Json> spans = Read();
  ASSERT_EQ(spans.size(), 5u);
  const Json& whole = spans.at("allocation");
  EXPECT_EQ(whole["traceId"], kOuter.trace_id);
  EXPECT_EQ(whole["parentSpanId"], kOuter.span_id);
  EXPECT_EQ(whole["spanId"], batch_.spans.at(0).span_id) << "the worker is told this one";
  EXPECT_EQ(whole["status"], Json::object());
  EXPECT_EQ(Seconds(whole), 637);
  for (const auto& [name, seconds] : std::map<std::string, int>{
           {"waiting", 30}, {"starting", 5}, {"running", 600}, {"ending", 2}}) {
    EXPECT_EQ(Seconds(spans.at(name)), seconds) << name;
    EXPECT_EQ(spans.at(name)["parentSpanId"], whole["spanId"]) << name;
    EXPECT_EQ(spans.at(name)["traceId"], whole["traceId"]) << name;
  }
}

TEST_F(AllocationSpansTest, WithoutAnOuterSpanEachHasATraceOfItsOwn) {
  BeginTraced(std::nullopt);
  Submit();
  batch_.refuses = "invalid partition";
  Submit(2);
  ASSERT_EQ(batch_.spans.size(), 2u);
  EXPECT_NE(batch_.spans[0].trace_id, batch_.spans[1].trace_id);
  const std::map<std::string, Json> spans = Read();
  ASSERT_EQ(spans.size(), 1u) << "the first one is not over";
  EXPECT_EQ(spans.at("allocation").count("parentSpanId"), 0u);
  EXPECT_EQ(spans.at("allocation")["status"]["message"], "invalid partition");
}

TEST_F(AllocationSpansTest, ReportsOfNewsBelongToTheAllocation) {
  BeginTraced(kOuter);
  Report();
  EXPECT_FALSE(coordinator_.report_span) << "there is no news";
  const std::string id = Submit();
  const TraceContext span = batch_.spans.at(0);
  coordinator_.away = "no answer";
  EXPECT_THAT(scaler_->Report(), testing::Not(IsOk()));
  coordinator_.away.clear();
  Report();
  EXPECT_EQ(coordinator_.report_span, span) << "it is not told yet";
  Report();
  EXPECT_FALSE(coordinator_.report_span);
  Start(id);
  Report();
  EXPECT_EQ(coordinator_.report_span, span);
  // Its node is lost, and the worker says no goodbye.
  batch_.Set(id, "NODE_FAIL");
  Look();
  EXPECT_EQ(coordinator_.gone_span, span);
  EXPECT_EQ(coordinator_.gone.size(), 1u);
  Report();
  EXPECT_EQ(coordinator_.report_span, span);
  EXPECT_EQ(Read().at("allocation")["status"]["message"], "NODE_FAIL");
}

TEST_F(AllocationSpansTest, AnAllocationOfAnEarlierProgramHasNone) {
  batch_.listed["a"].push_back({"7", "RUNNING", ""});
  coordinator_.workers["pelab-a-7"] = true;
  BeginTraced(kOuter);
  batch_.Set("7", "NODE_FAIL");
  Look();
  EXPECT_EQ(coordinator_.gone.size(), 1u);
  EXPECT_FALSE(coordinator_.gone_span);
  EXPECT_TRUE(Read().empty());
}

TEST_F(AllocationSpansTest, AnAllocationThatIsOverIsForgottenInTheEnd) {
  BeginTraced(kOuter);
  for (int i = 0; i < 2; ++i) {
    const std::string id = Submit();
    Start(id);
    batch_.Set(id, "COMPLETED");
    Look();
    EXPECT_TRUE(traces_->Of(id));
    After(3601);
  }
  EXPECT_FALSE(traces_->Of("1"));
  EXPECT_TRUE(traces_->Of("2"));
}

}  // namespace
}  // namespace pelab::scale
