// Changes over HTTP: a client without permission cannot make one, and each request does the same as
// its command.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/contract/http/http_fixture.h"
#include "tests/support/raw_http.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kToken[] = "a-token-of-this-coordinator";

class WritingTest : public HttpTest {
 protected:
  WritingTest() {
    options_.http_write = true;
    options_.http_token_file = directory_ + "/token";
    options_.http_hosts = {"pelab.example"};
    std::ofstream(options_.http_token_file) << kToken << "\n";
  }
  void SetUp() override {
    HttpTest::SetUp();
    Submit(Document("s", "[0]"), "t");
  }

  HttpAnswer Post(const std::string& path, const std::string& body,
                  httplib::Headers headers) const {
    if (headers.count("Content-Type") == 0) headers.emplace("Content-Type", "application/json");
    httplib::Request request;
    request.method = "POST";
    request.path = "/api/v1" + path;
    request.headers = std::move(headers);
    request.body = body;
    const auto result = MakeClient()->send(request);
    if (!result) return {};
    return {result->status, result->headers, result->body};
  }
  HttpAnswer AsProgram(const std::string& path, const std::string& body = "{}") const {
    return Post(path, body, {{"Authorization", std::string("Bearer ") + kToken}});
  }
  // All that comes back for a request to pause the sweep, after these headers, an empty line and
  // `rest`.
  std::string SendPause(const std::string& headers, const std::string& rest) const {
    const UniqueFd fd = testing_support::DialLoopback(port());
    const std::string head =
        "POST /api/v1/sweeps/s/pause HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/json\r\nAuthorization: Bearer ";
    testing_support::SendText(fd.get(), head + kToken + "\r\n" + headers + "\r\n" + rest);
    return testing_support::ReadToEnd(fd.get());
  }
  std::string Own() const { return "http://127.0.0.1:" + std::to_string(port()); }
  // The headers of a browser that has logged in.
  httplib::Headers LogIn() const {
    const HttpAnswer answer = Post("/login", Json{{"token", kToken}}.dump(), {{"Origin", Own()}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    const std::string cookie = answer.Header("Set-Cookie");
    EXPECT_THAT(cookie, HasSubstr("; HttpOnly; SameSite=Strict"));
    EXPECT_THAT(cookie, testing::Not(HasSubstr("Secure")));
    return {{"Cookie", cookie.substr(0, cookie.find(';'))},
            {"X-Pelab-Csrf", answer.json().value("csrf", "")},
            {"Origin", Own()}};
  }
  static httplib::Headers With(httplib::Headers headers, const std::string& name,
                               const std::string& value) {
    headers.erase(name);
    if (!value.empty()) headers.emplace(name, value);
    return headers;
  }
  bool Paused() { return GetSweep("s").paused(); }
};

TEST_F(HttpTest, NothingIsWrittenUnlessItIsAsked) {
  for (const char* path : {"/api/v1/sweeps/1/pause", "/api/v1/login"}) {
    const HttpAnswer answer =
        Ask(path, {{"Authorization", std::string("Bearer ") + kToken}}, "POST");
    EXPECT_EQ(answer.status, 405);
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr("--http-write"));
  }
  EXPECT_EQ(Get("/session"), (Json{{"writing", false}}));
}

TEST_F(HttpTest, WritingNeedsAToken) {
  coordinator_.reset();
  options_.http_write = true;
  const auto without = Coordinator::Start(options_);
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("--http-token-file FILE"));
}

