// Requests that change something: checks who may make them, and that a browser's request comes from
// a page of this server and not from another site (docs/adr/0028).
#pragma once

#include <httplib.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/render/json.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/http/sessions.h"

namespace pelab::http {

// Thread-safe. The clock and the stub in Parts must outlive it.
class Writing {
 public:
  struct Parts {
    std::shared_ptr<rpc::TokenFile> token;
    // Part of the cookie's name: browsers share cookies between the ports of a host.
    int port = 0;
    // Host names under which a proxy serves the pages (--http-host).
    std::vector<std::string> names;
    const Clock& clock;
    v1::Sweeps::StubInterface& sweeps;
  };
  explicit Writing(Parts parts);

  // Checks a request before its body is read. If something is wrong, answers 400, 404, 411, 413,
  // 414 or 415 with a sentence and returns false.
  bool CheckHead(const std::vector<std::string>& path, const httplib::Request& request,
                 httplib::Response& response) const;
  // Answers a POST to `path`, the part after /api/v1.
  void Answer(const std::vector<std::string>& path, const httplib::Request& request,
              httplib::Response& response);
  // {"writing": true, "logged_in", "csrf"}: what the pages need to know.
  render::Json SessionJson(const httplib::Request& request);

 private:
  enum class Who { kToken, kSession };

  // nullopt: the request was refused, and answered.
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
