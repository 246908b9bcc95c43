#include "worker/scale/slurm_batch.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "core/base/temporary_folder.h"
#include "worker/agent/run_program.h"

namespace pelab::scale {
namespace {

constexpr absl::Duration kSlurmPatience = absl::Minutes(2);  // slurmctld can be busy
constexpr std::size_t kMostOutput = 16 << 20;
constexpr int kSignalBefore = 120;  // seconds before the time limit

constexpr char kNamePrefix[] = "pelab-";  // of the names of jobs

std::string CommentOf(const Queue& queue, const std::string& tag) {
  return absl::StrCat("pelab:", tag, ":", queue.name);
}

// A word for the shell.
std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// The output of a program of Slurm that has ended well.
absl::StatusOr<std::string> Run(const std::string& program, std::vector<std::string> arguments) {
  PELAB_ASSIGN_OR_RETURN(const std::string path, FindProgram(program));
  SpawnOptions options;
  options.argv = {path};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  PELAB_ASSIGN_OR_RETURN(
      const agent::ProgramOutput output,
      agent::RunProgram(std::move(options), program, {kSlurmPatience, kMostOutput}));
  // sbatch --test-only writes to standard error.
  return output.out.empty() ? output.err : output.out;
}

class Slurm final : public BatchSystem {
 public:
  Slurm(std::string tag, TemporaryFolder folder)
      : tag_(std::move(tag)), folder_(std::move(folder)) {}

  absl::StatusOr<std::map<std::string, std::vector<Sighting>>> Look(
      const std::vector<std::string>& queues) override {
    PELAB_ASSIGN_OR_RETURN(
        const std::string output,
        Run("squeue", {"--me", "-h", "-r", "-t", "all",
                       absl::StrCat("--name=", kNamePrefix,
                                    absl::StrJoin(queues, absl::StrCat(",", kNamePrefix))),
                       "-o", "%A|%T|%R|%k"}));
    return ParseSqueue(output, tag_);
  }

  absl::StatusOr<std::string> Submit(const Queue& queue, const TraceContext& span) override {
    PELAB_ASSIGN_OR_RETURN(const std::string output, Sbatch(queue, span, {}));
    // "4711", or "4711;cluster".
    const std::string id(absl::StripAsciiWhitespace(output.substr(0, output.find(';'))));
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(id, &number) || number <= 0) {
      return absl::InternalError(absl::StrCat("sbatch printed \"", id,
                                              "\" where a job's number was "
                                              "expected"));
    }
    return id;
  }

  absl::Status Cancel(const std::string& id) override { return Run("scancel", {id}).status(); }

  absl::StatusOr<std::string> Test(const Queue& queue) override {
    PELAB_ASSIGN_OR_RETURN(const std::string output, Sbatch(queue, NewTrace(), {"--test-only"}));
    return std::string(absl::StripAsciiWhitespace(output));
  }

 private:
  absl::StatusOr<std::string> Sbatch(const Queue& queue, const TraceContext& span,
                                     const std::vector<std::string>& more) {
    const std::string script = folder_ / (queue.name + ".sh");
    PELAB_RETURN_IF_ERROR(WriteFileAtomically(script, ScriptOf(queue, span), 0700));
    std::vector<std::string> arguments = SbatchArguments(queue, tag_);
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(script);
    return Run("sbatch", std::move(arguments));
  }

  const std::string tag_;
  const TemporaryFolder folder_;  // for scripts
};

}  // namespace

std::map<std::string, std::vector<Sighting>> ParseSqueue(const std::string& output,
                                                         const std::string& tag) {
  std::map<std::string, std::vector<Sighting>> found;
  const std::string prefix = absl::StrCat("pelab:", tag, ":");
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '|');
    // A reason may hold any letter but not the comment, which is the last part.
    if (parts.size() < 4 || !absl::StartsWith(parts.back(), prefix)) continue;
    found[parts.back().substr(prefix.size())].push_back({parts[0], parts[1], parts[2]});
  }
  return found;
}

std::string ScriptOf(const Queue& queue, const TraceContext& span) {
  std::vector<std::string> words;
  words.reserve(queue.worker.size());
  for (const std::string& word : queue.worker) words.push_back(Quoted(word));
  return absl::StrCat(
      "#!/bin/bash\n"
      "export ",
      kTraceparentVariable, "=", Traceparent(span), "\n",
      "exec srun --ntasks=1 --kill-on-bad-exit=1 ", Quoted(queue.program), " --name ",
      WorkerPrefix(queue), "\"$SLURM_JOB_ID\"", " --workdir ", Quoted(queue.workdir),
      "/\"$SLURM_JOB_ID\"", " --time-limit slurm --idle-exit ",
      absl::FormatDuration(queue.idle_exit),
      queue.pack > 1 ? absl::StrCat(" --pack ", queue.pack) : "", " ", absl::StrJoin(words, " "),
      "\n");
}

std::vector<std::string> SbatchArguments(const Queue& queue, const std::string& tag) {
  const auto minutes =
      static_cast<std::int64_t>(absl::Ceil(queue.time_limit, absl::Minutes(1)) / absl::Minutes(1));
  std::vector<std::string> arguments = {"--parsable",
                                        "--no-requeue",  // one party restarts: this one
                                        absl::StrCat("--job-name=", kNamePrefix, queue.name),
                                        absl::StrCat("--comment=", CommentOf(queue, tag)),
                                        absl::StrCat("--time=", minutes),
                                        absl::StrCat("--signal=TERM@", kSignalBefore)};
  arguments.insert(arguments.end(), queue.sbatch.begin(), queue.sbatch.end());
  return arguments;
}

absl::StatusOr<std::unique_ptr<BatchSystem>> MakeSlurm(const std::string& tag) {
  for (const char* program : {"sbatch", "squeue", "scancel"}) {
    PELAB_RETURN_IF_ERROR(FindProgram(program).status());
  }
  const char* temporary = std::getenv("TMPDIR");
  PELAB_ASSIGN_OR_RETURN(
      TemporaryFolder folder,
      TemporaryFolder::Make(absl::StrCat(temporary == nullptr ? "/tmp" : temporary, "/pelab-")));
  return std::make_unique<Slurm>(tag, std::move(folder));
}

}  // namespace pelab::scale
