#include "server/notify/address.h"

#include <algorithm>

#include "core/base/strings.h"

namespace pelab::notify {
namespace {

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(
      Concat("invalid --notify: ", why,
             "; allowed: an address such as https://HOST/PATH or http://HOST:PORT/PATH"));
}

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const int port = std::stoi(std::string(text));
  return port > 0 && port <= 65535;
}

// "example.org", "example.org:8080", "[::1]:8080"
bool IsAuthority(std::string_view text) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos && !IsPort(text.substr(colon + 1))) return false;
  const std::string_view host = text.substr(0, colon);
  if (bracket != std::string_view::npos) {
    return host.size() > 2 && host.front() == '[' && host.back() == ']' &&
           host.find_first_not_of("0123456789abcdefABCDEF:.[]") == std::string_view::npos;
  }
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  return !host.empty() && host.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

absl::StatusOr<Address> ParseAddress(std::string_view url) {
  std::size_t begin = 0;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) begin = scheme.size();
  }
  if (begin == 0) return Refuse("it does not begin with http:// or https://");
  // A control character would end the request's line.
  const auto plain = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!std::all_of(url.begin(), url.end(), plain)) {
    return Refuse("it has a space, a control character or one beyond ASCII");
  }
  if (url.find('#') != std::string_view::npos) return Refuse("it has a fragment (#)");
  const std::size_t end = std::min(url.find_first_of("/?", begin), url.size());
  const std::string_view authority = url.substr(begin, end - begin);
  if (authority.find('@') != std::string_view::npos) {
    return Refuse("it has a user (@); use --notify-secret-file");
  }
  if (!IsAuthority(authority)) return Refuse("its host or port is not one");
  Address address{.host = std::string(url.substr(0, end)), .path = std::string(url.substr(end))};
  if (address.path.empty() || address.path.front() != '/') address.path.insert(0, "/");
  return address;
}

}  // namespace pelab::notify
