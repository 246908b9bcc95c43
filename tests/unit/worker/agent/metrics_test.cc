// What a worker shows on /metrics, and to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "worker/agent/metrics_server.h"
#include "worker/agent/worker_metrics.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The first GPU does not say how busy it is; the second one neither its memory nor its energy.
std::vector<SlotPlan> PlansOfFakeGpus() {
  SlotPlan first{.cuda_visible_devices = "GPU-11111111-0000"};
  first.slot.set_device("cuda:0");
  SlotPlan second{.cuda_visible_devices = "GPU-22222222-0000"};
  second.slot.set_device("cuda:1");
  return {first, first, second};
}

TEST(WorkerMetrics, HasEachGpuOnce) {
  auto nvml = LoadNvml(PELAB_FAKE_NVML);
  ASSERT_THAT(nvml, IsOk());
  const GpuFaults no_faults(nullptr, {});
  WorkerMetrics metrics("w1", testing::TempDir(), *std::move(nvml), PlansOfFakeGpus(), &no_faults);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("pelab_build_info{version=\"" PELAB_VERSION "\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gauge\npelab_gpu_busy_ratio{worker=\"w1\",gpu=\"cuda:1\"} 0.87"));
  EXPECT_THAT(text, HasSubstr("gauge\npelab_gpu_memory_used_bytes{worker=\"w1\",gpu=\"cuda:0\"} "
                              "100\npelab_gpu_memory_used_bytes{worker=\"w1\",gpu=\"cuda:1\"} 0\n"
                              "# HELP"));
  EXPECT_THAT(text, HasSubstr("counter\npelab_gpu_energy_joules_total{worker=\"w1\",gpu=\"cuda:0\"}"
                              " 12.5\n# HELP"));
  EXPECT_THAT(text, HasSubstr("pelab_disk_free_bytes{mount="));
}

TEST(WorkerMetrics, AWorkerWithoutGpusHasNoneOfTheirs) {
  const GpuFaults no_faults(nullptr, {});
  WorkerMetrics metrics("w1", testing::TempDir(), nullptr, {SlotPlan()}, &no_faults);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("worker=")));
  EXPECT_THAT(metrics.Text(), HasSubstr("pelab_build_info"));
}

TEST(MetricsServer, OnlyThisMachineReachesItUnlessAllowed) {
  EXPECT_THAT(CheckMetricsAddress(*rpc::ParseAddress("127.0.0.1:1"), false), IsOk());
  EXPECT_THAT(CheckMetricsAddress(*rpc::ParseAddress("[::1]:1"), false), IsOk());
  EXPECT_THAT(CheckMetricsAddress(*rpc::ParseAddress("0.0.0.0:7481"), true), IsOk());
  EXPECT_THAT(CheckMetricsAddress(*rpc::ParseAddress("0.0.0.0:7481"), false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--metrics 0.0.0.0:7481 can be reached from other machines")));
  EXPECT_THAT(CheckMetricsAddress(*rpc::ParseAddress("unix:/tmp/s"), true),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("allowed: HOST:PORT")));
}

TEST(MetricsServer, ServesOnePage) {
  const rpc::Address any = *rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed);
  const auto server = MetricsServer::Start(any, [] { return std::string("up 1\n"); });
  ASSERT_THAT(server, IsOk());
  const std::string url = (*server)->url();
  ASSERT_THAT(url, testing::EndsWith("/metrics"));
  const std::string origin = url.substr(0, url.rfind('/'));
  httplib::Client client(origin);
  const auto page = client.Get("/metrics");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->body, "up 1\n");
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(client.Get("/metrics?x=1")->status, 400);
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Post("/metrics")->status, 404);

  const std::string port = origin.substr(origin.rfind(':') + 1);
  const auto taken =
      MetricsServer::Start(*rpc::ParseAddress("127.0.0.1:" + port), [] { return ""; });
  EXPECT_THAT(taken.status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot listen on 127.0.0.1:")));
}

}  // namespace
}  // namespace pelab::agent
