// Which names a page may be asked for under. A page of another site could make a browser ask this
// server under that site's own name (DNS rebinding) and read the answer; under an address, or a name
// that is this machine's, it cannot.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pelab::http {

// Thread-safe once it is made.
class Hosts {
 public:
  // `listened` and `allowed` without ports, in any case.
  Hosts(const std::string& listened, const std::vector<std::string>& allowed);

  // Whether the request's Host header ("127.0.0.1:7480", "[::1]", "name:80") names an IP address,
  // localhost, this machine, or one of the names. The port is not looked at: a tunnel has its own.
  bool Allows(std::string_view host_header) const;

 private:
  std::set<std::string> names_;
};

}  // namespace pelab::http
