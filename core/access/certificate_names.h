// The names that a certificate carries: URIs of principals, DNS names and addresses of servers.
// Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/access/openssl_handles.h"

namespace pelab::access {

// INVALID_ARGUMENT, with what is allowed, if no certificate is issued for a principal of that name:
// it has 1 to 64 letters, digits and ._-, the first a letter or a digit.
absl::Status CheckCertifiedName(std::string_view name);

// One alternative name of a certificate.
struct AlternativeName {
  int type = GEN_DNS;  // GEN_URI, GEN_DNS or GEN_IPADD
  std::string value;   // as text: "pelab://worker/gpu01", "host0.example.org", "10.0.0.7"
};

// A host as an address, or else as a DNS name. INVALID_ARGUMENT if it can be neither.
absl::StatusOr<AlternativeName> HostName(const std::string& host);

// "URI:pelab://worker/gpu01", "DNS:host0", "IP:10.0.0.7".
std::string TextOf(const AlternativeName& name);

// The names as the extension of a certificate.
absl::StatusOr<GeneralNames> MakeGeneralNames(const std::vector<AlternativeName>& names);

}  // namespace pelab::access
