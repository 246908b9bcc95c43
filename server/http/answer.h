// Answers as httplib has them. Thread-safe.
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

// {"error": "…"} with that status; a sentence as all errors of pelab.
void AnswerError(const absl::Status& status, const httplib::Request& request,
                 httplib::Response& response);
void AnswerError(int status, std::string_view sentence, const httplib::Request& request,
                 httplib::Response& response);

// The whole body, compressed where that is asked for and worth it.
void AnswerBody(std::string body, const std::string& content_type, const httplib::Request& request,
                httplib::Response& response);

// Bytes that stay for the program's life, with their gzip where it was made (else empty).
void AnswerStatic(std::string_view bytes, std::string_view gzip, const std::string& content_type,
                  const httplib::Request& request, httplib::Response& response);

// gzip, quick rather than small.
std::string Gzip(std::string_view bytes);

}  // namespace pelab::http
