// Handles one request to advance a claim sheet, step by step. The request may do four things, in
// this order: put aside the claims that it names, queue again what does not run (`again`), end the
// last round, and begin the round that it asks for. The last round ends only if every job that an
// open claim needs is complete; a round begins only if it is the next one.
//
// A round is a function of the sheet, of the round before and of stored results, and the store
// begins and ends it only once. So any number of clients may request it at once. The order in which
// their writes are stored does not matter, and a client may die after any step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/db/read/reader.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/claims.pb.h"
#include "server/settle/settlement.h"
#include "server/settle/sheets.h"
#include "server/store/writes.h"

namespace pelab::settle {

// The settings of the caller who asks for the next step.
struct Asker {
  std::int64_t max_queued = 0;  // jobs of the sheet's owner that may wait; 0: no limit
  TraceContext trace;           // of the sheet's sweep, if this request makes it
};

// A write that has to be stored before the next step.
struct Change {
  store::Write write;
  std::string act;  // what it does, for the record; empty: it is not recorded
};
// The request is answered with the state of the sheet.
struct Answer {
  v1::Settlement settlement;
  std::size_t claims = 0;  // of the sheet
};
using Step = std::variant<Change, Answer>;

// The cells of `sweep` that become jobs next: those from the ordinal `from` on.
struct Expansion {
  std::int64_t sweep_id = 0;
  experiment::Sweep sweep;
  std::uint64_t from = 0;
};

// For one thread. Call Next, store the change that it returns, call Stored with the result, and so
// on until Next returns an answer. An error ends the request. Changes that were stored before it
// stay, and the same request can be made again.
class Advance {
 public:
  // `clock` and `sheets` must outlive it.
  Advance(const Clock& clock, Sheets& sheets, v1::AdvanceRequest request, Asker asker);

  // NOT_FOUND if there is no such sheet. INVALID_ARGUMENT if it does not have a claim that is to be
  // put aside. FAILED_PRECONDITION if the round that is asked for cannot begin because the sweep is
  // cancelled, deleted or cannot be extended, if `again` finds the sweep deleted, or if a claim is
  // to be put aside before a round has ended. ABORTED if others advanced the sheet at the same time
  // again and again. Otherwise errors of Sheets::Load and the reader.
  absl::StatusOr<Step> Next(db::Reader& reader);

  // RESOURCE_EXHAUSTED if too many jobs of the sheet's owner wait; otherwise errors of the reader.
  absl::StatusOr<std::optional<Expansion>> Stored(db::Reader& reader,
                                                  const store::WriteResult& result);

 private:
  absl::StatusOr<std::optional<Change>> PuttingAside(const StoredSheet& sheet) const;
  absl::StatusOr<Step> EndOrWait(db::Reader& reader, const StoredSheet& sheet);
  absl::StatusOr<std::optional<Change>> Reopening(db::Reader& reader,
                                                  const StoredSheet& sheet) const;
  absl::StatusOr<Step> QueueAgain(const StoredSheet& sheet, const std::vector<Blocked>& blocked,
                                  bool cancelled, Answer answer);
  absl::StatusOr<Step> Begin(db::Reader& reader, const StoredSheet& sheet,
                             const claims::Round& round);
  absl::StatusOr<experiment::Sweep> SweepOf(db::Reader& reader, const StoredSheet& sheet,
                                            store::BeginRound& write) const;
  std::int64_t Now() const;

  const Clock& clock_;
  Sheets& sheets_;
  const v1::AdvanceRequest request_;
  const Asker asker_;
  bool again_;                             // blocked jobs are still to be queued again
  int plans_ = 0;                          // how often the sheet was looked at
  std::deque<Change> queued_;              // the next changes, once they are known
  std::optional<Answer> then_;             // the answer after them
  std::optional<experiment::Sweep> with_;  // the sweep with the seeds of the round being begun
  std::string owner_;                      // of the sheet
};

}  // namespace pelab::settle
