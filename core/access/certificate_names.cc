#include "core/access/certificate_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"

namespace pelab::access {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxHostBytes = 253;  // RFC 1035
constexpr std::size_t kMaxLabelBytes = 63;

bool HasOnlyLettersDigitsAnd(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           others.find(c) != std::string_view::npos;
  });
}

bool IsLabel(const std::string& label) {
  return !label.empty() && label.size() <= kMaxLabelBytes && HasOnlyLettersDigitsAnd(label, "-") &&
         label.front() != '-' && label.back() != '-';
}

// A last label of digits would make it an address with a mistake, such as 10.0.0.
bool IsDnsName(const std::string& host) {
  const std::vector<std::string> labels = absl::StrSplit(host, '.');
  const std::string& last = labels.back();
  return host.size() <= kMaxHostBytes && std::all_of(labels.begin(), labels.end(), IsLabel) &&
         last.find_first_not_of("0123456789") != std::string::npos;
}

using Address = Owned<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using Text = Owned<ASN1_IA5STRING, ASN1_IA5STRING_free>;

// The value in the form that its type has in a certificate; null if there is no memory.
ASN1_STRING* MakeValue(const AlternativeName& name) {
  if (name.type == GEN_IPADD) return Address(a2i_IPADDRESS(name.value.c_str())).release();
  Text text(ASN1_IA5STRING_new());
  if (!text) return nullptr;
  if (ASN1_STRING_set(text.get(), name.value.data(), static_cast<int>(name.value.size())) != 1) {
    return nullptr;
  }
  return text.release();
}

}  // namespace

absl::Status CheckCertifiedName(std::string_view name) {
  const bool ok = !name.empty() && name.size() <= kMaxNameBytes &&
                  absl::ascii_isalnum(static_cast<unsigned char>(name.front())) &&
                  HasOnlyLettersDigitsAnd(name, "._-");
  if (ok) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("invalid name \"", Shorten(name, 100), "\" of a principal; allowed: 1 to ",
             kMaxNameBytes, " letters, digits and ._-, the first a letter or a digit"));
}

absl::StatusOr<AlternativeName> HostName(const std::string& host) {
  const bool printable = HasOnlyLettersDigitsAnd(host, ".:-");
  if (printable && Address(a2i_IPADDRESS(host.c_str()))) return AlternativeName{GEN_IPADD, host};
  ERR_clear_error();  // an address that cannot be read leaves one
  if (IsDnsName(host)) return AlternativeName{GEN_DNS, host};
  return absl::InvalidArgumentError(
      Concat("invalid host \"", Shorten(host, 100),
             "\"; allowed: a DNS name such as host0.example.org, or an address such as 10.0.0.7 or "
             "fd00::7, without a port"));
}

std::string TextOf(const AlternativeName& name) {
  const char* type = name.type == GEN_URI ? "URI:" : name.type == GEN_DNS ? "DNS:" : "IP:";
  return Concat(type, name.value);
}

absl::StatusOr<GeneralNames> MakeGeneralNames(const std::vector<AlternativeName>& names) {
  GeneralNames all(GENERAL_NAMES_new());
  for (const AlternativeName& name : names) {
    GENERAL_NAME* added = GENERAL_NAME_new();
    if (!all || added == nullptr || sk_GENERAL_NAME_push(all.get(), added) <= 0) {
      GENERAL_NAME_free(added);
      return OpenSslError("name the certificate");
    }
    ASN1_STRING* value = MakeValue(name);
    if (value == nullptr) return OpenSslError(Concat("put ", TextOf(name), " into a certificate"));
    GENERAL_NAME_set0_value(added, name.type, value);
  }
  return all;
}

}  // namespace pelab::access
