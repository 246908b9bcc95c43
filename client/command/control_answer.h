// Commands that change one sweep: pause, resume, priority, sweeps rename and sweeps note. As
// thread-safe as the context.
#pragma once

#include <string>

#include "client/embedded/call_session.h"
#include "client/options/options.h"
#include "client/source/connect.h"
#include "core/base/status.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// Changes `sweep` as `request` describes. Returns the errors of CallOnce.
template <typename Request>
absl::StatusOr<v1::SweepControl> Change(
    const Context& context, const std::string& sweep,
    absl::StatusOr<v1::SweepControl> (Coordinator::*change)(const Request&), Request request = {}) {
  request.mutable_sweep()->set_sweep(sweep);
  absl::StatusOr<v1::SweepControl> control;
  PELAB_RETURN_IF_ERROR(CallOnce(context, [&](Coordinator& coordinator) {
                          control = (coordinator.*change)(request);
                          return control.status();
                        }).status());
  return control;
}

// Writes "sweep 1 quick: TEXT", or the sweep's control state as one JSON value or CSV row. Returns
// kExitOk.
int PutControl(const Context& context, const v1::SweepControl& control, const std::string& text);

}  // namespace pelab::client
