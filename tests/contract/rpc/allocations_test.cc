// Queues of pelab-scale at a coordinator, what is reported of them, and workers that are gone.
#include "pelab/v1/allocations.grpc.pb.h"
#include "tests/contract/rpc/identity_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using Stub = v1::Allocations::Stub;

constexpr char kSettings[] = R"({"worker":[],"workdir":"/w","time_limit":"240m"})";

class AllocationsTest : public IdentityTest {
 protected:
  void SetUp() override {
    IdentityTest::SetUp();
    channel_ = With("");
  }
  template <typename Method, typename Request>
  absl::StatusOr<v1::QueueRow> Change(Method method, const Request& request) {
    v1::QueueRow row;
    const absl::Status status = Call<v1::Allocations>(channel_, method, request, row);
    if (!status.ok()) return status;
    return row;
  }
  absl::StatusOr<v1::QueueRow> Put(const std::string& name,
                                   const std::string& settings = kSettings) {
    v1::PutQueueRequest request;
    request.set_name(name);
    request.set_settings_json(settings);
    return Change(&Stub::PutQueue, request);
  }
  absl::StatusOr<v1::QueueRow> Pause(const std::string& name, const std::string& reason) {
    v1::PauseQueueRequest request;
    request.set_name(name);
    request.set_reason(reason);
    return Change(&Stub::PauseQueue, request);
  }
  absl::StatusOr<v1::QueueRow> Resume(const std::string& name) {
    v1::ResumeQueueRequest request;
    request.set_name(name);
    return Change(&Stub::ResumeQueue, request);
  }
  absl::StatusOr<v1::QueueRow> Remove(const std::string& name, bool cancel_waiting) {
    v1::RemoveQueueRequest request;
    request.set_name(name);
    request.set_cancel_waiting(cancel_waiting);
    return Change(&Stub::RemoveQueue, request);
  }
  v1::ListQueuesResponse ListAll() {
    v1::ListQueuesResponse queues;
    EXPECT_THAT(Call<v1::Allocations>(channel_, &Stub::ListQueues, v1::ListQueuesRequest(), queues),
                IsOk());
    return queues;
  }
  // Reports allocations of a queue, "1 waiting" for each.
  v1::ListQueuesResponse Report(const std::string& queue, const std::vector<std::string>& phases,
                                const std::string& pause = "") {
    v1::ReportQueuesRequest request;
    v1::QueueReport& report = *request.add_queues();
    report.set_name(queue);
    report.set_pause_reason(pause);
    for (const std::string& phase : phases) {
      v1::Allocation& one = *report.add_allocations();
      one.set_id(absl::StrCat(report.allocations_size()));
      one.set_phase(phase);
      one.set_reason("(Priority)\x1b[31m");
    }
    v1::ListQueuesResponse queues;
    EXPECT_THAT(Call<v1::Allocations>(channel_, &Stub::ReportQueues, request, queues), IsOk());
    return queues;
  }

  Channel channel_;
};

TEST_F(AllocationsTest, QueuesAndPausesOutliveTheCoordinator) {
  const auto put = Put("gpu");
  ASSERT_THAT(put, IsOk());
  EXPECT_EQ(put->settings_json(), R"({"time_limit":"4h","workdir":"/w","worker":[]})");
  ASSERT_THAT(Pause("gpu", "maintenance"), IsOk());
  Report("gpu", {"waiting", "running"});
  Restart();
  channel_ = With("");
  const v1::ListQueuesResponse queues = ListAll();
  ASSERT_EQ(queues.queues_size(), 1);
  const v1::QueueRow& gpu = queues.queues(0);
  EXPECT_EQ(gpu.name(), "gpu");
  EXPECT_EQ(gpu.settings_json(), put->settings_json());
  EXPECT_EQ(gpu.paused_reason(), "maintenance");
  EXPECT_GT(gpu.paused_at_ms(), 0);
  EXPECT_EQ(gpu.reported_at_ms(), 0) << "what was reported is in memory alone";
  ASSERT_THAT(Resume("gpu"), IsOk());
  EXPECT_EQ(ListAll().queues(0).paused_reason(), "");
}

