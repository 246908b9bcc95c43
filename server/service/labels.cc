// SweepsService: names and notes of sweeps.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/check_text.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
grpc::Status SweepsService::Rename(grpc::ServerContext* context, const v1::RenameRequest* request,
                                   v1::SweepControl* response) {
  if (absl::Status status = CheckSweepName(request->name()); !status.ok())
    return rpc::ToGrpc(status);
  return rpc::ToGrpc(DoLabel(*context, "Sweeps/Rename", request->sweep().sweep(),
                             {.name = request->name(), .note = {}}, *response));
}

grpc::Status SweepsService::SetNote(grpc::ServerContext* context, const v1::SetNoteRequest* request,
                                    v1::SweepControl* response) {
  if (request->note().size() > limits::kNoteBytes) {
    return rpc::ToGrpc(absl::InvalidArgumentError(absl::StrCat(
        "the note has ", request->note().size(), " bytes; allowed: ", limits::kNoteBytes)));
  }
  return rpc::ToGrpc(DoLabel(*context, "Sweeps/SetNote", request->sweep().sweep(),
                             {.name = {}, .note = request->note()}, *response));
}

absl::Status SweepsService::DoLabel(const grpc::ServerContext& context, absl::string_view method,
                                    const std::string& name, store::LabelSweep write,
                                    v1::SweepControl& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, OwnSweep(caller, name));
  write.sweep_id = sweep.sweep_id();
  const std::string new_name = write.name.value_or("");
  PELAB_ASSIGN_OR_RETURN(const store::WriteResult result,
                         AppendAndWait(parts_.writer, std::move(write), nullptr,
                                       caller.Act(method, access::Named(sweep))));
  const auto& labeled = std::get<store::SweepLabeled>(result);
  if (!labeled.found) return absl::NotFoundError(absl::StrCat("no sweep \"", name, "\""));
  if (labeled.has_name != 0) {
    return absl::AlreadyExistsError(absl::StrCat("sweep ", labeled.has_name, " is named \"",
                                                 new_name, "\" already; choose another name"));
  }
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  PELAB_ASSIGN_OR_RETURN(sweep, reader->GetSweepRow(absl::StrCat(sweep.sweep_id())));
  response.set_sweep_id(sweep.sweep_id());
  response.set_name(sweep.name());
  response.set_state(sweep.state());
  response.set_paused(sweep.paused());
  response.set_priority(sweep.priority());
  response.set_changed(labeled.changed);
  return absl::OkStatus();
}

}  // namespace pelab::service
