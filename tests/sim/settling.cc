// Requests of settlers: registering a claim sheet, and advancing it by the steps of
// server/settle. Between two steps time passes and others are served.
#include <utility>
#include <variant>

#include "core/base/status.h"
#include "server/settle/advance.h"
#include "server/settle/registration.h"
#include "server/settle/sheets.h"
#include "server/stored_sweep.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/process.h"

namespace pelab::sim {
namespace {

constexpr int kMostSteps = 100;  // of one request
constexpr absl::Duration kAnswerTime = absl::Milliseconds(2);

// Shared by all processes of all histories: binding a sheet takes longer than most histories.
settle::Sheets& BoundSheets() {
  static auto* const sheets = new settle::Sheets;
  return *sheets;
}

}  // namespace

struct Coordinator::Advancing {
  settle::Advance advance;
  SheetAnswer answer;
  std::shared_ptr<const bool> alive;
  int steps = 0;
};

db::Reader& Coordinator::Reading() {
  std::unique_ptr<db::Reader>& reader = process_->reader;
  if (!reader) {
    reader = db::Reader::Over(
        std::make_unique<SQLite::Database>(std::string(kPath), SQLite::OPEN_READONLY,
                                           /*aBusyTimeoutMs=*/0, vfs_.name()));
  }
  return *reader;
}

void Coordinator::AnswerSheet(const absl::StatusOr<v1::Settlement>& settlement,
                              const SheetAnswer& answer) {
  if (settlement.ok()) ledger_.Told(*settlement);
  world_.After(kAnswerTime, [alive = process_->alive, settlement, answer] {
    if (*alive) answer(settlement);
  });
}

void Coordinator::RegisterSheet(const v1::RegisterSheetRequest& request, SheetAnswer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  auto write = settle::RegistrationOf(request, "", absl::ToUnixMillis(world_.Wall()), Reading());
  if (!write.ok()) return AnswerSheet(write.status(), answer);
  Append(
      *std::move(write), [](const store::WriteResult&) {},
      [this, answer](const absl::StatusOr<store::WriteResult>& result) {
        if (!result.ok()) return AnswerSheet(result.status(), answer);
        const auto& registered = std::get<store::SheetRegistered>(*result);
        const absl::Status checked = settle::CheckRegistered("", 0, registered);
        if (!checked.ok()) return AnswerSheet(checked, answer);
        v1::AdvanceRequest where;
        where.mutable_sheet()->set_sheet(absl::StrCat(registered.sheet_id));
        Advance(where, answer);
      });
}

void Coordinator::Advance(const v1::AdvanceRequest& request, SheetAnswer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  TakeStep(std::make_shared<Advancing>(
      Advancing{.advance = settle::Advance(world_, BoundSheets(), request, {}),
                .answer = std::move(answer),
                .alive = process_->alive}));
}

void Coordinator::TakeStep(const std::shared_ptr<Advancing>& advancing) {
  if (++advancing->steps > kMostSteps) world_.Violate("a request to advance a sheet has no end");
  auto step = advancing->advance.Next(Reading());
  if (!step.ok()) return AnswerSheet(step.status(), advancing->answer);
  if (auto* const answer = std::get_if<settle::Answer>(&*step)) {
    return AnswerSheet(std::move(answer->settlement), advancing->answer);
  }
  // A write that waits may be out of date when it is stored.
  const absl::Duration pause = settling_dice_.Chance(0.3)
                                   ? settling_dice_.Between(absl::ZeroDuration(), absl::Seconds(4))
                                   : absl::ZeroDuration();
  world_.After(pause, [this, advancing, write = std::get<settle::Change>(*std::move(step)).write] {
    if (*advancing->alive) StoreChange(advancing, write);
  });
}

store::Write Coordinator::Spoiled(store::Write write) {
  auto* const begin = std::get_if<store::BeginRound>(&write);
  if (begin == nullptr || begin->round == 1) return write;
  if (planted_.skips_seeds) {
    begin->first_seed += 1;
    begin->end_seed += 1;
  }
  if (planted_.widens_rounds && !begin->seeds.seeds.empty()) {
    const std::int64_t sweep_id =
        Number("SELECT sweep_id FROM sheets WHERE sheet_id = ?", begin->sheet_id);
    const auto sweep = RebuildSweep(*Reading().GetSweepRow(absl::StrCat(sweep_id)));
    const std::string& seeds = begin->seeds.seeds;
    const auto extension = experiment::Extend(*sweep, seeds.substr(0, seeds.find(' ')));
    begin->seeds.seeds = extension.seeds;
    begin->seeds.cells = extension.sweep->cells();
  }
  return write;
}

void Coordinator::StoreChange(const std::shared_ptr<Advancing>& advancing, store::Write write) {
  Append(
      Spoiled(std::move(write)),
      [this](const store::WriteResult& result) {
        const store::SliceStored* const jobs = store::JobsOf(result);
        if (jobs == nullptr) return;
        process_->executor->Post([this, jobs = *jobs] { process_->scheduler->Expanded(jobs); });
      },
      [this, advancing](absl::StatusOr<store::WriteResult> result) {
        const absl::Status stored = OnStored(*advancing, std::move(result));
        if (!stored.ok()) return AnswerSheet(stored, advancing->answer);
        TakeStep(advancing);
      });
}

absl::Status Coordinator::OnStored(Advancing& advancing,
                                   absl::StatusOr<store::WriteResult> result) {
  PELAB_RETURN_IF_ERROR(result.status());
  PELAB_ASSIGN_OR_RETURN(auto expansion, advancing.advance.Stored(Reading(), *result));
  if (expansion && planted_.widens_rounds) {
    const auto row = Reading().GetSweepRow(absl::StrCat(expansion->sweep_id));
    PELAB_ASSIGN_OR_RETURN(expansion->sweep, RebuildSweep(*row));
  }
  if (expansion) {
    Expand(expansion->sweep_id,
           std::make_shared<const experiment::Sweep>(std::move(expansion->sweep)), expansion->from);
  }
  return absl::OkStatus();
}

}  // namespace pelab::sim
