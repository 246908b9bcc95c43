#include "core/access/certificate_end.h"

#include <openssl/pem.h>

#include <cstddef>
#include <ctime>

#include "core/access/openssl_handles.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::access {
namespace {

constexpr std::size_t kMostCertificateBytes = 1 << 20;

}  // namespace

absl::StatusOr<absl::Time> EndOfCertificate(const std::string& pem_file) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(pem_file, kMostCertificateBytes));
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  std::tm end{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return absl::FailedPreconditionError(Concat(pem_file, " has no certificate in PEM form"));
  }
  return absl::FromTM(end, absl::UTCTimeZone());
}

}  // namespace pelab::access
