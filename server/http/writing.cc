#include "server/http/writing.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/json_text.h"
#include "core/base/log.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "server/http/actions.h"
#include "server/http/answer.h"
#include "server/limits.h"

namespace pelab::http {
namespace {

using render::Json;
using Path = std::vector<std::string>;

// Limits the recursion of the regular expression with which httplib matches the path.
constexpr std::size_t kLongestPath = 512;
constexpr char kCsrfHeader[] = "X-Pelab-Csrf";

bool IsLogIn(const Path& path) { return path == Path{"login"}; }
bool IsLogOut(const Path& path) { return path == Path{"logout"}; }

void AnswerJson(const Json& json, const httplib::Request& request, httplib::Response& response) {
  response.set_header("Cache-Control", "no-store");
  AnswerBody(render::ToJson(json, /*one_line=*/true), "application/json", request, response);
}

// "https://host:port" -> "host:port"; empty if it is not an http address, for instance "null".
std::string AuthorityOf(const std::string& origin) {
  absl::string_view rest = origin;
  if (!absl::ConsumePrefix(&rest, "https://") && !absl::ConsumePrefix(&rest, "http://")) return "";
  return absl::AsciiStrToLower(rest);
}

std::set<std::string> LowerCase(const std::vector<std::string>& names) {
  std::set<std::string> lower;
  for (const std::string& name : names) lower.insert(absl::AsciiStrToLower(name));
  return lower;
}

std::string CookieOf(const httplib::Request& request, const std::string& name) {
  const std::string cookies = request.get_header_value("Cookie");
  for (absl::string_view part : absl::StrSplit(cookies, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (absl::ConsumePrefix(&part, name + "=")) return std::string(part);
  }
  return "";
}

}  // namespace

Writing::Writing(Parts parts)
    : parts_(std::move(parts)),
      cookie_(Concat("pelab_session_", parts_.port)),
      names_(LowerCase(parts_.names)),
      sessions_(parts_.token, parts_.clock) {}

bool Writing::CheckHead(const Path& path, const httplib::Request& request,
                        httplib::Response& response) const {
  const auto refuse = [&](int status, const std::string& sentence) {
    AnswerError(status, sentence, request, response);
    return false;
  };
  if (!IsAction(path) && !IsLogIn(path) && !IsLogOut(path)) {
    return refuse(404, Concat("there is nothing to do at ", request.path,
                              "; docs/api.md lists what may be changed"));
  }
  if (request.path.size() > kLongestPath) return refuse(414, "the address is too long");
  if (request.has_header("Transfer-Encoding")) {
    return refuse(411, "a body must say its length: send it with Content-Length");
  }
  std::uint64_t length = 0;
  if (request.has_header("Content-Length") &&
      !absl::SimpleAtoi(request.get_header_value("Content-Length"), &length)) {
    return refuse(400, "the Content-Length is not a number");
  }
  if (length > limits::kHttpBodyBytes) {
    return refuse(413, Concat("the body has ", length, " bytes; at most ", limits::kHttpBodyBytes,
                              " are allowed"));
  }
  const std::string type = request.get_header_value("Content-Type");
  if (request.has_header("Content-Encoding") || !absl::StartsWith(type, "application/json")) {
    return refuse(415, "the body must be JSON: Content-Type: application/json, not compressed");
  }
  return true;
}

// A page of another site can make a browser send a request here, but not with this page's origin.
bool Writing::IsOwnPage(const httplib::Request& request) const {
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") return false;
  if (!request.has_header("Origin")) return true;
  const std::string authority = AuthorityOf(request.get_header_value("Origin"));
  if (authority.empty() || request.get_header_value_count("Origin") != 1) return false;
  return authority == absl::AsciiStrToLower(request.get_header_value("Host")) ||
         names_.count(authority.substr(0, authority.find(':'))) != 0;
}

std::optional<Session> Writing::SessionOf(const httplib::Request& request) {
  return sessions_.Find(CookieOf(request, cookie_));
}

std::optional<Writing::Who> Writing::Authorise(const httplib::Request& request,
                                               httplib::Response& response) {
  const auto refuse = [&](int status, const std::string& sentence) {
    if (status == 401) response.set_header("WWW-Authenticate", "Bearer");
    AnswerError(status, sentence, request, response);
    return std::nullopt;
  };
  if (!IsOwnPage(request)) {
    return refuse(403, Concat("a page of ", request.get_header_value("Origin"),
                              " may not change anything here"));
  }
  const std::string authorization = request.get_header_value("Authorization");
  absl::string_view bearer = authorization;
  if (!authorization.empty()) {
    const bool bears = absl::ConsumePrefix(&bearer, "Bearer ");
    if (bears && sessions_.IsToken(std::string(bearer))) return Who::kToken;
    return refuse(401, "the token is not this coordinator's");
  }
  const std::optional<Session> session = SessionOf(request);
  if (!session) {
    return refuse(401,
                  "log in with the coordinator's token first, or send it as "
                  "\"Authorization: Bearer TOKEN\"");
  }
  if (!request.has_header("Origin") ||
      !rpc::SameSecret(request.get_header_value(kCsrfHeader), session->csrf)) {
    return refuse(403, Concat("the request does not come from a page of this coordinator (",
                              kCsrfHeader, "); load the page anew"));
  }
  return Who::kSession;
}

std::string Writing::Cookie(const httplib::Request& request, const std::string& id,
                            absl::Duration age) const {
  // Only a proxy serves https. With the attribute Secure, a browser does not send the cookie over
  // plain connections.
  const bool secure = absl::StartsWith(request.get_header_value("Origin"), "https://");
  return Concat(cookie_, "=", id,
                "; Path=/; HttpOnly; SameSite=Strict; Max-Age=", absl::ToInt64Seconds(age),
                secure ? "; Secure" : "");
}

void Writing::LogIn(const httplib::Request& request, httplib::Response& response) {
  if (!IsOwnPage(request)) {
    return AnswerError(403, "a page of another site may not log in here", request, response);
  }
  const auto body = ParseJson(request.body);
  const auto token = body.find("token");
  if (!body.is_object() || token == body.end() || !token->is_string()) {
    return AnswerError(400, "the body must be {\"token\": \"…\"}", request, response);
  }
  if (!sessions_.IsToken(token->get<std::string>())) {
    return AnswerError(401, "the token is not this coordinator's", request, response);
  }
  const Session session = sessions_.Open();
  response.set_header("Set-Cookie", Cookie(request, session.id, kSessionTime));
  spdlog::info("pages: {} has logged in", request.remote_addr);
  AnswerJson({{"logged_in", true}, {"csrf", session.csrf}}, request, response);
}

void Writing::LogOut(const httplib::Request& request, httplib::Response& response) {
  if (!Authorise(request, response)) return;
  sessions_.Close(CookieOf(request, cookie_));
  response.set_header("Set-Cookie", Cookie(request, "", absl::ZeroDuration()));
  AnswerJson({{"logged_in", false}}, request, response);
}

void Writing::Answer(const Path& path, const httplib::Request& request,
                     httplib::Response& response) {
  if (IsLogIn(path)) return LogIn(request, response);
  if (IsLogOut(path)) return LogOut(request, response);
  if (!Authorise(request, response)) return;
  const auto answer = Act(path, request.body, parts_.sweeps);
  spdlog::info("pages: {} asked for {} of {} {}: {}", request.remote_addr, path[2],
               path[0] == "jobs" ? "job" : "sweep", render::Escape(path[1]),
               answer.ok() ? "done" : std::string(answer.status().message()));
  if (!answer.ok()) return AnswerError(answer.status(), request, response);
  AnswerJson(*answer, request, response);
}

render::Json Writing::SessionJson(const httplib::Request& request) {
  const std::optional<Session> session = SessionOf(request);
  return {{"writing", true},
          {"logged_in", session.has_value()},
          {"csrf", session ? Json(session->csrf) : Json(nullptr)}};
}

}  // namespace pelab::http
