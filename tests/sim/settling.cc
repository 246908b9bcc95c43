// Requests of settlers: registering a claim sheet, and advancing it by the steps of
// server/settle. Between two steps time passes and others are served.
#include <SQLiteCpp/SQLiteCpp.h>
#include "server/store/database.h"
#include <utility>
#include <variant>

#include "core/base/status.h"
#include "server/settle/advance.h"
#include "server/settle/registration.h"
#include "server/settle/sheets.h"
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

void DebugDump(World& world, db::Reader& reader, store::Store& store, const store::Write& write) {
  world.Note("STEP ", static_cast<int>(write.index()), std::holds_alternative<store::EndRound>(write) ? " end" : std::holds_alternative<store::BeginRound>(write) ? " begin" : std::holds_alternative<store::RetryJob>(write) ? " retry" : " reopen");
  if (!std::holds_alternative<store::EndRound>(write)) return;
  SQLite::Statement q(store.database().connection(),
    "SELECT s.sweep_id, c.ordinal, j.job_id, j.seed, j.configuration_id, j.generation, j.state, j.test_correct, (SELECT group_concat(a.attempt_id || ':' || coalesce(a.outcome,'open') || ':' || coalesce(a.error_kind,'')) FROM attempts a WHERE a.job_id=j.job_id), (SELECT count(*) FROM analyses a WHERE a.job_id = j.job_id) FROM sheets s JOIN sweep_jobs c USING (sweep_id) JOIN jobs j USING (job_id)");
  {
  v1::GetSheetRequest request; request.mutable_sheet()->set_sheet("1");
  auto sheet = BoundSheets().Load(reader, "1");
  auto rows = settle::RowsOf(reader, *sheet);
  world.Note("READER round ", sheet->last ? sheet->last->number : 0, " open ", sheet->open, " cells ", sheet->last->cells.size());
  for (const v1::JobRow& r : rows->jobs) world.Note("RROW ", r.job_id(), " seed ", r.seed(), " conf ", r.configuration_id(), " gen ", r.generation(), " state ", static_cast<int>(r.state()), " test ", r.test_accuracy(), " train ", r.train_accuracy(), " trained ", r.trained());
  for (const auto& r : rows->attempts) world.Note("RATT ", r.attempt_id(), " job ", r.job_id(), " ", r.error_kind());
  for (const auto& a : std::get<store::EndRound>(write).claims) world.Note("CLAIM ", a.claim, " ", a.standing, " ", a.seeds, " ", a.log_e_holds, " ", a.log_e_fails);
  }
  while (q.executeStep()) {
    std::string line = "DUMP";
    for (int i = 0; i < 10; ++i) line += " " + std::string(q.getColumn(i).getText(""));
    world.Note(line);
  }
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
  DebugDump(world_, Reading(), *process_->store, std::get<settle::Change>(*step).write);
  // What is to be stored may be out of date until then.
  const absl::Duration pause = settling_dice_.Chance(0.3)
                                   ? settling_dice_.Between(absl::ZeroDuration(), absl::Seconds(4))
                                   : absl::ZeroDuration();
  world_.After(pause, [this, advancing, write = std::get<settle::Change>(*std::move(step)).write] {
    if (*advancing->alive) StoreChange(advancing, write);
  });
}

void Coordinator::StoreChange(const std::shared_ptr<Advancing>& advancing, store::Write write) {
  Append(
      std::move(write),
      [this](const store::WriteResult& result) {
        const store::SliceStored* const jobs = settle::JobsOf(result);
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
  if (expansion) {
    Expand(expansion->sweep_id,
           std::make_shared<const experiment::Sweep>(std::move(expansion->sweep)), expansion->from);
  }
  return absl::OkStatus();
}

}  // namespace pelab::sim
