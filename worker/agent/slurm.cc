#include "worker/agent/slurm.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "worker/agent/run_program.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);  // slurmctld can be busy
constexpr std::size_t kMostOutput = 4096;
constexpr std::size_t kMostDigits = 9;

// Days, hours, minutes or seconds: digits alone.
bool ReadCount(absl::string_view text, int* count) {
  const bool digits = !text.empty() && text.size() <= kMostDigits &&
                      text.find_first_not_of("0123456789") == absl::string_view::npos;
  return digits && absl::SimpleAtoi(text, count);
}

absl::Status Unreadable(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("\"", Escape(Shorten(std::string(text), 100)),
                                                 "\" is no time that Slurm writes"));
}

}  // namespace

absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text) {
  const absl::string_view whole = absl::StripAsciiWhitespace(text);
  if (whole == "UNLIMITED") return absl::InfiniteDuration();
  absl::Duration time;
  std::vector<absl::string_view> parts = absl::StrSplit(whole, '-');
  const bool has_days = parts.size() == 2;
  int count = 0;
  if (has_days) {
    if (!ReadCount(parts[0], &count)) return Unreadable(whole);
    time = count * absl::Hours(24);
  }
  if (parts.size() > 2) return Unreadable(whole);
  parts = absl::StrSplit(parts.back(), ':');
  if (parts.size() > 3 || (has_days && parts.size() != 3)) return Unreadable(whole);
  absl::Duration unit = parts.size() == 3   ? absl::Hours(1)
                        : parts.size() == 2 ? absl::Minutes(1)
                                            : absl::Seconds(1);
  for (const absl::string_view part : parts) {
    if (!ReadCount(part, &count)) return Unreadable(whole);
    time += count * unit;
    unit /= 60;
  }
  return time;
}

namespace {

absl::StatusOr<absl::Duration> Ask(const std::string& squeue, const std::string& job) {
  SpawnOptions options;
  options.argv = {squeue, "-h", "-j", job, "-o", "%L"};
  const std::string what = absl::StrCat("squeue -j ", job);
  PELAB_ASSIGN_OR_RETURN(const ProgramOutput output,
                         RunProgram(std::move(options), what, {kPatience, kMostOutput}));
  absl::StatusOr<absl::Duration> left = ParseSlurmTime(output.out);
  if (!left.ok()) return Annotate(left.status(), absl::StrCat(what, " -o %L"));
  return left;
}

}  // namespace

absl::StatusOr<absl::Duration> SlurmTimeLeft() {
  const char* job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr || *job == '\0') {
    return absl::FailedPreconditionError(
        "SLURM_JOB_ID is not set, so this is no job of Slurm; allowed here: a time such as 4h");
  }
  PELAB_ASSIGN_OR_RETURN(const std::string squeue, FindProgram("squeue"));
  absl::StatusOr<absl::Duration> left = Ask(squeue, job);
  if (left.ok()) return left;
  spdlog::warn(
      "the time that Slurm leaves is not known ({}); the jobs are given back when Slurm sends "
      "SIGTERM",
      std::string(left.status().message()));
  return absl::InfiniteDuration();
}

}  // namespace pelab::agent
