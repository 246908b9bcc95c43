#include "core/access/certificate_authority.h"

#include <openssl/pem.h>
#include <unistd.h>

#include <cstddef>
#include <ctime>
#include <functional>
#include <utility>

#include "core/access/certificate_names.h"
#include "core/access/openssl_handles.h"
#include "core/access/role.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"

namespace pelab::access {
namespace {

constexpr std::size_t kMaxPemBytes = 1 << 20;
constexpr std::size_t kMaxCommonName = 64;  // characters (X.520)
constexpr int kSerialBits = 128;
constexpr absl::Duration kSlowClock = absl::Minutes(5);
constexpr absl::Duration kDay = absl::Hours(24);

// What is to be in a certificate, apart from its key.
struct Contents {
  std::string common_name;
  std::vector<AlternativeName> names;
  std::vector<std::pair<int, const char*>> extensions;  // the extension's NID and its text
  absl::Time begin;
  absl::Time end;
};

// The certificate and the key that sign others.
struct Authority {
  Certificate certificate;
  Key key;
};

absl::Status CheckDays(int days) {
  if (days >= 1 && days <= kMaxDays) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("invalid number of days ", days, "; allowed: from 1 to ", kMaxDays));
}

absl::Status SetTimes(X509* certificate, absl::Time begin, absl::Time end) {
  const bool ok =
      ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(begin)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(end)) != nullptr;
  return ok ? absl::OkStatus() : OpenSslError("set the certificate's times");
}

absl::Time EndOf(const X509* certificate) {
  std::tm end = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&end));
}

absl::Status SetSerial(X509* certificate) {
  const BigNumber serial(BN_new());
  const bool ok = serial &&
                  BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
                  BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
  return ok ? absl::OkStatus() : OpenSslError("draw a serial number");
}

std::string SerialOf(const X509* certificate) {
  const BigNumber serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  char* digits = serial ? BN_bn2hex(serial.get()) : nullptr;
  std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  return text;
}

absl::Status SetCommonName(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* bytes = reinterpret_cast<const unsigned char*>(name.data());
  const int size = static_cast<int>(name.size());
  if (X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, bytes, size, -1, 0) == 1) {
    return absl::OkStatus();
  }
  return OpenSslError(Concat("name a certificate \"", name, "\""));
}

absl::Status AddExtensions(X509* certificate, X509* issuer, const Contents& contents) {
  X509V3_CTX context = {};
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const auto& [nid, text] : contents.extensions) {
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, text));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpenSslError(Concat("add ", OBJ_nid2sn(nid), "=", text, " to a certificate"));
    }
  }
  if (contents.names.empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(const GeneralNames names, MakeGeneralNames(contents.names));
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) !=
      1) {
    return OpenSslError("add alternative names to a certificate");
  }
  return absl::OkStatus();
}

// A certificate for `key`; it signs itself if there is no authority.
absl::StatusOr<Certificate> Sign(const Contents& contents, EVP_PKEY* key,
                                 const Authority* authority) {
  Certificate certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1) {
    return OpenSslError("make a certificate");
  }
  X509* issuer = authority == nullptr ? certificate.get() : authority->certificate.get();
  EVP_PKEY* signing = authority == nullptr ? key : authority->key.get();
  PELAB_RETURN_IF_ERROR(SetSerial(certificate.get()));
  PELAB_RETURN_IF_ERROR(SetTimes(certificate.get(), contents.begin, contents.end));
  PELAB_RETURN_IF_ERROR(SetCommonName(certificate.get(), contents.common_name));
  const bool ok =
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) == 1 &&
      X509_set_pubkey(certificate.get(), key) == 1;  // before the extensions, which have its hash
  if (!ok) return OpenSslError("make a certificate");
  PELAB_RETURN_IF_ERROR(AddExtensions(certificate.get(), issuer, contents));
  if (X509_sign(certificate.get(), signing, EVP_sha256()) == 0) {
    return OpenSslError("sign a certificate");
  }
  return certificate;
}

