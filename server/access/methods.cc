#include "server/access/methods.h"

#include <google/protobuf/descriptor.h>

#include "absl/strings/str_cat.h"
#include "pelab/v1/admin.pb.h"
#include "pelab/v1/allocations.pb.h"
#include "pelab/v1/claims.pb.h"
#include "pelab/v1/fleet.pb.h"
#include "pelab/v1/maintenance.pb.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"
#include "pelab/v1/transfer.pb.h"

namespace pelab::access {
namespace {

// Each file is named by one of its messages, so that it is linked.
const google::protobuf::FileDescriptor* const* Files(int* count) {
  static const google::protobuf::FileDescriptor* const files[] = {
      v1::SubmitRequest::descriptor()->file(), v1::ListJobsRequest::descriptor()->file(),
      v1::Hello::descriptor()->file(),         v1::BackupRequest::descriptor()->file(),
      v1::ImportKey::descriptor()->file(),     v1::WhoAmIRequest::descriptor()->file(),
      v1::SheetRef::descriptor()->file(),      v1::QueueRow::descriptor()->file()};
  *count = static_cast<int>(sizeof(files) / sizeof(files[0]));
  return files;
}

}  // namespace

absl::StatusOr<Methods> Methods::Build() {
  Methods methods;
  int count = 0;
  const auto* files = Files(&count);
  for (int f = 0; f < count; ++f) {
    for (int s = 0; s < files[f]->service_count(); ++s) {
      const auto& service = *files[f]->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        const auto& method = *service.method(m);
        const v1::Needs& needs = method.options().GetExtension(v1::needs);
        if (needs.role() == v1::ROLE_UNSPECIFIED) {
          return absl::FailedPreconditionError(
              absl::StrCat("method ", method.full_name(), " has no option (pelab.v1.needs)"));
        }
        methods.methods_[absl::StrCat("/", service.full_name(), "/", method.name())] = {
            .name = absl::StrCat(service.name(), "/", method.name()),
            .needs = needs,
            .streams = method.server_streaming()};
      }
    }
  }
  return methods;
}

const Methods::Method* Methods::Find(absl::string_view path) const {
  const auto found = methods_.find(std::string(path));
  return found == methods_.end() ? nullptr : &found->second;
}

}  // namespace pelab::access
