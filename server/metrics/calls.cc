#include "server/metrics/calls.h"

#include <grpcpp/server_context.h>

#include <algorithm>

#include "absl/status/status.h"
#include "core/base/clock.h"

namespace pelab::metrics {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

const prometheus::Histogram::BucketBoundaries kCallSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};

absl::Duration CallClock() { return SystemClock::Instance().Monotonic(); }

}  // namespace

class Calls::Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(Calls& calls, const char* path) : calls_(calls), path_(path), began_(CallClock()) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      calls_.Ended(path_, methods->GetSendStatus().error_code(), CallClock() - began_);
    }
    methods->Proceed();
  }

 private:
  Calls& calls_;
  const char* const path_;  // lives as long as the server
  const absl::Duration began_;
};

class Calls::Maker final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Maker(Calls& calls) : calls_(calls) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    if (info->type() == ServerRpcInfo::Type::BIDI_STREAMING) return nullptr;
    return new Interceptor(calls_, info->method());
  }

 private:
  Calls& calls_;
};

Calls::Method::Method(const access::Methods::Method& method)
    : name(method.name), streams(method.streams), seconds(kCallSeconds) {}

void Calls::Method::Count(int code) {
  // Codes that a later gRPC may add count as UNKNOWN.
  const bool known = code >= 0 && code < static_cast<int>(kCodes);
  codes[known ? static_cast<std::size_t>(code) : 2].fetch_add(1, std::memory_order_relaxed);
}

Calls::Calls(const access::Methods& methods) {
  for (const auto& [path, method] : methods.all()) {
    methods_[path] = std::make_unique<Method>(method);
  }
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Calls::Factory() {
  return std::make_unique<Maker>(*this);
}

Calls::Method* Calls::Find(std::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : found->second.get();
}

void Calls::Ended(std::string_view path, int code, absl::Duration took) {
  Method* const method = Find(path);
  if (method == nullptr) return;
  method->Count(code);
  if (method->streams) return;
  method->seconds.Observe(absl::ToDoubleSeconds(took));
  method->measured.store(true, std::memory_order_relaxed);
}

void Calls::Refused(std::string_view path, int code) {
  if (Method* const method = Find(path)) method->Count(code);
}

void Calls::AddTo(Scrape& scrape) const {
  auto requests = scrape.Counter(
      "pelab_rpc_requests_total",
      "Calls that were answered or refused, by the code of their status. Sessions of workers are "
      "not in it.");
  for (const auto& [path, method] : methods_) {
    for (std::size_t code = 0; code < kCodes; ++code) {
      const std::uint64_t count = method->codes[code];
      if (count == 0) continue;
      requests.Add(static_cast<double>(count),
                   {{"method", method->name},
                    {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
  }
  auto durations = scrape.Histogram(
      "pelab_rpc_duration_seconds",
      "How long calls took from their begin until their answer; without those that answer by a "
      "stream.");
  for (const auto& [path, method] : methods_) {
    if (method->measured) durations.Add(method->seconds, {{"method", method->name}});
  }
}

}  // namespace pelab::metrics
