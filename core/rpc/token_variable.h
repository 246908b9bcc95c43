// The environment variable that may hold a client's or a worker's token.
#pragma once

namespace pelab::rpc {

inline constexpr char kTokenVariable[] = "PELAB_TOKEN";

}  // namespace pelab::rpc
