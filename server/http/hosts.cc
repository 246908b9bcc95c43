#include "server/http/hosts.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "absl/strings/ascii.h"

namespace pelab::http {
namespace {

bool IsAddress(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 || inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

// Removes the port and the brackets of an IPv6 address.
std::string_view HostOf(std::string_view header) {
  if (!header.empty() && header.front() == '[') {
    const std::size_t end = header.find(']');
    return end == std::string_view::npos ? std::string_view() : header.substr(1, end - 1);
  }
  return header.substr(0, header.find(':'));
}

}  // namespace

Hosts::Hosts(const std::string& listened, const std::vector<std::string>& allowed)
    : names_{"localhost", absl::AsciiStrToLower(listened)} {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) names_.insert(absl::AsciiStrToLower(name));
  for (const std::string& host : allowed) names_.insert(absl::AsciiStrToLower(host));
}

bool Hosts::Allows(std::string_view host_header) const {
  const std::string host = absl::AsciiStrToLower(std::string(HostOf(host_header)));
  return IsAddress(host) || names_.count(host) != 0;
}

}  // namespace pelab::http
