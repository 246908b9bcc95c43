#include "server/http/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/db/read/reader_pool.h"
#include "core/http/limited_server.h"
#include "core/render/text.h"
#include "server/http/answer.h"
#include "server/http/events.h"
#include "server/http/hosts.h"
#include "server/http/pages.h"
#include "server/http/writing.h"
#include "server/limits.h"
#include "server/listen.h"
#include "server/turns.h"

namespace pelab::http {
namespace {

constexpr std::size_t kRequestThreads = 24;  // besides those of the event streams
constexpr std::size_t kWaitingConnections = 64;
// After this time a stream ends and the page reconnects.
constexpr absl::Duration kStreamTime = absl::Hours(1);
// Interval of keep-alive comments, which reveal lost connections.
constexpr absl::Duration kBeat = absl::Seconds(15);
// How often to check whether the peer is still there.
constexpr absl::Duration kLookAtPeer = absl::Seconds(1);

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";  // Prometheus' format

// Plotly sets styles on its own elements; scripts may only come from this server.
constexpr char kPolicy[] =
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: "
    "blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

absl::StatusOr<std::int64_t> JobId(db::Reader& reader, const std::string& id) {
  v1::ListJobsRequest request;
  request.mutable_filter()->add_jobs(id);
  request.set_specs_apart(true);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, reader.ListJobs(request));
  if (jobs.jobs_size() == 0) return absl::NotFoundError(Concat("no job ", id));
  return jobs.jobs(0).job_id();
}

// The part of the path after /api/v1; empty for other paths.
std::vector<std::string> ApiPath(const httplib::Request& request) {
  std::vector<std::string> path = SplitPath(request.path);
  if (path.size() < 2 || path[0] != "api" || path[1] != "v1") return {};
  path.erase(path.begin(), path.begin() + 2);
  return path;
}

// gRPC refuses to carry other text, and no answer could quote it.
bool HasUtf8Address(const httplib::Request& request) {
  return IsUtf8(request.path) &&
         std::all_of(request.params.begin(), request.params.end(), [](const auto& parameter) {
           return IsUtf8(parameter.first) && IsUtf8(parameter.second);
         });
}

bool IsStream(const std::vector<std::string>& path) {
  if (path == std::vector<std::string>{"events"}) return true;
  return path.size() == 3 && path[2] == "events" && (path[0] == "sweeps" || path[0] == "jobs");
}

// `path` is {"events"}, {"sweeps", "3", "events"} or {"jobs", "17", "events"}.
absl::StatusOr<Topic> TopicOf(db::Reader& reader, const std::vector<std::string>& path) {
  if (path.size() == 1) return Topic{};
  if (path[0] == "sweeps") {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, reader.GetSweepRow(path[1]));
    return Topic{Topic::Kind::kSweep, sweep.sweep_id()};
  }
  PELAB_ASSIGN_OR_RETURN(const std::int64_t job, JobId(reader, path[1]));
  return Topic{Topic::Kind::kJob, job};
}

// Sends the stream's texts until the peer disconnects, the stream is closed or its time is over.
void AnswerStream(const std::shared_ptr<EventStream>& stream, const Clock& clock,
                  httplib::Response& response) {
  struct Sent {
    bool begun = false;
    absl::Duration ends;
    absl::Duration beat;
  };
  const auto sent = std::make_shared<Sent>();
  sent->ends = clock.Monotonic() + kStreamTime;
  sent->beat = clock.Monotonic() + kBeat;
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Accel-Buffering", "no");
  const auto send = [stream, sent, &clock](std::size_t, httplib::DataSink& sink) {
    if (!sent->begun) {
      sent->begun = true;
      const std::string hello = "retry: 2000\n: pelab\n\n";
      return sink.write(hello.data(), hello.size());
    }
    const std::optional<std::string> text = stream->Next(kLookAtPeer);
    const absl::Duration now = clock.Monotonic();
    if (!text || now >= sent->ends) {
      sink.done();
      return true;
    }
    if (!text->empty()) return sink.write(text->data(), text->size());
    if (!sink.is_writable()) return false;
    if (now < sent->beat) return true;
    sent->beat = now + kBeat;
    return sink.write(":\n\n", 3);
  };
  response.set_chunked_content_provider("text/event-stream", send,
                                        [stream](bool) { stream->Close(); });
}

void LogThrown(const std::string& path, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    spdlog::error("{} could not be answered: {}", render::Escape(path), error.what());
  } catch (...) {
    spdlog::error("{} could not be answered: unknown error", render::Escape(path));
  }
}

}  // namespace

