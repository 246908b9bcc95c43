// A coordinator in this process with its pages on loopback, and HTTP clients for it.
#pragma once

#include <httplib.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {

using Json = nlohmann::ordered_json;

struct HttpAnswer {
  int status = 0;
  httplib::Headers headers;
  std::string body;
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  Json json() const { return Json::parse(body, nullptr, /*allow_exceptions=*/false); }
};

class HttpTest : public CoordinatorTest {
 protected:
  HttpTest() { options_.http = *rpc::ParseAddress("127.0.0.1:0", rpc::PortZero::kAllowed); }

  int port() const {
    const std::string& address = coordinator_->http_address();
    return std::stoi(address.substr(address.rfind(':') + 1));
  }
  std::unique_ptr<httplib::Client> MakeClient() const {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", port());
    client->set_read_timeout(60);
    return client;
  }
  HttpAnswer Ask(const std::string& path, const httplib::Headers& headers = {},
                 const std::string& method = "GET") const {
    httplib::Request request;
    request.method = method;
    request.path = path;
    request.headers = headers;
    const auto result = MakeClient()->send(request);
    if (!result) return {};
    return {result->status, result->headers, result->body};
  }
  Json Get(const std::string& path) const {
    const HttpAnswer answer = Ask("/api/v1" + path);
    EXPECT_EQ(answer.status, 200) << path << ": " << answer.body;
    return answer.json();
  }
};

// Listens to a stream of events on a thread of its own.
class Listener {
 public:
  struct Event {
    std::string id;
    std::string name;
    Json data;
  };

  Listener(int port, const std::string& path, const std::string& last_id = "")
      : client_("127.0.0.1", port), thread_([this, path, last_id] { Run(path, last_id); }) {}
  ~Listener() {
    Leave();
    thread_.join();
  }

  void Leave() {
    left_ = true;
    client_.stop();
  }
  // Returns the next event of this name. Fails the test after kPatience.
  Event Await(const std::string& name) {
    MutexLock lock(&mutex_);
    const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find_if(events_.begin(), events_.end(),
                          [&](const Event& event) { return event.name == name; });
    };
    const bool came = mutex_.AwaitFor(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return find() != events_.end(); }, kPatience);
    EXPECT_TRUE(came) << "no event " << name << "; the text so far: " << text_;
    if (!came) return {};
    const Event event = *find();
    events_.erase(find());
    return event;
  }
  bool AwaitOpen() {
    MutexLock lock(&mutex_);
    return mutex_.AwaitFor(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return status_ != 0 || ended_; }, kPatience);
  }
  bool AwaitEnd() {
    MutexLock lock(&mutex_);
    return mutex_.AwaitFor([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; },
                           kPatience);
  }
  int status() {
    MutexLock lock(&mutex_);
    return status_;
  }
  std::size_t events() {
    MutexLock lock(&mutex_);
    return events_.size();
  }
  bool greeted() {
    MutexLock lock(&mutex_);
    return text_.find("retry: ") != std::string::npos || greeted_;
  }

 private:
  void Run(const std::string& path, const std::string& last_id) {
    client_.set_read_timeout(120);
    httplib::Headers headers = {{"Accept-Encoding", "gzip"}};
    if (!last_id.empty()) headers.emplace("Last-Event-ID", last_id);
    client_.Get(
        path, headers,
        [this](const httplib::Response& response) {
          MutexLock lock(&mutex_);
          status_ = response.status;
          return !left_;
        },
        [this](const char* data, std::size_t size) {
          MutexLock lock(&mutex_);
          text_.append(data, size);
          Parse();
          return !left_;
        });
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  void Parse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::size_t end; (end = text_.find("\n\n")) != std::string::npos;
         text_.erase(0, end + 2)) {
      Event event;
      std::size_t at = 0;
      while (at < end) {
        const std::size_t next = std::min(text_.find('\n', at), end);
        const std::string line = text_.substr(at, next - at);
        if (line.rfind("id: ", 0) == 0) event.id = line.substr(4);
        if (line.rfind("event: ", 0) == 0) event.name = line.substr(7);
        if (line.rfind("data: ", 0) == 0) event.data = Json::parse(line.substr(6), nullptr, false);
        if (line.rfind("retry: ", 0) == 0) greeted_ = true;
        at = next + 1;
      }
      if (!event.name.empty()) events_.push_back(std::move(event));
    }
  }

  std::atomic<bool> left_{false};
  Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  int status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  httplib::Client client_;
  std::thread thread_;
};

}  // namespace pelab
