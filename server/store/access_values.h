// Writes that concern principals and the record of what they do (writes.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pelab/v1/admin.pb.h"

namespace pelab::store {

// A principal as it is stored. Times are Unix milliseconds.
struct Principal {
  std::string name;
  v1::Role role = v1::ROLE_READER;
  std::string token_sha256;           // empty: it has a certificate
  std::string previous_token_sha256;  // valid until previous_until
  std::int64_t previous_until = 0;
  std::string certificate_uri;  // empty: it has a token
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;  // 0: never
  bool disabled = false;
  v1::PrincipalLimits limits;
  double gpu_seconds_used = 0;
};

// Adds a principal.
struct AddPrincipal {
  Principal principal;
  // Somebody else can act as an operator, by the token of --token-file.
  bool other_operator = false;
};
// Changes what is set in `change`; with a token, also that.
struct ChangePrincipal {
  v1::ChangePrincipalRequest change;
  std::string token_sha256;         // empty: the token stays
  std::int64_t previous_until = 0;  // how long the token before stays valid
  bool other_operator = false;      // as in AddPrincipal
  std::int64_t now = 0;
};
struct PrincipalStored {
  enum Refusal {
    kNone,
    kTaken,         // another principal has the name or the certificate
    kUnknown,       // there is no such principal
    kNotOperator,   // the first principal must be an operator
    kLastOperator,  // no operator would be left that can call
    kCertificate,   // it has a certificate and gets no token
  };
  Refusal refusal = kNone;  // not kNone: nothing is stored
  Principal principal;
};

// Records what a principal did, or was refused, as a row of the audit table.
struct RecordAct {
  std::int64_t at = 0;
  std::string principal;  // empty: nobody that is known
  std::string peer;
  std::string method;  // "Sweeps/Cancel"
  std::string target;
  // Empty: that of the write before it in the same call of Append, in the same transaction: "OK",
  // or "REFUSED" if the store refused it.
  std::string outcome;
  std::int64_t count = 1;
  std::string trace_id;
};

}  // namespace pelab::store