TEST_F(WritingTest, WhoHasNoTokenIsRefused) {
  const HttpAnswer none = Post("/sweeps/s/pause", "{}", {});
  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.Header("WWW-Authenticate"), "Bearer");
  EXPECT_THAT(none.json().value("error", ""), HasSubstr("log in"));
  EXPECT_EQ(Post("/sweeps/s/pause", "{}", {{"Authorization", "Bearer wrong"}}).status, 401);
  EXPECT_EQ(
      Post("/sweeps/s/pause", "{}", {{"Authorization", std::string("Basic ") + kToken}}).status,
      401);
  EXPECT_EQ(Post("/login", R"({"token":"wrong"})", {{"Origin", Own()}}).status, 401);
  EXPECT_EQ(Post("/login", "[]", {}).status, 400);
  const std::string name = "pelab_session_" + std::to_string(port());
  EXPECT_EQ(
      Post("/sweeps/s/pause", "{}", {{"Cookie", name + "=guessed"}, {"Origin", Own()}}).status,
      401);
  EXPECT_FALSE(Paused());
}

TEST_F(WritingTest, WhatOtherSitesMakeABrowserSendIsRefused) {
  const httplib::Headers own = LogIn();
  const std::string path = "/sweeps/s/pause";
  EXPECT_EQ(Post(path, "{}", With(own, "X-Pelab-Csrf", "")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "X-Pelab-Csrf", "guessed")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Origin", "http://evil.example")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Origin", "http://127.0.0.1:1")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Origin", "null")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Origin", "")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Sec-Fetch-Site", "cross-site")).status, 403);
  EXPECT_EQ(Post(path, "{}", With(own, "Host", "evil.example")).status, 421);
  EXPECT_EQ(Post(path, "{}", With(own, "Content-Type", "text/plain")).status, 415);
  EXPECT_EQ(
      Post("/login", Json{{"token", kToken}}.dump(), {{"Origin", "http://evil.example"}}).status,
      403);
  EXPECT_FALSE(Paused());
  EXPECT_EQ(Post(path, "{}", own).status, 200);
  EXPECT_TRUE(Paused());
}

TEST_F(WritingTest, BehindAProxyItsNameCounts) {
  const httplib::Headers own = LogIn();
  EXPECT_EQ(Post("/sweeps/s/pause", "{}", With(own, "Origin", "https://pelab.example")).status,
            200);
  const HttpAnswer secure =
      Post("/login", Json{{"token", kToken}}.dump(), {{"Origin", "https://pelab.example"}});
  EXPECT_THAT(secure.Header("Set-Cookie"), HasSubstr("; Secure"));
}

TEST_F(WritingTest, ASessionEndsWithLoggingOut) {
  const httplib::Headers own = LogIn();
  const auto session = [&] { return Ask("/api/v1/session", own).json(); };
  EXPECT_EQ(session()["logged_in"], true);
  EXPECT_EQ(session()["csrf"], own.find("X-Pelab-Csrf")->second);
  EXPECT_EQ(Get("/session"), (Json{{"writing", true}, {"logged_in", false}, {"csrf", nullptr}}));
  EXPECT_EQ(Post("/logout", "", own).status, 200);
  EXPECT_EQ(session()["logged_in"], false);
  EXPECT_EQ(Post("/sweeps/s/pause", "{}", own).status, 401);
}

TEST_F(WritingTest, EveryActionDoesWhatItsCommandDoes) {
  EXPECT_EQ(AsProgram("/sweeps/s/pause").json()["paused"], true);
  EXPECT_TRUE(Paused());
  EXPECT_EQ(AsProgram("/sweeps/s/resume").json()["changed"], true);
  EXPECT_FALSE(Paused());
  EXPECT_EQ(AsProgram("/sweeps/s/priority", R"({"priority":7})").json()["priority"], 7);
  EXPECT_EQ(GetSweep("s").priority(), 7);
  EXPECT_EQ(AsProgram("/sweeps/s/extend", R"({"seeds":"1..2"})").json()["new_seeds"], "1..2");
  AwaitSweep("s", [](const auto& sweep) { return sweep.jobs().queued() == 6; });

  FakeWorker worker(channel_, "w", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 3), script.Finished(v1::ATTEMPT_OUTCOME_FAILED,
                                                     v1::ERROR_KIND_OUT_OF_MEMORY, "no room")});
  worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  AwaitSweep("s", [](const auto& sweep) { return sweep.jobs().failed() == 1; });
  EXPECT_EQ(AsProgram("/sweeps/s/retry", "").json()["queued"], 1);
  const std::string job = "/jobs/" + std::to_string(script.assignment().job_id());
  EXPECT_EQ(AsProgram(job + "/cancel").json()["claims_withdrawn"], 1);
  EXPECT_EQ(AsProgram(job + "/retry").json()["queued"], 1);
  const Json cancelled = AsProgram("/sweeps/s/cancel").json();
  EXPECT_EQ(cancelled["claims_withdrawn"], 6);
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_CANCELLED);
}