struct HttpServer::Parts {
  Parts(const HttpOptions& given, const Sources& from)
      : options(given),
        sources(from),
        hosts(options.listen.host, options.hosts),
        readers(options.database),
        hub(readers, sources, {.most_streams = kMostStreams}) {}

  void SetUp();
  // Whether to answer the request. If not, it was refused and answered.
  bool Check(const httplib::Request& request, httplib::Response& response) const;
  void Answer(const httplib::Request& request, httplib::Response& response);
  void AnswerApi(const Request& asked, const httplib::Request& request,
                 httplib::Response& response);
  void AnswerMetrics(const Request& asked, const httplib::Request& request,
                     httplib::Response& response);
  absl::StatusOr<std::string> MakeAnswer(const Request& asked, const std::string& client);
  absl::Status OpenStream(const Request& asked, const httplib::Request& request,
                          httplib::Response& response);

  const HttpOptions options;
  const Sources& sources;
  const Hosts hosts;
  db::ReaderPool readers;
  EventHub hub;
  Turns answers{limits::kHttpAnswersAtOnce, limits::kRequestsWaiting};
  std::optional<Writing> writing;
  LimitedServer server{kMostStreams + kRequestThreads, kWaitingConnections};
};

void HttpServer::Parts::SetUp() {
  server.set_payload_max_length(options.write_token ? limits::kHttpBodyBytes : 0);
  server.set_default_headers({{"Content-Security-Policy", kPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Opener-Policy", "same-origin"},
                              {"Cross-Origin-Resource-Policy", "same-origin"}});
  // Runs before httplib's routes, which are regular expressions.
  server.set_pre_routing_handler([this](const auto& request, auto& response) {
    if (!Check(request, response)) return httplib::Server::HandlerResponse::Handled;
    if (request.method == "POST") return httplib::Server::HandlerResponse::Unhandled;
    Answer(request, response);
    return httplib::Server::HandlerResponse::Handled;
  });
  // Check has accepted the path, and the body has been read to its end.
  server.Post(".*", [this](const auto& request, auto& response) {
    if (writing) writing->Answer(ApiPath(request), request, response);
  });
  server.set_exception_handler([](const auto& request, auto& response, std::exception_ptr thrown) {
    LogThrown(request.path, thrown);
    AnswerError(500, "the coordinator could not answer; its log says why", request, response);
  });
  server.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (response.body.empty() && response.get_header_value("Cache-Control").empty()) {
      AnswerError(response.status,
                  "this is not a request that pelab understands, or it is too long", request,
                  response);
    }
  });
}

bool HttpServer::Parts::Check(const httplib::Request& request, httplib::Response& response) const {
  const bool posts = request.method == "POST" && writing.has_value();
  if (request.method != "GET" && request.method != "HEAD" && !posts) {
    response.set_header("Allow", writing ? "GET, HEAD, POST" : "GET, HEAD");
    AnswerError(405,
                writing ? Concat(request.method, " is not allowed: GET, HEAD and POST are")
                        : Concat(request.method,
                                 " is not allowed: these pages only read "
                                 "(pelab-server --http-write lets them change sweeps)"),
                request, response);
    return false;
  }
  const std::string host = request.get_header_value("Host");
  if (request.get_header_value_count("Host") != 1 || !hosts.Allows(host)) {
    AnswerError(421,
                Concat("this coordinator is not known as \"", host,
                       "\"; use its address, or start it with --http-host NAME"),
                request, response);
    return false;
  }
  if (!HasUtf8Address(request)) {
    AnswerError(400, "the address is not UTF-8", request, response);
    return false;
  }
  if (request.has_header("Transfer-Encoding")) {
    AnswerError(411, "send the body of a request with Content-Length, not in chunks", request,
                response);
    return false;
  }
  if (!request.ranges.empty()) {
    AnswerError(416, "parts of an answer are not served: ask without a Range header", request,
                response);
    return false;
  }
  return !posts || writing->CheckHead(ApiPath(request), request, response);
}

void HttpServer::Parts::Answer(const httplib::Request& request, httplib::Response& response) {
  Request asked{.path = SplitPath(request.path)};
  if (asked.path.size() >= 2 && asked.path[0] == "api" && asked.path[1] == "v1") {
    asked.path.erase(asked.path.begin(), asked.path.begin() + 2);
    asked.parameters.insert(request.params.begin(), request.params.end());
    return AnswerApi(asked, request, response);
  }
  if (sources.metrics && asked.path == std::vector<std::string>{"metrics"}) {
    asked.parameters.insert(request.params.begin(), request.params.end());
    return AnswerMetrics(asked, request, response);
  }
  const Page* page = FindPage(asked.path);
  if (page == nullptr) {
    return AnswerError(404, Concat("there is no page ", request.path), request, response);
  }
  response.set_header("ETag", page->etag);
  response.set_header("Cache-Control", "no-cache");
  if (request.get_header_value("If-None-Match") == page->etag) {
    response.status = 304;
    return;
  }
  AnswerStatic(page->bytes, page->gzip, page->content_type, request, response);
}

