// Requests that change something: who may make them, and what a browser must prove beside that, so
// that no page of another site can make one in its place (docs/adr/0028).
#pragma once

#include <httplib.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/http/sessions.h"

namespace pelab::http {

inline constexpr std::size_t kMaxBody = 64 << 10;

// Thread-safe. All that it is given outlives it.
class Writing {
 public:
  struct Parts {
    std::string token;
    int port = 0;                    // names the cookie: browsers share those of a host's ports
    std::vector<std::string> names;  // under which a proxy serves the pages (--http-host)
    const Clock& clock;
    v1::Sweeps::StubInterface& sweeps;
  };
  explicit Writing(Parts parts);

  // What is wrong before the body is read: 404, 411, 413 or 415 with its sentence; false then.
  bool CheckHead(const std::vector<std::string>& path, const httplib::Request& request,
                 httplib::Response& response) const;
  // Answers a POST to `path`, which is what follows /api/v1.
  void Answer(const std::vector<std::string>& path, const httplib::Request& request,
              httplib::Response& response);
  // {"writing": true, "logged_in", "csrf"}: what the pages need to know.
  render::Json SessionJson(const httplib::Request& request);

 private:
  enum class Who { kToken, kSession };

  // nullopt: it has been told why not.
  std::optional<Who> Authorise(const httplib::Request& request, httplib::Response& response);
  bool IsOwnPage(const httplib::Request& request) const;
  std::optional<Session> SessionOf(const httplib::Request& request);
  void LogIn(const httplib::Request& request, httplib::Response& response);
  void LogOut(const httplib::Request& request, httplib::Response& response);
  std::string Cookie(const httplib::Request& request, const std::string& id,
                     absl::Duration age) const;

  const Parts parts_;
  const std::string cookie_;
  const std::set<std::string> names_;  // in lower case
  Sessions sessions_;
};

}  // namespace pelab::http
