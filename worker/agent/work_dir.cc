#include "worker/agent/work_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/json_text.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr auto kJobAge = std::chrono::hours(7 * 24);

// Fencing tokens and the worker's identity must stay private: anyone who has them can act as this
// worker.
constexpr unsigned kPrivateFile = 0600;
constexpr unsigned kPrivateDirectory = 0700;

absl::Status MakePrivate(const std::string& path, unsigned mode) {
  if (chmod(path.c_str(), mode) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot set the permissions of ", path));
}

absl::StatusOr<UniqueFd> Lock(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/lock");
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kPrivateFile));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("cannot lock ", path));
  return absl::FailedPreconditionError(
      absl::StrCat("work directory ", directory,
                   " is in use by another pelab-worker; give each worker a --workdir of its own"));
}

absl::StatusOr<std::string> ReadOrMakeWorkerId(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/worker_id");
  const absl::StatusOr<std::string> text = ReadFile(path, 256);
  if (text.ok()) {
    std::string id(absl::StripAsciiWhitespace(*text));
    if (IsUuid(id)) {
      // an earlier version made it readable for other users
      PELAB_RETURN_IF_ERROR(MakePrivate(path, kPrivateFile));
      return id;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds \"", id,
                     "\"; allowed: a UUID in lower case (remove the file to get a new one)"));
  }
  if (!absl::IsNotFound(text.status())) return text.status();
  std::string id = RandomUuid();
  PELAB_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(id, "\n"), kPrivateFile));
  return id;
}

bool IsKey(absl::string_view key) {
  return key.size() == 64 && key.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// A member of a record. Throws if it is missing (Json::exception) or is no integer of T.
template <typename T>
T Integer(const Json& record, const char* name) {
  if (const auto number = IntegerOf<T>(record.at(name))) return *number;
  throw std::out_of_range(absl::StrCat("\"", name, "\" is ", record.at(name).dump(),
                                       "; allowed: an integer of ", 8 * sizeof(T), " bits"));
}

std::string JobDirName(const v1::Assignment& assignment) {
  return absl::StrCat(assignment.key(), ".", assignment.job_id());
}

}  // namespace

absl::StatusOr<WorkDir> WorkDir::Open(const std::string& path) {
  // A directory that existed before may hold other things too, so its permissions are left alone.
  std::error_code unknown;
  const bool was_there = fs::exists(path, unknown);
  PELAB_RETURN_IF_ERROR(CreateDirectories(path));
  if (!was_there) PELAB_RETURN_IF_ERROR(MakePrivate(path, kPrivateDirectory));
  std::error_code error;
  const std::string absolute = fs::canonical(path, error).string();
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot use work directory ", path));
  PELAB_ASSIGN_OR_RETURN(UniqueFd lock, Lock(absolute));
  PELAB_ASSIGN_OR_RETURN(std::string worker_id, ReadOrMakeWorkerId(absolute));
  const std::string attempts = absl::StrCat(absolute, "/attempts");
  PELAB_RETURN_IF_ERROR(CreateDirectories(attempts));
  PELAB_RETURN_IF_ERROR(MakePrivate(attempts, kPrivateDirectory));
  PELAB_RETURN_IF_ERROR(CreateDirectories(absl::StrCat(absolute, "/jobs")));
  return WorkDir(absolute, std::move(lock), std::move(worker_id));
}

std::string WorkDir::AttemptDir(std::int64_t attempt_id) const {
  return absl::StrCat(path_, "/attempts/", attempt_id);
}

absl::StatusOr<std::string> WorkDir::JobDir(const v1::Assignment& assignment) const {
  if (!IsKey(assignment.key())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator sent key \"", assignment.key(),
                     "\"; allowed: 64 hexadecimal digits in lower case"));
  }
  return absl::StrCat(path_, "/jobs/", JobDirName(assignment));
}

absl::Status WorkDir::SaveAssignment(const v1::Assignment& assignment) const {
  const std::string directory = AttemptDir(assignment.attempt_id());
  PELAB_RETURN_IF_ERROR(CreateDirectories(directory));
  Json analyses = Json::array();
  for (const v1::Analysis& analysis : assignment.analyses()) analyses.push_back(analysis.name());
  const Json record = {{"attempt_id", assignment.attempt_id()},
                       {"token", absl::StrCat(absl::Hex(assignment.token()))},
                       {"job_id", assignment.job_id()},
                       {"key", assignment.key()},
                       {"label", assignment.label()},
                       {"analyses", std::move(analyses)},
                       {"max_start_epoch", assignment.max_start_epoch()}};
  PELAB_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/job.json"),
                                            JobDocument(assignment), kPrivateFile));
  return WriteFileAtomically(absl::StrCat(directory, "/attempt.json"), record.dump(2),
                             kPrivateFile);
}

