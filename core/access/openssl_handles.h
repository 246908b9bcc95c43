// Ownership of OpenSSL's objects, and its errors as statuses. Internal to core/access.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "core/base/strings.h"

namespace pelab::access {

template <typename T, auto Free>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
template <typename T, auto Free>
using Owned = std::unique_ptr<T, Freed<T, Free>>;

using Bio = Owned<BIO, BIO_free_all>;
using Certificate = Owned<X509, X509_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using BigNumber = Owned<BIGNUM, BN_free>;
using Extension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using GeneralNames = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

// INTERNAL, "cannot sign the certificate: REASON", with the last reason in this thread's queue of
// errors, which is emptied.
inline absl::Status OpenSslError(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InternalError(
      Concat("cannot ", what, ": ", reason == nullptr ? "OpenSSL gives no reason" : reason));
}

}  // namespace pelab::access
