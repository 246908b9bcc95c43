#include "worker/agent/strays.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/orphans.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(10);

struct Entry {
  pid_t parent = 0;
  char state = '?';
};

// Reads /proc/PID/stat: "PID (name, with any characters) STATE PARENT …".
bool ReadStat(pid_t pid, Entry* entry) {
  const auto text = ReadFile(absl::StrCat("/proc/", pid, "/stat"), 64 << 10);
  if (!text.ok()) return false;
  const std::size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos) return false;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*text).substr(name_end + 2), ' ');
  if (fields.size() < 2 || fields[0].size() != 1) return false;
  entry->state = fields[0][0];
  return absl::SimpleAtoi(fields[1], &entry->parent);
}

std::map<pid_t, Entry> AllProcesses() {
  std::map<pid_t, Entry> all;
  std::error_code error;
  std::filesystem::directory_iterator file("/proc", error);
  for (const std::filesystem::directory_iterator end; !error && file != end;
       file.increment(error)) {
    pid_t pid = 0;
    Entry entry;
    if (absl::SimpleAtoi(file->path().filename().string(), &pid) && ReadStat(pid, &entry)) {
      all.emplace(pid, entry);
    }
  }
  return all;
}

std::map<pid_t, Entry> Descendants() {
  const std::map<pid_t, Entry> all = AllProcesses();
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, entry] : all) children.emplace(entry.parent, pid);
  std::map<pid_t, Entry> found;
  std::vector<pid_t> open = {getpid()};
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      if (found.emplace(child->second, all.at(child->second)).second) open.push_back(child->second);
    }
  }
  return found;
}

// Marked are processes that have a variable in their environment that is `text`, or begins with it.
struct Mark {
  std::string text;
  bool whole = true;
};

bool IsMarked(pid_t pid, const Mark& mark) {
  const auto text = ReadFile(absl::StrCat("/proc/", pid, "/environ"), limits::kEnvironmentBytes);
  if (!text.ok()) return false;
  for (const absl::string_view entry : absl::StrSplit(*text, '\0')) {
    if (mark.whole ? entry == mark.text : absl::StartsWith(entry, mark.text)) return true;
  }
  return false;
}

// False if the process is not marked or has ended.
bool KillIfMarked(pid_t pid, const Mark& mark) {
  // Open the descriptor first: from then on the PID cannot come to mean another process.
  const UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd || !IsMarked(pid, mark)) return false;
  return syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) == 0;
}

// Kills the marked ones among the processes that `list` returns, until none is left.
std::size_t KillMarked(std::map<pid_t, Entry> (*list)(), const Mark& mark,
                       absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  std::set<pid_t> killed;
  while (true) {
    bool any = false;
    for (const auto& [pid, entry] : list()) {
      if (entry.state == 'Z') {
        if (entry.parent == getpid()) ReapOrphan(pid);
      } else if (KillIfMarked(pid, mark)) {
        killed.insert(pid);
      }
      any = any || killed.count(pid) > 0;  // a process that is ending has no environment any more
    }
    if (!any) return killed.size();
    if (absl::Now() >= until) {
      spdlog::warn("processes that a trainer has left behind do not end on SIGKILL");
      return killed.size();
    }
    absl::SleepFor(kPause);
  }
}

// All others that have not ended: whether their parents reap them is not this daemon's business.
std::map<pid_t, Entry> Others() {
  std::map<pid_t, Entry> all = AllProcesses();
  all.erase(getpid());
  std::erase_if(all, [](const auto& process) { return process.second.state == 'Z'; });
  return all;
}

}  // namespace

absl::Status AdoptOrphans() {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "cannot become the parent of orphans (PR_SET_CHILD_SUBREAPER)");
}

std::string MakeTrainerId(const std::string& worker_id) {
  return absl::StrCat(worker_id, ":", RandomUuid());
}

std::size_t KillStrays(const std::string& trainer_id, absl::Duration patience) {
  return KillMarked(Descendants, {absl::StrCat(kTrainerIdVariable, "=", trainer_id)}, patience);
}

std::size_t KillStraysOfWorker(const std::string& worker_id, absl::Duration patience) {
  const Mark mark{absl::StrCat(kTrainerIdVariable, "=", worker_id, ":"), /*whole=*/false};
  return KillMarked(Others, mark, patience);
}

}  // namespace pelab::agent