// RFC 9112, 6.3: such a request has no body. The server used to wait for one, for 10 s.
TEST_F(WritingTest, ARequestThatSaysNoLengthIsAnsweredAtOnce) {
  const absl::Time begin = absl::Now();
  EXPECT_THAT(SendPause("", ""), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(8));
  EXPECT_TRUE(Paused());
}

TEST_F(WritingTest, WhatFollowsARequestWithoutALengthIsNotRead) {
  const std::string answer = SendPause("", "GET /api/v1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "one answer:\n" << answer;
}

TEST_F(WritingTest, ABodyInChunksIsRefused) {
  const std::string answer = SendPause("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 411"));
  EXPECT_THAT(answer, HasSubstr("with Content-Length, not in chunks"));
  EXPECT_FALSE(Paused());
}

TEST_F(WritingTest, ErrorsAreSentences) {
  const auto expect = [](const HttpAnswer& answer, int status, const std::string& sentence) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(answer.json().value("error", ""), HasSubstr(sentence));
  };
  expect(AsProgram("/sweeps/none/pause"), 404, "no sweep \"none\"");
  expect(AsProgram("/sweeps/s/explode"), 404, "there is nothing to do at");
  expect(AsProgram("/sweeps/s/priority"), 400, "the body has no \"priority\"");
  expect(AsProgram("/sweeps/s/priority", R"({"priority":2000})"), 400, "allowed: -1000 to 1000");
  expect(AsProgram("/sweeps/s/priority", R"({"priority":"high"})"), 400,
         "\"priority\" is \"high\"");
  expect(AsProgram("/sweeps/s/priority", R"({"priority":1e99})"), 400, "a whole number");
  expect(AsProgram("/sweeps/s/priority", R"({"priority":18446744073709551615})"), 400,
         "\"priority\" is 18446744073709551615; it must be a whole number");
  expect(AsProgram("/sweeps/s/extend", R"({"seeds":"x"})"), 400, "seed");
  expect(AsProgram("/sweeps/s/pause", R"({"now":true})"), 400, "unknown member \"now\"");
  expect(AsProgram("/sweeps/s/pause", "["), 400, "not a JSON object");
  const std::string deep(30'000, '[');
  expect(AsProgram("/sweeps/s/pause", deep + std::string(30'000, ']')), 400, "not a JSON object");
  const HttpAnswer large = AsProgram("/sweeps/s/pause", std::string(65'537, ' '));
  expect(large, 413, "at most 65536 are allowed");
  EXPECT_EQ(Post("/sweeps/" + std::string(2000, 'a') + "/pause", "{}",
                 {{"Authorization", std::string("Bearer ") + kToken}})
                .status,
            414);
  expect(AsProgram("/sweeps/1%dd/extend", R"({"seeds":"9"})"), 400, "the address is not UTF-8");
  EXPECT_EQ(Ask("/api/v1/jobs?where=pe%3d%ff").status, 400);
  EXPECT_EQ(Ask("/api/v1/sweeps/s/pause").status, 404) << "a GET changes nothing";
  EXPECT_EQ(Ask("/api/v1/sweeps", {}, "DELETE").status, 405);
  EXPECT_FALSE(Paused());
}

}  // namespace
}  // namespace pelab
