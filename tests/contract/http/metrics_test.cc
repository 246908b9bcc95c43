// GET /metrics over a real socket: who may read it, and that it has what happened.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "pelab/v1/admin.grpc.pb.h"
#include "pelab/v1/allocations.grpc.pb.h"
#include "tests/contract/http/http_fixture.h"

namespace pelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MetricsTest : public HttpTest {
 protected:
  // Runs one of two jobs to its end; the other one stays on its slot.
  void Train() {
    Submit(Document("trains", "[0]"), "t");
    worker_ = std::make_unique<FakeWorker>(channel_, "worker-1", 2);
    Script done(worker_->AwaitAssignment());
    worker_->AwaitAssignment();
    worker_->Send(done.Whole(3));
    worker_->AwaitAck(done.assignment().attempt_id(), done.sequence());
    AwaitSweep("trains", [](const v1::Sweep& sweep) { return sweep.jobs().succeeded() == 1; });
  }
  std::string Scrape() const {
    const HttpAnswer answer = Ask("/metrics");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }

  // Scrapes until the line is there: the scheduler hears of a commit a moment after its worker.
  void Await(const std::string& line) const {
    const absl::Time end = absl::Now() + kPatience;
    while (Scrape().find("\n" + line + "\n") == std::string::npos) {
      ASSERT_LT(absl::Now(), end) << "no " << line;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  std::unique_ptr<FakeWorker> worker_;
};

TEST_F(MetricsTest, HaveWhatHappened) {
  Train();
  Await("pelab_slots{state=\"free\",kind=\"cpu\"} 1");
  const HttpAnswer answer = Ask("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(answer.Header("Cache-Control"), "no-store");
  for (const char* const line :
       {"pelab_jobs{state=\"succeeded\"} 1", "pelab_sweeps{state=\"active\"} 1",
        "pelab_slots{state=\"busy\",kind=\"cpu\"} 1", "pelab_slots{state=\"free\",kind=\"cpu\"} 1",
        "pelab_slots_wanted{kind=\"any\"} 0", "pelab_epochs_stored_total 3",
        "pelab_attempts_ended_total{outcome=\"succeeded\",error=\"none\"} 1",
        "pelab_dispatch_wait_seconds_count 2", "pelab_worker_streams 1",
        "pelab_worker_quarantined{worker=\"test-host\"} 0", "pelab_store_writable 1",
        "pelab_rpc_requests_total{method=\"Sweeps/Submit\",code=\"OK\"} 1",
        "pelab_rpc_duration_seconds_count{method=\"Sweeps/Submit\"} 1"}) {
    EXPECT_THAT(answer.body, HasSubstr(std::string("\n") + line + "\n"));
  }
  EXPECT_THAT(answer.body, Not(HasSubstr("pelab_sweep_jobs")));
}

TEST_F(MetricsTest, AreReadLikeThePages) {
  EXPECT_EQ(Ask("/metrics", {}, "HEAD").status, 200);
  EXPECT_EQ(Ask("/metrics", {}, "POST").status, 405);
  EXPECT_EQ(Ask("/metrics", {{"Host", "evil.example.org"}}).status, 421);
  const HttpAnswer refused = Ask("/metrics?format=json");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("format"));
  EXPECT_EQ(Ask("/metrics/x").status, 404);
  // A token does no harm: a proxy may pass it on.
  EXPECT_EQ(Ask("/metrics", {{"Authorization", "Bearer whatever"}}).status, 200);
}

TEST_F(MetricsTest, CountCallsThatAreRefused) {
  v1::AddPrincipalRequest request;
  request.set_name("root");
  request.set_role(v1::ROLE_OPERATOR);
  v1::PrincipalToken response;
  grpc::ClientContext context;
  const grpc::Status added =
      v1::Admin::NewStub(channel_)->AddPrincipal(&context, request, &response);
  ASSERT_TRUE(added.ok()) << added.error_message();
  grpc::ClientContext nobody;
  v1::WhoAmIResponse answer;
  EXPECT_EQ(v1::Admin::NewStub(channel_)->WhoAmI(&nobody, {}, &answer).error_code(),
            grpc::UNAUTHENTICATED);
  EXPECT_THAT(Scrape(), HasSubstr("\npelab_rpc_requests_total{method=\"Admin/WhoAmI\","
                                  "code=\"UNAUTHENTICATED\"} 1\n"));
}

TEST_F(MetricsTest, GpusAreAsTheLastHeartbeatSaid) {
  Train();
  v1::Heartbeat beat;
  v1::DeviceLoad& load = *beat.add_loads();
  load.set_device("cuda:0");
  load.set_energy_joules(12.5);
  v1::GpuErrors& errors = *beat.add_gpu_errors();
  errors.set_device("cuda:1");
  errors.set_xid(79);
  errors.set_times(2);
  worker_->SendBeat(beat);
  Await("pelab_gpu_energy_joules_total{worker=\"test-host\",gpu=\"cuda:0\"} 12.5");
  Await("pelab_gpu_xid_errors_total{worker=\"test-host\",gpu=\"cuda:1\",xid=\"79\"} 2");
  worker_.reset();
  const absl::Time end = absl::Now() + kPatience;
  while (absl::StrContains(Scrape(), "pelab_gpu_energy_joules_total{")) {
    ASSERT_LT(absl::Now(), end) << "a worker that is gone has no samples";
  }
}

// The system's clock, or one that is ahead of it.
struct AheadClock final : Clock {
  absl::Duration Monotonic() const override { return SystemClock::Instance().Monotonic(); }
  absl::Time Wall() const override {
    return SystemClock::Instance().Wall() + absl::Minutes(ahead.load());
  }
  std::atomic<int> ahead = 0;  // minutes
};

class QueueMetricsTest : public MetricsTest {
 protected:
  QueueMetricsTest() { options_.clock = &clock_; }
  void TearDown() override { coordinator_.reset(); }  // before its clock

  template <typename Method, typename Request, typename Response>
  void Call(Method method, const Request& request, Response& response) {
    const auto stub = v1::Allocations::NewStub(channel_);
    const grpc::Status status = (stub.get()->*method)(Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  void Put(const std::string& name) {
    v1::PutQueueRequest request;
    request.set_name(name);
    request.set_settings_json(R"({"worker":[],"workdir":"/w","time_limit":"4h"})");
    v1::QueueRow row;
    Call(&v1::Allocations::Stub::PutQueue, request, row);
  }
  void Report(const std::string& queue, const std::vector<std::string>& phases) {
    v1::ReportQueuesRequest request;
    request.add_queues()->set_name(queue);
    for (const std::string& phase : phases) {
      request.mutable_queues(0)->add_allocations()->set_phase(phase);
    }
    v1::ListQueuesResponse queues;
    Call(&v1::Allocations::Stub::ReportQueues, request, queues);
  }

  AheadClock clock_;
};

TEST_F(QueueMetricsTest, AllocationsAreThoseOfTheLastReport) {
  EXPECT_THAT(Scrape(), AllOf(HasSubstr("# TYPE pelab_allocations gauge\n"),
                              Not(HasSubstr("pelab_allocations{"))));
  Put("gpu");
  Put("cpu");
  EXPECT_THAT(Scrape(), Not(HasSubstr("pelab_allocations{"))) << "nobody has reported";
  EXPECT_THAT(Scrape(), HasSubstr("\npelab_allocation_queue_paused{queue=\"cpu\"} 0\n"
                                  "pelab_allocation_queue_paused{queue=\"gpu\"} 0\n"));
  Report("gpu", {"waiting", "running", "running", "sideways"});
  EXPECT_THAT(Scrape(), HasSubstr("\npelab_allocations{queue=\"gpu\",state=\"ending\"} 0\n"
                                  "pelab_allocations{queue=\"gpu\",state=\"running\"} 2\n"
                                  "pelab_allocations{queue=\"gpu\",state=\"starting\"} 0\n"
                                  "pelab_allocations{queue=\"gpu\",state=\"waiting\"} 1\n#"));
  v1::PauseQueueRequest pause;
  pause.set_name("gpu");
  pause.set_reason("maintenance");
  v1::QueueRow row;
  Call(&v1::Allocations::Stub::PauseQueue, pause, row);
  EXPECT_THAT(Scrape(), HasSubstr("\npelab_allocation_queue_paused{queue=\"gpu\"} 1\n"));
  clock_.ahead = 6;
  EXPECT_THAT(Scrape(), Not(HasSubstr("pelab_allocations{"))) << "pelab-scale is silent";
}

class MetricsOfSweepsTest : public MetricsTest {
 protected:
  MetricsOfSweepsTest() { options_.metrics_sweeps = true; }
};

TEST_F(MetricsOfSweepsTest, LiveSweepsHaveSamplesOfTheirOwn) {
  Train();
  EXPECT_THAT(Scrape(), HasSubstr("\npelab_sweep_jobs{sweep=\"1\",name=\"trains\","
                                  "state=\"succeeded\"} 1\n"));
  v1::CancelRequest request;
  request.mutable_sweep()->set_sweep("trains");
  v1::CancelResponse response;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), request, &response).ok());
  EXPECT_THAT(Scrape(), Not(HasSubstr("name=\"trains\"")));
}

}  // namespace
}  // namespace pelab
