// HTTP answers in httplib's form. Thread-safe.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/http/query.h"

namespace pelab::http {

// 404 for NOT_FOUND, 400 for INVALID_ARGUMENT, …
int HttpStatus(const absl::Status& status);

// Answers {"error": "…"} with the HTTP status of `status`.
void AnswerError(const absl::Status& status, const httplib::Request& request,
                 httplib::Response& response);
void AnswerError(int status, std::string_view sentence, const httplib::Request& request,
                 httplib::Response& response);

// Answers with the whole body. It is compressed if the client accepts that and the size makes it
// worthwhile.
void AnswerBody(std::string body, const std::string& content_type, const httplib::Request& request,
                httplib::Response& response);

// Answers with bytes that live as long as the program. `gzip` is their compressed form, or empty if
// there is none.
void AnswerStatic(std::string_view bytes, std::string_view gzip, const std::string& content_type,
                  const httplib::Request& request, httplib::Response& response);

// Compresses with gzip at its fastest setting.
std::string Gzip(std::string_view bytes);

}  // namespace pelab::http
