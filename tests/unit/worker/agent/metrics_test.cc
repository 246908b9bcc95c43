// What a worker shows on /metrics, and to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/raw_http.h"
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

// A worker that others can reach (--metrics 0.0.0.0:7481 --insecure) also trains.
class MetricsUnderAttack : public testing::Test {
 protected:
  void SetUp() override {
    auto server = MetricsServer::Start(*rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed),
                                       [] { return std::string("up 1\n"); });
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    const std::string& url = server_->url();
    origin_ = url.substr(0, url.rfind('/'));
  }
  UniqueFd Dial() const {
    return testing_support::DialLoopback(std::atoi(origin_.substr(origin_.rfind(':') + 1).c_str()));
  }
  static bool Send(int fd, const std::string& text) { return testing_support::SendText(fd, text); }

  std::unique_ptr<MetricsServer> server_;
  std::string origin_;
};

TEST_F(MetricsUnderAttack, HeadersEnd) {
  const UniqueFd fd = Dial();
  ASSERT_TRUE(Send(fd.get(), "GET /metrics HTTP/1.1\r\n"));
  EXPECT_LT(testing_support::SendHeadersWithoutEnd(fd.get()), 32u << 20)
      << "what the two sockets hold, and no end of it";
  const auto page = httplib::Client(origin_).Get("/metrics");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
}

TEST_F(MetricsUnderAttack, ASlowRequestEnds) {
  const UniqueFd fd = Dial();
  ASSERT_TRUE(Send(fd.get(), "GET /metrics HTTP/1.1\r\nX-More: "));
  const absl::Time end = absl::Now() + absl::Seconds(60);
  bool open = true;
  while (open && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(50));
    open = Send(fd.get(), "x");
  }
  EXPECT_FALSE(open) << "it sends a byte before each time limit, and would hold a thread for good";
}

}  // namespace
}  // namespace pelab::agent