void HttpServer::Parts::AnswerApi(const Request& asked, const httplib::Request& request,
                                  httplib::Response& response) {
  if (IsStream(asked.path)) {
    const absl::Status status = OpenStream(asked, request, response);
    if (!status.ok()) AnswerError(status, request, response);
    return;
  }
  if (asked.path == std::vector<std::string>{"session"}) {
    const render::Json off = {{"writing", false}};
    response.set_header("Cache-Control", "no-store");
    return AnswerBody(
        render::ToJson(writing ? writing->SessionJson(request) : off, /*one_line=*/true),
        "application/json", request, response);
  }
  const absl::StatusOr<std::string> text = MakeAnswer(asked, request.remote_addr);
  if (!text.ok()) return AnswerError(text.status(), request, response);
  response.set_header("Cache-Control", "no-store");
  AnswerBody(*text, "application/json", request, response);
}

void HttpServer::Parts::AnswerMetrics(const Request& asked, const httplib::Request& request,
                                      httplib::Response& response) {
  if (const auto query = Query::Read(asked, {}); !query.ok()) {
    return AnswerError(query.status(), request, response);
  }
  const auto turn = answers.Take(request.remote_addr, [] { return false; });
  if (!turn.ok()) return AnswerError(turn.status(), request, response);
  response.set_header("Cache-Control", "no-store");
  AnswerBody(sources.metrics(), kMetricsType, request, response);
}

// The answer's JSON, when it is the turn of the client at this address.
absl::StatusOr<std::string> HttpServer::Parts::MakeAnswer(const Request& asked,
                                                          const std::string& client) {
  // httplib does not tell whether the client is still there; requests have a time limit.
  PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn, answers.Take(client, [] { return false; }));
  PELAB_ASSIGN_OR_RETURN(const auto reader, readers.Take());
  PELAB_ASSIGN_OR_RETURN(const render::Json json, Api(*reader, sources).Get(asked));
  return render::ToJson(json, /*one_line=*/true);
}

absl::Status HttpServer::Parts::OpenStream(const Request& asked, const httplib::Request& request,
                                           httplib::Response& response) {
  PELAB_RETURN_IF_ERROR(Query::Read(asked, {}).status());
  PELAB_ASSIGN_OR_RETURN(const auto reader, readers.Take());
  PELAB_ASSIGN_OR_RETURN(const Topic topic, TopicOf(*reader, asked.path));
  if (request.method == "HEAD") {
    response.set_content("", "text/event-stream");
    return absl::OkStatus();
  }
  PELAB_ASSIGN_OR_RETURN(const auto stream,
                         hub.Open(topic, request.get_header_value("Last-Event-ID")));
  AnswerStream(stream, sources.clock, response);
  return absl::OkStatus();
}

absl::Status CheckHttpAddress(const rpc::Address& address, bool insecure) {
  if (address.is_unix) {
    return absl::InvalidArgumentError(
        Concat("--http ", address.ToString(), " is a socket file; allowed: HOST:PORT"));
  }
  if (address.IsLocal() || insecure) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(address.ToString(),
             " can be reached from other machines, and the pages have neither TLS nor a password; "
             "allowed: a loopback address, reached through an SSH tunnel or a proxy, or "
             "--http-insecure to show them to anybody"));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() { Stop(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpOptions& options,
                                                              const Sources& sources) {
  PELAB_RETURN_IF_ERROR(CheckFree(options.listen));
  std::unique_ptr<HttpServer> http(new HttpServer(std::make_unique<Parts>(options, sources)));
  Parts& parts = *http->parts_;
  parts.SetUp();
  rpc::Address address = options.listen;
  PELAB_ASSIGN_OR_RETURN(address.port, parts.server.Listen(address));
  if (options.write_token) {
    parts.writing.emplace(Writing::Parts{.token = options.write_token,
                                         .port = address.port,
                                         .names = options.hosts,
                                         .clock = sources.clock,
                                         .sweeps = *options.sweeps});
  }
  http->address_ = Concat("http://", address.ToString());
  parts.server.Start();
  return http;
}

void HttpServer::Stop() {
  parts_->hub.Stop();
  parts_->server.Stop();
}

}  // namespace pelab::http
