// Counts the calls of a gRPC server, by method and status.
#pragma once

#include <grpcpp/support/server_interceptor.h>
#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "core/metrics/scrape.h"
#include "server/access/methods.h"

namespace pelab::metrics {

// Thread-safe.
class Calls {
 public:
  explicit Calls(const access::Methods& methods);

  // For grpc::ServerBuilder. Sessions of workers are not counted, because each of their messages
  // would pay for it.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Factory();
  // A call to `path` ("/pelab.v1.Sweeps/Submit") has ended with this code of gRPC's. `took` counts
  // if the method answers once: a stream lasts as long as its client listens. Methods that pelab
  // does not have are not counted, because their names are the client's.
  void Ended(std::string_view path, int code, absl::Duration took);
  // A call that was refused before its handler began.
  void Refused(std::string_view path, int code);

  void AddTo(Scrape& scrape) const;

 private:
  static constexpr std::size_t kCodes = 17;  // grpc::StatusCode, OK to UNAUTHENTICATED
  struct Method {
    explicit Method(const access::Methods::Method& method);
    void Count(int code);

    const std::string name;  // "Sweeps/Submit"
    const bool streams;
    std::array<std::atomic<std::uint64_t>, kCodes> codes = {};
    std::atomic<bool> measured{false};  // whether `seconds` has an observation
    prometheus::Histogram seconds;
  };
  class Interceptor;
  class Maker;

  Method* Find(std::string_view path) const;

  // By path. Not changed after construction.
  std::map<std::string, std::unique_ptr<Method>, std::less<>> methods_;
};

}  // namespace pelab::metrics
