#include "tests/bench/load/floods/honest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/bench/load/scenario.h"
#include "tests/support/fake_fleet.h"
#include "tests/support/temp_dir.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

// Answers lists, except while it is told to refuse.
class Lists final : public v1::Sweeps::Service {
 public:
  grpc::Status ListSweeps(grpc::ServerContext*, const v1::ListSweepsRequest*,
                          v1::ListSweepsResponse*) override {
    if (refusing) return {grpc::StatusCode::RESOURCE_EXHAUSTED, "no"};
    return grpc::Status::OK;
  }
  std::atomic<bool> refusing{false};
};
class Jobs final : public v1::Results::Service {
 public:
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse*) override {
    return grpc::Status::OK;
  }
};

TEST(HonestWorker, MeasuresHeartbeatsAndEventsAlsoUnanswered) {
  const TempDir dir;
  agent::FakeFleet fleet(dir / "s");
  fleet.SetTimes(absl::Milliseconds(50), absl::Seconds(60));
  v1::Assignment assignment;
  assignment.set_attempt_id(1);
  assignment.set_token(7);
  assignment.set_job_id(1);
  assignment.set_spec_json("{\"epochs\":100000}");
  std::thread assigner([&] {
    ASSERT_TRUE(fleet.Await([&] { return fleet.connected(); }));
    fleet.Assign(assignment);
  });
  const auto worker = HonestWorker::Start("unix:" + (dir / "s"));
  assigner.join();
  ASSERT_TRUE(worker.ok()) << worker.status();
  std::size_t answered = 0;
  EXPECT_TRUE(Await(kPatience, [&] { return (answered += (*worker)->Take().count()) > 10; }));
  fleet.SetAnsweringHeartbeats(false);
  fleet.SetAcknowledging(false);
  EXPECT_TRUE(Await(kPatience, [&] { return (*worker)->Unanswered().Max() > 500; }))
      << "what is not answered has waited since it was due";
  (*worker)->Take();
  fleet.SetAnsweringHeartbeats(true);
  double longest = 0;
  EXPECT_TRUE(Await(kPatience, [&] {
    longest = std::max(longest, (*worker)->Take().Max());
    return longest > 500;
  })) << "an answer counts for all heartbeats before it";
  EXPECT_FALSE((*worker)->MendSession());
  fleet.Disconnect();
  EXPECT_TRUE(Await(kPatience, [&] { return (*worker)->MendSession(); }));
  EXPECT_EQ(fleet.Hellos().size(), 2u);
}

TEST(HonestReader, CountsAnErrorAsAWait) {
  const TempDir dir;
  Lists lists;
  Jobs jobs;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + (dir / "s"), grpc::InsecureServerCredentials());
  builder.RegisterService(&lists);
  builder.RegisterService(&jobs);
  const auto server = builder.BuildAndStart();
  const auto reader = HonestReader::Start("unix:" + (dir / "s"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::size_t answered = 0;
  EXPECT_TRUE(Await(kPatience, [&] { return (answered += (*reader)->Take().count()) > 10; }));
  (*reader)->TakeErrors();
  lists.refusing = true;
  EXPECT_TRUE(Await(kPatience, [&] { return (*reader)->Unanswered().Max() > 500; }));
  EXPECT_GT((*reader)->TakeErrors(), 3);
  (*reader)->Take();
  lists.refusing = false;
  double longest = 0;
  EXPECT_TRUE(Await(kPatience, [&] {
    longest = std::max(longest, (*reader)->Take().Max());
    return longest > 500;
  })) << "a question that was refused is asked again, and has waited since it was due";
}

}  // namespace
}  // namespace pelab::load
