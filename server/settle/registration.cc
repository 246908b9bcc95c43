#include "server/settle/registration.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/claims/evidence.h"
#include "core/experiment/configuration.h"
#include "core/rpc/sheet_document.h"
#include "server/limits.h"

namespace pelab::settle {
namespace {

// The templates of the configurations that claims are about.
std::vector<std::string> TemplatesOf(const claims::BoundSheet& sheet) {
  std::vector<bool> used(sheet.configurations.size());
  for (const claims::BoundClaim& claim : sheet.claims) {
    for (const std::size_t cell : claims::CellsOf(claim)) used[cell] = true;
  }
  std::vector<std::string> templates;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const experiment::Cell& cell = sheet.configurations[i];
    if (used[i]) templates.push_back(experiment::TemplateOf(cell.canonical_json, cell.job.seed));
  }
  return templates;
}

// The slots of the workers that are there.
absl::StatusOr<std::int64_t> OnlineSlots(db::Reader& reader) {
  std::int64_t slots = 0;
  v1::ListWorkersRequest request;
  request.mutable_page()->set_limit(db::kMaxPage);
  PELAB_ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, reader.ListWorkers(request));
  for (const v1::WorkerRow& worker : workers.workers()) {
    if (worker.state() == "online") slots += worker.slots();
  }
  return std::clamp<std::int64_t>(slots, 1, limits::kSlotsOfSheet);
}

}  // namespace

absl::StatusOr<store::RegisterSheet> RegistrationOf(const v1::RegisterSheetRequest& request,
                                                    const std::string& owner, std::int64_t now,
                                                    db::Reader& reader) {
  PELAB_ASSIGN_OR_RETURN(const claims::BoundSheet bound,
                         rpc::BindSheetDocument(request.document(), request.sweep_document()));
  PELAB_RETURN_IF_ERROR(claims::CheckCanBeSettled(bound));
  const claims::Sheet& sheet = bound.sheet;
  PELAB_ASSIGN_OR_RETURN(const std::string sweep_document,
                         rpc::SweepDocumentOf(sheet, request.sweep_document()));
  store::RegisterSheet write{.name = sheet.name,
                             .sha256 = claims::HashOf(request.document(), sweep_document),
                             .document = request.document(),
                             .file_name = request.file_name(),
                             .sweep_document = sweep_document,
                             .templates = TemplatesOf(bound),
                             .first_seed = sheet.first_seed,
                             .fresh = !request.any_seeds(),
                             .end_of_seeds = claims::kFirstPilotSeed,
                             .max_seeds = sheet.max_seeds,
                             .slots = request.slots(),
                             .owner = owner,
                             .now = now};
  if (write.slots == 0) {
    PELAB_ASSIGN_OR_RETURN(write.slots, OnlineSlots(reader));
  }
  return write;
}

absl::Status CheckRegistered(const std::string& name, std::int64_t max_seeds,
                             const store::SheetRegistered& registered) {
  if (registered.has_name) {
    return absl::AlreadyExistsError(
        absl::StrCat("sheet ", *registered.has_name, " is named ", name,
                     " and says something else (pelab claims diff ", *registered.has_name,
                     " FILE); an edited sheet is another one and needs a name of its own, and the "
                     "registered one ",
                     "goes on with: pelab settle ", *registered.has_name));
  }
  if (registered.fresh_from) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the cells of sheet ", name, " have seeds up to ", *registered.fresh_from - 1,
        ", and the sheet needs ", max_seeds, " below ", claims::kFirstPilotSeed,
        "; a smaller max_seeds may do, or seeds that are stored already (--no-fresh-seeds)"));
  }
  return absl::OkStatus();
}

}  // namespace pelab::settle
