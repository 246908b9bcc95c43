// Decides under which host names the pages may be requested. A page of another site could make a
// browser contact this server under that site's own name (DNS rebinding) and read the answer. This
// is not possible if requests must use an IP address or one of this machine's names.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::http {

// Thread-safe after construction.
class Hosts {
 public:
  // `listened` and `allowed` have no ports; letter case does not matter.
  Hosts(const std::string& listened, const std::vector<std::string>& allowed);

  // Whether the request's Host header ("127.0.0.1:7480", "[::1]", "name:80") is an IP address,
  // localhost, this machine's name or one of the given names. The port is ignored, because a tunnel
  // has a port of its own.
  bool Allows(std::string_view host_header) const;

 private:
  std::set<std::string> names_;
};

}  // namespace pelab::http
