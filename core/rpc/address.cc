#include "core/rpc/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace pelab::rpc {
namespace {

absl::Status Invalid(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("invalid address \"", text, "\": ", why, "; allowed: unix:PATH or HOST:PORT"));
}

bool IsIpv6(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool IsHostName(absl::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

absl::StatusOr<Address> ParseUnix(absl::string_view text, absl::string_view path) {
  if (path.empty()) return Invalid(text, "the path of the socket is empty");
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxPath) {
    return Invalid(text, absl::StrCat("the path has ", path.size(),
                                      " bytes and a socket's at most ", kMaxPath));
  }
  return Address{.is_unix = true, .path = std::string(path)};
}

}  // namespace

std::string Address::ToString() const {
  if (is_unix) return absl::StrCat("unix:", path);
  if (absl::StrContains(host, ':')) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

bool Address::IsLocal() const {
  if (is_unix || host == "localhost" || host == "::1") return true;
  in_addr v4{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

absl::StatusOr<Address> ParseAddress(absl::string_view text, PortZero port_zero) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) return ParseUnix(text, rest);
  const std::size_t scheme = rest.find("://");
  if (scheme != absl::string_view::npos) {
    return Invalid(text, absl::StrCat("leave out \"", rest.substr(0, scheme + 3), "\""));
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return Invalid(text, "there is no port");
  std::string host(rest.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIpv6(host)) return Invalid(text, absl::StrCat("\"", host, "\" is not an IPv6 address"));
  } else if (absl::StrContains(host, ':')) {
    return Invalid(text, "an IPv6 address needs brackets, as in [::1]:7470");
  } else if (!IsHostName(host)) {
    return Invalid(text, host.empty() ? "there is no host"
                                      : absl::StrCat("\"", host, "\" is not a host name"));
  }
  const absl::string_view digits = rest.substr(colon + 1);
  int port = 0;
  const int lowest = port_zero == PortZero::kAllowed ? 0 : 1;
  if (digits.empty() || digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &port) || port < lowest || port > 65535) {
    return Invalid(
        text, absl::StrCat("port \"", digits, "\" is not a number from ", lowest, " to 65535"));
  }
  return Address{.host = std::move(host), .port = port};
}

}  // namespace pelab::rpc
