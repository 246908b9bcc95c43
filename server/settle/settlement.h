// The state of a claim sheet, as it is stored. Not thread-safe, like the reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/claims/rounds.h"
#include "core/claims/stored_rows.h"
#include "core/claims/summary.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"
#include "pelab/v1/claims.pb.h"
#include "server/store/sheet_values.h"

namespace pelab::settle {

// A stored sheet between two requests.
struct StoredSheet {
  v1::SheetRow row;  // with its documents
  std::shared_ptr<const claims::BoundSheet> bound;
  claims::Registration registration;
  std::optional<claims::Round> last;  // nullopt: no round was begun
  bool open = false;                  // the last round has not ended
  // The state of each claim after the last round that has ended; open until one has ended.
  std::vector<claims::ClaimState> states;
  std::vector<v1::SheetClaimRow> claims;  // the same as rows; empty until a round has ended
};

// "sheet 3 (lengths)", as records and messages name a sheet.
std::string Named(const v1::SheetRow& sheet);

// `bound` is the sheet of the stored documents. DATA_LOSS if the rows do not fit it.
absl::StatusOr<StoredSheet> LoadSheet(db::RowReader& reader, v1::Sheet sheet,
                                      std::shared_ptr<const claims::BoundSheet> bound);

// The stored results of the sheet's sweep; empty if the sheet has no stored sweep.
absl::StatusOr<claims::StoredRows> RowsOf(db::RowReader& reader, const StoredSheet& sheet);

// Summarizes the seeds of each claim, up to the last round that gave it seeds and has ended.
absl::StatusOr<std::vector<claims::Summary>> SummariesOf(db::RowReader& reader,
                                                         const StoredSheet& sheet);

// The position in StoredSheet::bound->claims of the claim whose BoundClaim::id is `id`. The id has
// the values of the claim's `each`. INVALID_ARGUMENT if the sheet has no such claim.
absl::StatusOr<std::size_t> PositionOf(const StoredSheet& sheet, const std::string& id);

// Returns the results of a claim's seeds, as the JSON API shows them: `metric`, `fraction`, `sides`
// and `statistics` (docs/formats.md). The seeds go up to the last round that gave the claim seeds
// and has ended. Errors: those of PositionOf and of the reader.
absl::StatusOr<render::Json> SeedsOf(db::RowReader& reader, const StoredSheet& sheet,
                                     const std::string& claim);

// The rows that EndRound stores for the claims, which stand as in `states` after round `number`.
// `before`: the rows after the round before, or none. A claim that got no further seeds keeps its
// figures (k to median_high), even if some of its results have changed since.
std::vector<v1::SheetClaimRow> RowsAfter(const StoredSheet& sheet, std::int64_t number,
                                         std::span<const v1::SheetClaimRow> before,
                                         std::span<const claims::ClaimState> states,
                                         const claims::Outcomes& outcomes);

// The cells of the round, each as the number of its combination (experiment::Cell).
std::vector<std::uint64_t> CombinationsOf(const StoredSheet& sheet, const claims::Round& round);
// "[0,3]"
std::string CellsJson(const std::vector<std::uint64_t>& combinations);

// A job of the open round that will not end unless it is queued again.
struct Blocked {
  v1::BlockedJob job;
  bool failed = false;  // RetryJob queues it again; otherwise ReopenSweep does
};
// `live`: the sheet's sweep is expanding or active, so that what is not stored may still come.
std::vector<Blocked> BlockedOf(const StoredSheet& sheet, const claims::StoredRows& rows,
                               const std::vector<claims::OpenCell>& open, bool live);

// The settlement without its open round, which Advance adds.
absl::StatusOr<v1::Settlement> ToSettlement(db::Reader& reader, const StoredSheet& sheet,
                                            const claims::StoredRows& rows);

}  // namespace pelab::settle
