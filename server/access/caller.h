// The maker of a call, as its handler sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pelab/v1/sweeps.pb.h"
#include "server/store/access_values.h"

namespace pelab::access {

// A value.
struct Caller {
  // Empty: the coordinator has no principals, so everybody may do everything and nothing is
  // recorded.
  std::string name;
  v1::Role role = v1::ROLE_OPERATOR;
  v1::PrincipalLimits limits;
  std::string peer;      // "ipv4:10.0.0.7:51234"
  std::string trace_id;  // of the call's traceparent; empty: it has none
  std::int64_t at = 0;   // when the call came, in Unix milliseconds

  bool operates() const { return role == v1::ROLE_OPERATOR; }

  // PERMISSION_DENIED if the sweep is somebody else's and the caller no operator.
  absl::Status MayChange(const v1::Sweep& sweep) const;
  // Likewise for what is `named` "sheet 3 (lengths)" and is one of the "sheets".
  absl::Status MayChange(const std::string& named, const std::string& owner,
                         absl::string_view kind) const;
  // PERMISSION_DENIED if a submitter may not give its sweeps this priority.
  absl::Status MaySetPriority(int priority) const;
  // The record of what the caller does, to be stored with it; nullopt: there are no principals.
  std::optional<store::RecordAct> Act(absl::string_view method, std::string target) const;
};

// "sweep 3 (lengths)", as records and messages name a sweep.
std::string Named(const v1::Sweep& sweep);

}  // namespace pelab::access
