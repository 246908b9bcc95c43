// Values that the HTTP server computes without a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/http/connection_pool.h"
#include "server/http/answer.h"
#include "server/http/hosts.h"
#include "server/http/log_text.h"
#include "server/http/progress.h"
#include "server/http/query.h"
#include "server/http/topics.h"

namespace pelab::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(QueryTest, PathsAreSplit) {
  EXPECT_TRUE(SplitPath("/").empty());
  EXPECT_THAT(SplitPath("/api/v1//sweeps/a b/"), ElementsAre("api", "v1", "sweeps", "a b"));
}

TEST(QueryTest, IsReadStrictly) {
  const std::set<std::string> known = {"after", "limit"};
  EXPECT_THAT(std::string(Query::Read({.parameters = {{"limt", "1"}}}, known).status().message()),
              HasSubstr("unknown parameter \"limt\"; known: after, limit"));
  EXPECT_THAT(
      std::string(
          Query::Read({.parameters = {{"limit", "1"}, {"limit", "2"}}}, known).status().message()),
      HasSubstr("twice"));
  const auto query = Query::Read({.parameters = {{"limit", "7x"}, {"after", "a,,b"}}}, known);
  ASSERT_TRUE(query.ok());
  EXPECT_THAT(std::string(query->Number("limit", 1, 1, 9).status().message()),
              HasSubstr("limit=\"7x\" is not a whole number from 1 to 9"));
  EXPECT_FALSE(query->List("after").ok());
  EXPECT_EQ(*query->Number("other", 5, 1, 9), 5);
  EXPECT_EQ(*query->OneOf("other", {"x", "y"}), "x");
  EXPECT_FALSE(query->OneOf("limit", {"x", "y"}).ok());
}

TEST(HostsTest, OnlyNamesOfThisMachine) {
  const Hosts hosts("0.0.0.0", {"Dash.Example.org"});
  for (const char* good : {"127.0.0.1:7480", "[::1]:80", "localhost", "LOCALHOST:1", "10.0.0.7",
                           "dash.example.org", "dash.example.org:443"}) {
    EXPECT_TRUE(hosts.Allows(good)) << good;
  }
  for (const char* bad : {"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80",
                          "[::1", "dash.example.org.evil.example"}) {
    EXPECT_FALSE(hosts.Allows(bad)) << bad;
  }
}

TEST(ProgressTest, TimeLeftIsByWhatRuns) {
  EXPECT_EQ(EstimateTimeLeft(0, {}).seconds, 0.0);
  EXPECT_EQ(EstimateTimeLeft(10, {}).seconds, std::nullopt);
  EXPECT_EQ(EstimateTimeLeft(10, {{0, 5}}).seconds, std::nullopt);
  // 2 and 3 epochs per second.
  const TimeLeft left = EstimateTimeLeft(100, {{20, 10}, {30, 10}});
  EXPECT_DOUBLE_EQ(*left.seconds, 20);
  EXPECT_EQ(left.based_on,
            "100 epochs left, 2 running jobs at 2.50 epochs a second each; analyses not counted");
  // A job that has just begun does not show its speed yet.
  const TimeLeft begun = EstimateTimeLeft(100, {{20, 10}, {30, 10}, {0, 1}});
  EXPECT_DOUBLE_EQ(*begun.seconds, 100 / 7.5);
  EXPECT_EQ(begun.based_on,
            "100 epochs left, 3 running jobs at 2.50 epochs a second each (by the 2 that have "
            "finished one); analyses not counted");
}

TEST(ProgressTest, WhatWasGivenUpIsNotExpected) {
  v1::Sweep sweep;
  sweep.mutable_jobs()->set_running(1);
  sweep.mutable_jobs()->set_failed(1);
  sweep.set_epochs_total(200);
  sweep.set_epochs_done(60);  // 50 of the running job, 10 of the failed one
  const render::Json json = ProgressJson(sweep, 90, {{50, 10}});
  EXPECT_EQ(json["jobs"], 2);
  EXPECT_EQ(json["ended"], 1);
  EXPECT_EQ(json["epochs_left"], 50);
  EXPECT_DOUBLE_EQ(json["time_left_seconds"], 10);
  EXPECT_DOUBLE_EQ(json["fraction"], 60.0 / 110);
}

v1::LogPart Part(std::uint64_t offset, const std::string& data) {
  v1::LogPart part;
  part.set_attempt(2);
  part.set_offset(offset);
  part.set_data(data);
  return part;
}

