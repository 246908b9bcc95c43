// The environment variable that may hold the token of a client or a worker.
#pragma once

namespace pelab::rpc {

inline constexpr char kTokenVariable[] = "PELAB_TOKEN";

}  // namespace pelab::rpc
