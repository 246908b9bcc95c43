#include "core/access/role.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace pelab::access {
namespace {

constexpr absl::string_view kPrefix = "ROLE_";
constexpr absl::string_view kScheme = "pelab://";
constexpr std::size_t kMostNameBytes = 64;
constexpr std::size_t kMostUriBytes = 200;

}  // namespace

std::string NameOf(v1::Role role) {
  if (role == v1::ROLE_UNSPECIFIED || !v1::Role_IsValid(role)) return "unknown";
  return absl::AsciiStrToLower(v1::Role_Name(role).substr(kPrefix.size()));
}

std::optional<v1::Role> ParseRole(absl::string_view name) {
  for (const v1::Role role :
       {v1::ROLE_READER, v1::ROLE_SUBMITTER, v1::ROLE_OPERATOR, v1::ROLE_WORKER, v1::ROLE_SCALER}) {
    if (NameOf(role) == name) return role;
  }
  return std::nullopt;
}

bool Suffices(v1::Role role, const v1::Needs& needs) {
  if (role == v1::ROLE_WORKER) return needs.role() == v1::ROLE_WORKER || needs.worker_too();
  if (role == v1::ROLE_SCALER) {
    return needs.role() == v1::ROLE_SCALER || needs.role() == v1::ROLE_READER;
  }
  if (needs.role() == v1::ROLE_SCALER) return role == v1::ROLE_OPERATOR;
  return needs.role() != v1::ROLE_WORKER && role >= needs.role();
}

absl::Status CheckPrincipalName(absl::string_view name) {
  const bool right = !name.empty() && name.size() <= kMostNameBytes &&
                     absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                              c == '_' || c == '-';
                     });
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid name \"", Escape(Shorten(std::string(name), kMostNameBytes)),
                   "\" of a principal; allowed: 1 to ", kMostNameBytes,
                   " letters, digits and ._-, the first a letter or a digit"));
}

absl::Status CheckCertificateUri(absl::string_view uri) {
  const bool right = absl::StartsWith(uri, kScheme) && uri.size() > kScheme.size() &&
                     uri.size() <= kMostUriBytes && std::all_of(uri.begin(), uri.end(), [](char c) {
                       return absl::ascii_isgraph(static_cast<unsigned char>(c));
                     });
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid certificate URI \"", Escape(Shorten(std::string(uri), kMostUriBytes)),
                   "\"; allowed: pelab://worker/NAME, or another one that begins with pelab://, in "
                   "at most ",
                   kMostUriBytes, " characters"));
}

}  // namespace pelab::access