absl::StatusOr<v1::Assignment> WorkDir::LoadAssignment(std::int64_t attempt_id) const {
  const std::string path = absl::StrCat(AttemptDir(attempt_id), "/attempt.json");
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, limits::kRecordBytes));
  const Json record = ParseJson<Json>(text);
  v1::Assignment assignment;
  std::uint64_t token = 0;
  try {
    assignment.set_attempt_id(Integer<std::int64_t>(record, "attempt_id"));
    assignment.set_job_id(Integer<std::int64_t>(record, "job_id"));
    assignment.set_key(record.at("key").get<std::string>());
    assignment.set_label(record.at("label").get<std::string>());
    assignment.set_max_start_epoch(Integer<std::int32_t>(record, "max_start_epoch"));
    for (const Json& name : record.at("analyses"))
      assignment.add_analyses()->set_name(name.get<std::string>());
    if (!absl::SimpleHexAtoi(record.at("token").get<std::string>(), &token)) {
      return absl::DataLossError(absl::StrCat(path, " holds no token"));
    }
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", error.what()));
  }
  assignment.set_token(token);
  if (assignment.attempt_id() != attempt_id) {
    return absl::DataLossError(absl::StrCat(path, " is of attempt ", assignment.attempt_id()));
  }
  return assignment;
}

std::vector<std::int64_t> WorkDir::ListAttempts() const {
  std::vector<std::int64_t> attempts;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(absl::StrCat(path_, "/attempts"), error)) {
    std::int64_t id = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &id)) attempts.push_back(id);
  }
  std::sort(attempts.begin(), attempts.end());
  return attempts;
}

absl::Status WorkDir::RemoveAttempt(std::int64_t attempt_id) const {
  return RemoveAll(AttemptDir(attempt_id));
}

absl::Status WorkDir::SaveUpload(std::int64_t attempt_id, const event::DoneLine& done) const {
  const Json record = {{"file", done.weights_file},
                       {"sha256", done.sha256},
                       {"bytes", done.bytes},
                       {"wall_seconds", done.wall_seconds}};
  return WriteFileAtomically(absl::StrCat(AttemptDir(attempt_id), "/upload.json"), record.dump());
}

std::optional<event::DoneLine> WorkDir::LoadUpload(std::int64_t attempt_id) const {
  const auto text =
      ReadFile(absl::StrCat(AttemptDir(attempt_id), "/upload.json"), limits::kRecordBytes);
  if (!text.ok()) return std::nullopt;
  const Json record = ParseJson<Json>(*text);
  try {
    return event::DoneLine{
        record.at("file").get<std::string>(), record.at("sha256").get<std::string>(),
        Integer<std::uint64_t>(record, "bytes"), record.at("wall_seconds").get<double>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

absl::StatusOr<std::string> WorkDir::Keep(const v1::Assignment& assignment,
                                          const std::string& file) const {
  PELAB_ASSIGN_OR_RETURN(const std::string job_dir, JobDir(assignment));
  const std::string directory = absl::StrCat(path_, "/kept/", JobDirName(assignment));
  PELAB_RETURN_IF_ERROR(CreateDirectories(directory));
  const std::string target = absl::StrCat(directory, "/", fs::path(file).filename().string());
  std::error_code error;
  fs::rename(absl::StrCat(job_dir, "/", file), target, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot move ", file, " to ", target));
  return target;
}

void WorkDir::RemoveOldJobs() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(absl::StrCat(path_, "/jobs"), error)) {
    std::error_code ignored;
    if (fs::file_time_type::clock::now() - fs::last_write_time(entry.path(), ignored) < kJobAge ||
        ignored)
      continue;
    spdlog::info("removing the directory of a job that nobody has touched for 7 days: {}",
                 entry.path().string());
    if (const absl::Status status = RemoveAll(entry.path().string()); !status.ok()) {
      spdlog::warn("{}", std::string(status.message()));
    }
  }
}

std::string JobName(const v1::Assignment& assignment) { return absl::StrCat(assignment.job_id()); }

// The canonical JSON is passed on as it came, because parsing and printing could change it.
std::string JobDocument(const v1::Assignment& assignment) {
  std::string document = "{\"analyses\":[";
  for (const v1::Analysis& analysis : assignment.analyses()) {
    absl::StrAppend(
        &document, document.back() == '[' ? "" : ",", "{\"name\":", Json(analysis.name()).dump(),
        ",\"parameters\":", analysis.parameters_json(), ",\"version\":", analysis.version(), "}");
  }
  absl::StrAppend(&document, "],\"job\":", Json(JobName(assignment)).dump(),
                  ",\"spec\":", assignment.spec_json(), "}");
  return document;
}

}  // namespace pelab::agent
