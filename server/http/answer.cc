#include "server/http/answer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/base/strings.h"
#include "core/render/json.h"

namespace pelab::http {
namespace {

constexpr std::size_t kWorthIt = 1 << 10;
constexpr int kGzip = 16 + MAX_WBITS;  // zlib's way of asking for the gzip format

bool TakesGzip(const httplib::Request& request) {
  const std::string takes = request.get_header_value("Accept-Encoding");
  return takes.find("gzip") != std::string::npos && takes.find("gzip;q=0") == std::string::npos;
}

// If httplib held the body itself, it would compress it with the client's preferred method at the
// best setting, which takes seconds for megabytes of JSON. It does not compress bodies from a
// provider.
void Provide(std::shared_ptr<const void> owner, std::string_view bytes,
             const std::string& content_type, httplib::Response& response) {
  if (bytes.empty()) {
    response.set_content("", content_type);
    return;
  }
  response.set_content_provider(
      bytes.size(), content_type,
      [owner = std::move(owner), bytes](std::size_t offset, std::size_t length,
                                        httplib::DataSink& sink) {
        return sink.write(bytes.data() + offset, std::min(length, bytes.size() - offset));
      });
}

}  // namespace

int HttpStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

void AnswerError(const absl::Status& status, const httplib::Request& request,
                 httplib::Response& response) {
  AnswerError(HttpStatus(status), std::string{status.message()}, request, response);
}

void AnswerError(int status, std::string_view sentence, const httplib::Request& request,
                 httplib::Response& response) {
  response.status = status;
  response.set_header("Cache-Control", "no-store");
  if (status == 503) response.set_header("Retry-After", "5");
  AnswerBody(render::ToJson(render::Json{{"error", sentence}}, /*one_line=*/true),
             "application/json", request, response);
}

void AnswerBody(std::string body, const std::string& content_type, const httplib::Request& request,
                httplib::Response& response) {
  response.set_header("Vary", "Accept-Encoding");
  if (body.size() >= kWorthIt && TakesGzip(request)) {
    body = Gzip(body);
    response.set_header("Content-Encoding", "gzip");
  }
  const auto owner = std::make_shared<const std::string>(std::move(body));
  Provide(owner, *owner, content_type, response);
}

void AnswerStatic(std::string_view bytes, std::string_view gzip, const std::string& content_type,
                  const httplib::Request& request, httplib::Response& response) {
  response.set_header("Vary", "Accept-Encoding");
  if (!gzip.empty() && TakesGzip(request)) {
    response.set_header("Content-Encoding", "gzip");
    return Provide(nullptr, gzip, content_type, response);
  }
  Provide(nullptr, bytes, content_type, response);
}

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::string(bytes);
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace pelab::http
