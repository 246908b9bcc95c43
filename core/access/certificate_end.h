// When a certificate ends.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::access {

// The end of the first certificate of a PEM file, which is the server's own if a chain follows.
// Errors are those of reading the file; FAILED_PRECONDITION if it has no certificate. Thread-safe.
absl::StatusOr<absl::Time> EndOfCertificate(const std::string& pem_file);

}  // namespace pelab::access