TEST(LogTextTest, PiecesAreJoinedAndGapsAreSeen) {
  const render::Json json = LogJson({Part(0, "ab"), Part(2, "cd"), Part(10, "ef")}, 0, 1000);
  EXPECT_EQ(json["attempt"], 2);
  EXPECT_EQ(json["next_offset"], 12);
  ASSERT_EQ(json["parts"].size(), 2U);
  EXPECT_EQ(json["parts"][0]["text"], "abcd");
  EXPECT_EQ(json["parts"][1]["offset"], 10);
}

TEST(LogTextTest, CharactersStayWhole) {
  // "é" without its second byte, which has not arrived.
  const render::Json first = LogJson({Part(0, "caf\xC3")}, 0, 1000);
  EXPECT_EQ(first["parts"][0]["text"], "caf");
  EXPECT_EQ(first["next_offset"], 3);
  const render::Json rest = LogJson({Part(0, "caf\xC3\xA9!")}, 3, 1000);
  EXPECT_EQ(rest["parts"][0]["text"], "\xC3\xA9!");
  // A tail that would begin in the middle of it.
  const render::Json tail = LogJson({Part(0, "caf\xC3\xA9!")}, 0, 2);
  EXPECT_EQ(tail["parts"][0]["text"], "!");
  EXPECT_EQ(tail["parts"][0]["offset"], 5);
}

TEST(TopicsTest, EventsTellWhatChanged) {
  const Snapshot before = {
      {"jobs", "", ""}, {"jobs", "1", "{\"a\":1}"}, {"jobs", "2", "{\"a\":2}"}};
  Snapshot now = before;
  EXPECT_EQ(EventsBetween(before, now, "x-1"), "");
  EXPECT_EQ(EventsBetween({}, now, "x-1"),
            "id: x-1\nevent: jobs\ndata: {\"all\":true,\"rows\":[{\"a\":1},{\"a\":2}]}\n\n");
  now[2].json = "{\"a\":3}";
  now.push_back({"sweep", "", "{\"b\":1}"});
  EXPECT_EQ(EventsBetween(before, now, "x-2"),
            "id: x-2\nevent: jobs\ndata: {\"all\":false,\"rows\":[{\"a\":3}]}\n\n"
            "id: x-2\nevent: sweep\ndata: {\"all\":true,\"rows\":[{\"b\":1}]}\n\n");
  const Snapshot fewer = {before[0], before[2]};
  EXPECT_EQ(EventsBetween(before, fewer, "x-3"),
            "id: x-3\nevent: jobs\ndata: {\"all\":true,\"rows\":[{\"a\":2}]}\n\n");
  EXPECT_EQ(EventsBetween(fewer, {before[0]}, "x-4"),
            "id: x-4\nevent: jobs\ndata: {\"all\":true,\"rows\":[]}\n\n");
}

TEST(AnswerTest, GzipReadsBack) {
  const std::string text(100'000, 'a');
  const std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), 1000U);
  std::string out(text.size(), '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  EXPECT_EQ(out, text);
}

TEST(AnswerTest, EveryErrorHasItsStatus) {
  EXPECT_EQ(HttpStatus(absl::InvalidArgumentError("")), 400);
  EXPECT_EQ(HttpStatus(absl::NotFoundError("")), 404);
  EXPECT_EQ(HttpStatus(absl::FailedPreconditionError("")), 409);
  EXPECT_EQ(HttpStatus(absl::ResourceExhaustedError("")), 503);
  EXPECT_EQ(HttpStatus(absl::UnavailableError("")), 503);
  EXPECT_EQ(HttpStatus(absl::InternalError("")), 500);
}

// As where the user has as many threads as are allowed.
TEST(ConnectionPoolTest, OneThreadServesAllIfNoFurtherOneCanBeMade) {
  int made = 0;
  ConnectionPool pool(8, 8, [&made](std::function<void()> body) {
    if (made++ > 0) throw std::system_error(EAGAIN, std::system_category());
    return std::thread(std::move(body));
  });
  Notification first_may_end;
  std::atomic<int> served = 0;
  for (int i = 0; i < 5; ++i) {
    pool.enqueue([&] {
      first_may_end.Wait();
      ++served;
    });
  }
  first_may_end.Notify();
  pool.shutdown();
  EXPECT_EQ(served, 5);
  EXPECT_GT(made, 1) << "others were tried";
}

}  // namespace
}  // namespace pelab::http