TEST_F(AllocationsTest, ReportsAreShownAndAnswered) {
  ASSERT_THAT(Put("gpu"), IsOk());
  ASSERT_THAT(Put("cpu"), IsOk());
  const v1::ListQueuesResponse answer = Report("gpu", {"waiting", "running"});
  ASSERT_EQ(answer.queues_size(), 2);
  EXPECT_EQ(answer.queues(0).name(), "cpu");
  EXPECT_EQ(answer.queues(1).allocations_size(), 0) << "it knows them";
  const v1::ListQueuesResponse queues = ListAll();
  EXPECT_EQ(queues.queues(0).reported_at_ms(), 0);
  ASSERT_EQ(queues.queues(1).allocations_size(), 2);
  EXPECT_GT(queues.queues(1).reported_at_ms(), 0);
  EXPECT_EQ(queues.queues(1).allocations(1).phase(), "running");
  EXPECT_EQ(queues.queues(1).allocations(1).reason(), "(Priority)\\x1b[31m");
  EXPECT_EQ(Report("nobody", {"waiting"}).queues_size(), 2);
}

TEST_F(AllocationsTest, APauseThatWasDecidedIsKeptUntilAPersonEndsIt) {
  ASSERT_THAT(Put("gpu"), IsOk());
  EXPECT_EQ(Report("gpu", {}, "3 never connected").queues(0).paused_reason(), "3 never connected");
  EXPECT_EQ(Report("gpu", {}, "another").queues(0).paused_reason(), "3 never connected");
  ASSERT_THAT(Resume("gpu"), IsOk());
  EXPECT_EQ(Report("gpu", {}).queues(0).paused_reason(), "");
}

TEST_F(AllocationsTest, AQueueGoesWhenNoneOfItsAllocationsWaits) {
  ASSERT_THAT(Put("gpu"), IsOk());
  const auto marked = Remove("gpu", /*cancel_waiting=*/true);
  ASSERT_THAT(marked, IsOk());
  EXPECT_TRUE(marked->removing());
  EXPECT_TRUE(Report("gpu", {"waiting", "running"}).queues(0).removing());
  EXPECT_EQ(Report("gpu", {"running"}).queues_size(), 0);
  ASSERT_THAT(Put("gpu"), IsOk());
  ASSERT_THAT(Remove("gpu", /*cancel_waiting=*/false), IsOk());
  EXPECT_EQ(ListAll().queues_size(), 0);
}

TEST_F(AllocationsTest, WhatIsRefused) {
  EXPECT_THAT(Put("GPU").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a queue is named \"GPU\"")));
  EXPECT_THAT(Put("gpu", R"({"slots":0})").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slots must be an integer from 1 to 1024, not 0; it lacks")));
  for (const absl::Status& status : {Pause("gpu", "why").status(), Resume("gpu").status(),
                                     Remove("gpu", true).status(), Remove("", false).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no queue")));
  }
  ASSERT_THAT(Put("gpu"), IsOk());
  for (const std::string& reason : {std::string(), std::string("a\nb"), std::string(2000, 'x')}) {
    EXPECT_THAT(Pause("gpu", reason).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  }
}

TEST_F(AllocationsTest, AReportHasItsBounds) {
  ASSERT_THAT(Put("cpu"), IsOk());
  ASSERT_THAT(Put("gpu"), IsOk());
  Report("cpu", std::vector<std::string>(15'000, "running"));
  Report("gpu", std::vector<std::string>(15'000, "running"));
  const v1::ListQueuesResponse queues = ListAll();
  EXPECT_EQ(queues.queues(0).allocations_size(), 15'000);
  EXPECT_EQ(queues.queues(1).allocations_size(), 5'000);
}

TEST_F(AllocationsTest, AWorkerThatIsGoneIsFencedAtOnce) {
  v1::SubmitResponse sweep;
  ASSERT_THAT(SubmitAs(channel_, Document("s", "[0]"), &sweep), IsOk());
  FakeWorker worker(channel_, "worker-1", 1);
  worker.AwaitWelcome();
  const v1::Assignment lost = worker.AwaitAssignment();
  v1::WorkerGoneRequest request;
  v1::WorkerGoneResponse answer;
  EXPECT_THAT(Call<v1::Allocations>(channel_, &Stub::WorkerGone, request, answer),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  request.set_worker("test-host");
  request.set_reason("allocation 7 is over: NODE_FAIL");
  ASSERT_THAT(Call<v1::Allocations>(channel_, &Stub::WorkerGone, request, answer), IsOk());
  EXPECT_EQ(answer.attempts(), 1);
  EXPECT_EQ(worker.WaitForEnd().error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::HeldAttempt held;
  held.set_attempt_id(lost.attempt_id());
  held.set_token(lost.token());
  FakeWorker back(channel_, "worker-1", 1, {held});
  const v1::Welcome welcome = back.AwaitWelcome();
  ASSERT_EQ(welcome.held_size(), 1);
  EXPECT_FALSE(welcome.held(0).accepted());
  EXPECT_NE(back.AwaitAssignment().attempt_id(), lost.attempt_id());
}

}  // namespace
}  // namespace pelab