absl::StatusOr<Key> MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return OpenSslError("make a key");
  return key;
}

absl::StatusOr<std::string> ToPem(const std::function<int(BIO*)>& write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return OpenSslError("write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

absl::StatusOr<std::string> KeyText(EVP_PKEY* key) {
  return ToPem([key](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

absl::StatusOr<std::string> CertificateText(X509* certificate) {
  return ToPem([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

Bio ReadableText(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<Authority> ReadAuthority(const std::string& directory) {
  const std::string certificate_file = Concat(directory, "/", kAuthorityCertificate);
  const std::string key_file = Concat(directory, "/", kAuthorityKey);
  PELAB_ASSIGN_OR_RETURN(const std::string certificate, ReadFile(certificate_file, kMaxPemBytes));
  PELAB_ASSIGN_OR_RETURN(const std::string key, ReadFile(key_file, kMaxPemBytes));
  Authority authority;
  authority.certificate.reset(
      PEM_read_bio_X509(ReadableText(certificate).get(), nullptr, nullptr, nullptr));
  // An encrypted key would ask for its password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  authority.key.reset(
      PEM_read_bio_PrivateKey(ReadableText(key).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!authority.certificate || X509_check_ca(authority.certificate.get()) != 1) {
    return absl::FailedPreconditionError(
        Concat(certificate_file, " has no certificate of an authority in PEM form"));
  }
  if (!authority.key) {
    return absl::FailedPreconditionError(
        Concat(key_file, " has no private key in PEM form, or one that is encrypted"));
  }
  if (X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return absl::FailedPreconditionError(
        Concat(key_file, " is not the key of the certificate ", certificate_file));
  }
  return authority;
}

absl::Status CheckOutlives(const Authority& authority, int days, absl::Time now) {
  const absl::Time end = EndOf(authority.certificate.get());
  if (now + days * kDay <= end) return absl::OkStatus();
  const std::string ends = absl::FormatTime("%Y-%m-%d", end, absl::UTCTimeZone());
  const auto most = absl::ToInt64Hours(end - now) / 24;
  if (most < 1) {
    return absl::FailedPreconditionError(
        Concat("the authority ends on ", ends, " and signs nothing any more; make another one"));
  }
  return absl::InvalidArgumentError(Concat("invalid number of days ", days,
                                           ": the authority ends on ", ends,
                                           "; allowed: from 1 to ", most));
}

// Writes both files, or none of them.
absl::StatusOr<IssuedCertificate> WriteFiles(const std::string& stem, const X509* certificate,
                                             const std::string& certificate_text,
                                             const std::string& key_text) {
  IssuedCertificate issued{.certificate_file = Concat(stem, ".pem"),
                           .key_file = Concat(stem, ".key"),
                           .serial = SerialOf(certificate),
                           .not_after = EndOf(certificate)};
  PELAB_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(stem)));
  PELAB_RETURN_IF_ERROR(WriteNewFile(issued.key_file, key_text, 0600));
  if (absl::Status status = WriteNewFile(issued.certificate_file, certificate_text); !status.ok()) {
    unlink(issued.key_file.c_str());  // it was made above, for this certificate alone
    return status;
  }
  return issued;
}

absl::StatusOr<std::vector<AlternativeName>> NamesOf(const CertificateRequest& request) {
  if (request.names.empty()) return absl::InvalidArgumentError("a certificate needs a name");
  std::vector<AlternativeName> names;
  if (request.kind == CertificateRequest::Kind::kServer) {
    for (const std::string& host : request.names) {
      PELAB_ASSIGN_OR_RETURN(AlternativeName name, HostName(host));
      names.push_back(std::move(name));
    }
    return names;
  }
  const std::string& name = request.names.front();
  if (request.names.size() > 1) {
    return absl::InvalidArgumentError(
        Concat("unexpected name \"", request.names[1], "\": a certificate is for one principal"));
  }
  PELAB_RETURN_IF_ERROR(CheckPrincipalName(name));
  const bool worker = request.kind == CertificateRequest::Kind::kWorker;
  names.push_back({GEN_URI, worker ? WorkerUri(name) : PrincipalUri(name)});
  return names;
}

}  // namespace

std::string WorkerUri(const std::string& name) { return Concat("pelab://worker/", name); }
std::string PrincipalUri(const std::string& name) { return Concat("pelab://principal/", name); }

absl::StatusOr<IssuedCertificate> MakeAuthority(const std::string& directory,
                                                const std::string& name, int days, absl::Time now) {
  PELAB_RETURN_IF_ERROR(CheckDays(days));
  if (name.empty() || name.size() > kMaxCommonName || Escape(name) != name) {
    return absl::InvalidArgumentError(Concat("invalid name \"", Shorten(name, 100),
                                             "\" of an authority; allowed: 1 to ", kMaxCommonName,
                                             " bytes of printable text"));
  }
  PELAB_ASSIGN_OR_RETURN(const Key key, MakeKey());
  const Contents contents{.common_name = name,
                          .extensions = {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                         {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                         {NID_subject_key_identifier, "hash"}},
                          .begin = now - kSlowClock,
                          .end = now + days * kDay};
  PELAB_ASSIGN_OR_RETURN(const Certificate certificate, Sign(contents, key.get(), nullptr));
  PELAB_ASSIGN_OR_RETURN(const std::string certificate_text, CertificateText(certificate.get()));
  PELAB_ASSIGN_OR_RETURN(const std::string key_text, KeyText(key.get()));
  return WriteFiles(Concat(directory, "/ca"), certificate.get(), certificate_text, key_text);
}

absl::StatusOr<IssuedCertificate> IssueCertificate(const std::string& authority,
                                                   const CertificateRequest& request,
                                                   const std::string& out, absl::Time now) {
  PELAB_RETURN_IF_ERROR(CheckDays(request.days));
  PELAB_ASSIGN_OR_RETURN(std::vector<AlternativeName> names, NamesOf(request));
  PELAB_ASSIGN_OR_RETURN(const Authority signer, ReadAuthority(authority));
  PELAB_RETURN_IF_ERROR(CheckOutlives(signer, request.days, now));
  PELAB_ASSIGN_OR_RETURN(const Key key, MakeKey());
  const std::string& first = request.names.front();
  const bool server = request.kind == CertificateRequest::Kind::kServer;
  const Contents contents{
      // Programs read the alternative names; this one is for people who look at the file.
      .common_name = first.size() <= kMaxCommonName ? first : "pelab server",
      .names = names,
      .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_key_usage, "critical,digitalSignature"},
                     {NID_ext_key_usage, server ? "serverAuth" : "clientAuth"},
                     {NID_subject_key_identifier, "hash"},
                     {NID_authority_key_identifier, "keyid:always"}},
      .begin = now - kSlowClock,
      .end = now + request.days * kDay};
  PELAB_ASSIGN_OR_RETURN(const Certificate certificate, Sign(contents, key.get(), &signer));
  PELAB_ASSIGN_OR_RETURN(const std::string own_text, CertificateText(certificate.get()));
  PELAB_ASSIGN_OR_RETURN(const std::string chain, CertificateText(signer.certificate.get()));
  PELAB_ASSIGN_OR_RETURN(const std::string key_text, KeyText(key.get()));
  PELAB_ASSIGN_OR_RETURN(
      IssuedCertificate issued,
      WriteFiles(Concat(out, "/", first), certificate.get(), Concat(own_text, chain), key_text));
  for (const AlternativeName& name : names) issued.names.push_back(TextOf(name));
  return issued;
}

}  // namespace pelab::access
