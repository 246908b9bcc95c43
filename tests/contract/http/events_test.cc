// Server-sent events: the first event, later events, reconnecting clients, the limit on listeners.
// Listeners and clients with half a request must not delay other clients or the shutdown.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/base/unique_fd.h"
#include "server/http/http_server.h"
#include "tests/contract/http/http_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;

class EventsTest : public HttpTest {
 protected:
  void SetUp() override {
    HttpTest::SetUp();
    Submit(Document("live", "[0]", 50), "t");
  }
};

TEST_F(EventsTest, FirstAllThenWhatChanged) {
  Listener listener(port(), "/api/v1/sweeps/live/events");
  const Listener::Event first = listener.Await("jobs");
  EXPECT_EQ(first.data["all"], true);
  EXPECT_EQ(first.data["rows"].size(), 2U);
  EXPECT_EQ(listener.Await("sweep").data["rows"][0]["queued"], 2);
  EXPECT_TRUE(listener.greeted());

  FakeWorker worker(channel_, "w", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 50), script.Epoch(0)});
  for (;;) {
    const Listener::Event next = listener.Await("jobs");
    EXPECT_EQ(next.data["all"], false);
    ASSERT_EQ(next.data["rows"].size(), 1U) << "only the job that went on";
    EXPECT_EQ(next.data["rows"][0]["job_id"], script.assignment().job_id());
    EXPECT_NE(next.id, first.id);
    if (next.data["rows"][0]["epochs_done"] == 1) break;
  }
}

TEST_F(EventsTest, AJobTellsItsEpochsAttemptsAndLog) {
  FakeWorker worker(channel_, "w", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 50), script.Epoch(0)});
  worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  worker.Log(script.assignment(), 0, "hello\n");
  Listener listener(port(),
                    "/api/v1/jobs/" + std::to_string(script.assignment().job_id()) + "/events");
  EXPECT_EQ(listener.Await("epochs").data["rows"].size(), 1U);
  EXPECT_EQ(listener.Await("attempts").data["rows"][0]["worker"], "w");
  EXPECT_EQ(listener.Await("job").data["rows"][0]["state"], "running");
  EXPECT_EQ(listener.Await("log").data["rows"][0]["end"], 6);
  worker.Send({script.Epoch(1), script.Epoch(2)});
  std::size_t more = 0;
  while (more < 2) {
    const Listener::Event next = listener.Await("epochs");
    ASSERT_FALSE(next.data.is_null());
    EXPECT_EQ(next.data["all"], false);
    more += next.data["rows"].size();
  }
  EXPECT_EQ(more, 2U);
}

TEST_F(EventsTest, AllSweepsAndWorkers) {
  Listener listener(port(), "/api/v1/events");
  EXPECT_EQ(listener.Await("sweeps").data["rows"][0]["name"], "live");
  EXPECT_TRUE(listener.Await("workers").data["rows"].empty());
  const FakeWorker worker(channel_, "w", 3);
  const Listener::Event event = listener.Await("workers");
  EXPECT_EQ(event.data["rows"][0]["slots"], 3);
  Submit(Document("second"), "t2");
  EXPECT_EQ(listener.Await("sweeps").data["rows"].back()["name"].is_string(), true);
}

TEST_F(EventsTest, WhoComesAgainAndMissedNothingIsToldNothing) {
  std::string id;
  // One listener stays, so that the topic is not dropped meanwhile.
  Listener stays(port(), "/api/v1/sweeps/live/events");
  {
    Listener listener(port(), "/api/v1/sweeps/live/events");
    id = listener.Await("jobs").id;
  }
  Listener again(port(), "/api/v1/sweeps/live/events", id);
  ASSERT_TRUE(again.AwaitOpen());
  Listener stranger(port(), "/api/v1/sweeps/live/events", "other-1");
  stranger.Await("jobs");  // by then the other client was served
  EXPECT_EQ(again.events(), 0U);
  EXPECT_EQ(again.status(), 200);
}

TEST_F(EventsTest, ManyListenAndOthersAreServed) {
  std::vector<std::unique_ptr<Listener>> listeners;
  for (std::size_t i = 0; i < http::kMostStreams; ++i) {
    listeners.push_back(std::make_unique<Listener>(port(), "/api/v1/sweeps/live/events"));
  }
  for (auto& listener : listeners) listener->Await("jobs");
  const HttpAnswer refused = Ask("/api/v1/events");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Header("Retry-After"), "5");
  EXPECT_THAT(refused.json().value("error", ""), HasSubstr("at most 64"));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(Ask("/api/v1/sweeps").status, 200);

  // A client that leaves makes room within a moment.
  listeners.pop_back();
  const absl::Time deadline = absl::Now() + kPatience;
  bool room = false;
  while (!room && absl::Now() < deadline) {
    Listener late(port(), "/api/v1/events");
    ASSERT_TRUE(late.AwaitOpen());
    room = late.status() == 200;
  }
  EXPECT_TRUE(room);
}

// A coordinator with a thousand workers has a thousand descriptors. Debian's httplib waits with
// select(), which accepts none beyond 1024.
TEST_F(EventsTest, DescriptorsBeyondThoseOfSelect) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 2048) GTEST_SKIP() << "not more than " << limit.rlim_max << " files";
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, 2048);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> files;
  while (files.size() < 1100) files.emplace_back(fcntl(0, F_DUPFD_CLOEXEC, 3));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask("/api/v1/sweeps").status, 200);
  Listener listener(port(), "/api/v1/sweeps/live/events");
  EXPECT_EQ(listener.Await("jobs").data["rows"].size(), 2U);
}

TEST_F(EventsTest, TheEndWaitsForNobody) {
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int i = 0; i < 8; ++i) {
    listeners.push_back(std::make_unique<Listener>(port(), "/api/v1/events"));
    listeners.back()->Await("sweeps");
  }
  // Half a request, and a connection without any request.
  std::vector<UniqueFd> idle;
  for (const std::string& text :
       {std::string("GET /api/v1/sweeps HTTP/1.1\r\nHost:"), std::string()}) {
    idle.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port()));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(idle.back().get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(send(idle.back().get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  const absl::Time began = absl::Now();
  coordinator_->Stop();
  EXPECT_LT(absl::Now() - began, absl::Seconds(10));
  for (auto& listener : listeners) EXPECT_TRUE(listener->AwaitEnd());
}

}  // namespace
}  // namespace pelab
