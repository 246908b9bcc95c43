// A small certificate authority for mutual TLS between the machines of one group: a folder with the
// authority's certificate and key, and certificates that it signs for workers, people and servers.
// Keys are on the curve P-256, signatures use SHA-256, serial numbers are 128 random bits, and
// certificates begin five minutes in the past, so that a clock that is slow accepts them. There is
// no list of revoked certificates: the coordinator is told to refuse a principal. Functions are
// thread-safe. Two that write the same file do not both succeed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::access {

// The folder's files. The certificate may be given to everybody, the key to nobody.
inline constexpr char kAuthorityCertificate[] = "ca.pem";
inline constexpr char kAuthorityKey[] = "ca.key";

inline constexpr int kMaxDays = 36500;

// The name of a principal in its certificate: a URI among the alternative names.
std::string WorkerUri(const std::string& name);     // "pelab://worker/gpu01"
std::string PrincipalUri(const std::string& name);  // "pelab://principal/alice", not of a worker

struct IssuedCertificate {
  std::string certificate_file;    // PEM with the chain, mode 0644
  std::string key_file;            // PEM (PKCS #8), not encrypted, mode 0600
  std::vector<std::string> names;  // "URI:pelab://worker/gpu01", "DNS:host0", "IP:10.0.0.7"
  std::string serial;              // hexadecimal
  absl::Time not_after;
};

// Makes an authority that is called `name` and that is valid for `days`; creates `directory` if it
// is missing. ALREADY_EXISTS if one of the two files is there; INVALID_ARGUMENT for a name that is
// not 1 to 64 bytes of printable text, and for days that are not from 1 to kMaxDays.
absl::StatusOr<IssuedCertificate> MakeAuthority(const std::string& directory,
                                                const std::string& name, int days, absl::Time now);

struct CertificateRequest {
  enum class Kind {
    kWorker,  // WorkerUri of the name, for clients
    kClient,  // PrincipalUri of the name, for clients
    kServer,  // DNS names and addresses, for servers
  };
  Kind kind = Kind::kWorker;
  std::vector<std::string> names;  // one principal, or one or more hosts
  int days = 365;
};

// Signs a certificate for a new key and writes NAME.pem and NAME.key into `out`, with the first of
// the names; creates `out` if it is missing. ALREADY_EXISTS if one of the two files is there;
// NOT_FOUND if `authority` holds no authority; FAILED_PRECONDITION if it holds none that can sign;
// INVALID_ARGUMENT for names or days that are not allowed, also if the certificate would outlive
// the authority.
absl::StatusOr<IssuedCertificate> IssueCertificate(const std::string& authority,
                                                   const CertificateRequest& request,
                                                   const std::string& out, absl::Time now);

}  // namespace pelab::access
