// A claim sheet with what stored results say about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/options/sheet_file.h"
#include "client/source/data_source.h"
#include "core/claims/evidence.h"
#include "core/claims/judgement.h"

namespace pelab::client {

// One element of `evidence` and `judgements` for each of the sheet's bound claims.
struct JudgedSheet {
  claims::BoundSheet sheet;
  std::string sha256;
  std::string source;  // of the results, for people
  std::vector<claims::Evidence> evidence;
  std::vector<claims::Judgement> judgements;
  // A different registered sheet with the same name, if this sheet is not registered.
  std::optional<v1::SheetRow> namesake;
  // If no claim has a seed: the first seed that is complete for some claim. It does not count,
  // since an earlier one is missing.
  std::optional<std::int64_t> later_seed;

  // The rest is for a sheet that is registered. Its verdicts are those of its last round.
  std::optional<v1::SheetRow> registered;
  std::vector<v1::SheetClaimRow> claims;  // after that round; none before the first
  // Claims whose stored results do not give the e-values of that round any more.
  std::vector<std::string> changed;
  std::int64_t jobs = 0;  // of its sweep, that are trained or have diverged
  double slot_seconds = 0;
};

// A file, or else a registered sheet, by name, number or hash; `file_in_error` as LoadSheet has it.
absl::StatusOr<SheetFile> FindSheetFile(const GlobalOptions& options, const std::string& name,
                                        std::string* file_in_error);

// Judges a sheet that is not registered on the jobs of `filter`, from `first_seed` on.
absl::StatusOr<JudgedSheet> JudgeFile(DataSource& source, SheetFile file,
                                      const v1::JobFilter& filter, std::int64_t first_seed);

// Whether some claim has a seed that counts.
bool HasSeeds(const JudgedSheet& judged);

// `sheet` is one of DataSource::Sheet.
absl::StatusOr<JudgedSheet> JudgeRegistered(DataSource& source, const v1::Sheet& sheet);

// The registered sheet that `sheet` names; nullopt if there is none.
absl::StatusOr<std::optional<v1::Sheet>> FindRegistered(DataSource& source,
                                                        const std::string& sheet);

// The registered sheet `name`, where the argument could also have been a file. If there is no such
// sheet: the error of ReadFile if `name` is a directory, otherwise NOT_FOUND, with a message that
// says that there is no such file either.
absl::StatusOr<v1::Sheet> RegisteredOrNoFile(DataSource& source, const std::string& name);

}  // namespace pelab::client
