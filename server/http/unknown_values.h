// The note of an answer that is empty because a condition names a value that no job has. Not
// thread-safe, like the reader.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"

namespace pelab::http {

// Adds the member "note" to `answer`: a results::UnknownValueSentence for each comparison (= < <= >
// >= or a value of a list) that no job of the filter's sweep meets, with "; " between. Adds nothing
// if the filter has met some `jobs`, if it has no condition, if some job meets each comparison, or
// if the sweep has more than kMostJobs jobs. Only the first values of a long condition are looked
// for. Errors of db::Reader.
absl::Status NoteUnknownValues(db::Reader& reader, const v1::JobFilter& filter, std::size_t jobs,
                               render::Json& answer);

}  // namespace pelab::http
