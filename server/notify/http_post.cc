#include "server/notify/http_post.h"

#include <cstddef>
#include <system_error>
#include <thread>

#include "core/base/strings.h"
#include "server/notify/messages.h"

namespace pelab::notify {
namespace {

constexpr int kConnectSeconds = 5;
constexpr int kAnswerSeconds = 10;
constexpr absl::Duration kBetweenStops = absl::Milliseconds(100);
constexpr std::size_t kAnswerBytes = 64 << 10;  // of an answer's body, which nobody reads

// The request. Its answer's status goes to `status`, which stays 0 if none comes.
httplib::Request MakeRequest(const Address& address, const std::string& body, int& status) {
  httplib::Request request;
  request.method = "POST";
  request.path = address.path;
  request.headers = {{"Content-Type", "application/json"}, {"User-Agent", "pelab/" PELAB_VERSION}};
  request.body = body;
  request.response_handler = [&status](const httplib::Response& response) {
    status = response.status;
    return true;
  };
  request.content_receiver = [left = kAnswerBytes](const char*, std::size_t bytes, std::uint64_t,
                                                   std::uint64_t) mutable {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  return request;
}

}  // namespace

bool HttpPost::SetClient(httplib::Client* client) {
  MutexLock lock(&mutex_);
  client_ = stopped_ ? nullptr : client;
  return !stopped_;
}

// httplib bounds the time of each read alone.
httplib::Result HttpPost::SendInTime(httplib::Client& client, httplib::Request& request,
                                     bool& late) const {
  Notification answered;
  std::thread deadline;
  try {
    deadline = std::thread([&] {
      late = !answered.WaitFor(most_);
      // A client that is just connecting takes no notice of the first call.
      for (bool ended = !late; !ended; ended = answered.WaitFor(kBetweenStops)) client.stop();
    });
  } catch (const std::system_error&) {
    return {nullptr, httplib::Error::Canceled};  // no thread now; the notification is tried again
  }
  httplib::Result result = client.send(request);
  answered.Notify();
  deadline.join();
  return result;
}

absl::Status HttpPost::Post(const std::string& body) {
  httplib::Client client(address_.host);
  if (!client.is_valid()) return absl::UnavailableError(Concat("cannot use ", address_.host));
  client.set_connection_timeout(kConnectSeconds);
  client.set_read_timeout(kAnswerSeconds);
  client.set_write_timeout(kAnswerSeconds);
  client.set_decompress(false);
  int status = 0;
  httplib::Request request = MakeRequest(address_, body, status);
  if (secret_) request.headers.emplace("X-Pelab-Signature", Signature(secret_->Current(), body));
  if (!SetClient(&client)) return absl::CancelledError("the coordinator is shutting down");
  bool late = false;
  const httplib::Result result = SendInTime(client, request, late);
  SetClient(nullptr);
  if (result) status = result->status;  // the handler is not called if there can be no body: 204
  if (late && status == 0) {
    return absl::UnavailableError(
        Concat(address_.host, " takes longer than ", absl::FormatDuration(most_), " to answer"));
  }
  if (status >= 200 && status < 300) return absl::OkStatus();
  if (status != 0) return absl::UnavailableError(Concat(address_.host, " answered ", status));
  return absl::UnavailableError(
      Concat("no answer from ", address_.host, ": ", httplib::to_string(result.error())));
}

void HttpPost::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  if (client_ != nullptr) client_->stop();
}

}  // namespace pelab::notify
