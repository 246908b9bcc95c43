// Lets expensive calls take turns, so that nobody's calls take the processors or the memory from
// everybody else: documents that are read, and pages of results.
#pragma once

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "pelab/v1/common.pb.h"
#include "server/access/gate.h"
#include "server/turns.h"

namespace pelab::service {

// Thread-safe. It must outlive its turns, and each turn the call that it was taken for.
class Admission {
 public:
  explicit Admission(const access::Gate& gate);

  // A turn at reading a sweep document or analyses, and at what follows from them.
  absl::StatusOr<Turns::Turn> Document(const grpc::ServerContext& context);
  // A turn at reading a page of rows.
  absl::StatusOr<Turns::Turn> Page(const grpc::ServerContext& context, const v1::Page& page);

 private:
  absl::StatusOr<Turns::Turn> Take(Turns& turns, const grpc::ServerContext& context);

  const access::Gate& gate_;
  Turns documents_;
  Turns large_pages_;
  Turns small_pages_;
};

}  // namespace pelab::service
