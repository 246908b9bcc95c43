// Delivers notifications by HTTP. All code that deals with httplib's client is here.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/secrets.h"
#include "server/notify/address.h"

namespace pelab::notify {

// Whether https:// addresses can be used: httplib was built with OpenSSL.
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
inline constexpr bool kHasTls = true;
#else
inline constexpr bool kHasTls = false;
#endif

// Post is for one thread; Stop is thread-safe.
class HttpPost {
 public:
  // `secret` signs the bodies; null: they are not signed. `most` is the time for a whole Post, so
  // that a receiver that answers a byte at a time, or without end, keeps no thread.
  HttpPost(Address address, std::shared_ptr<rpc::TokenFile> secret,
           absl::Duration most = absl::Seconds(20))
      : address_(std::move(address)), secret_(std::move(secret)), most_(most) {}

  // Sends the body on a connection of its own, and waits some seconds for the answer. OK if its
  // status is 200 to 299, even if its body does not end in time. The certificate of an https
  // address must be valid for its host, by the authorities that OpenSSL trusts (SSL_CERT_FILE).
  // Redirects are not followed: they could lead anywhere. Errors name the host and never the
  // path.
  absl::Status Post(const std::string& body);
  // Ends a Post that is under way soon; further ones fail at once.
  void Stop();

 private:
  // False after Stop: the client must not be used then.
  bool SetClient(httplib::Client* client);
  // `late`: whether the time was up before the whole answer had come.
  httplib::Result SendInTime(httplib::Client& client, httplib::Request& request, bool& late) const;

  const Address address_;
  const std::shared_ptr<rpc::TokenFile> secret_;
  const absl::Duration most_;
  Mutex mutex_;
  httplib::Client* client_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the Post that is under way
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pelab::notify
