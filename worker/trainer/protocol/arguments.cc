#include "worker/trainer/protocol/arguments.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "worker/trainer/limits.h"

namespace pelab::trainer {
namespace {

constexpr std::string_view kHelp =
    R"(pelab-trainer trains one job, or several that differ only in their seed. )"
    R"(It reports as JSON Lines.

usage:
  pelab-trainer run --spec JOB.json --workdir DIR [--spec JOB.json --workdir DIR …] [options]
  pelab-trainer analyze --spec JOB.json --weights FILE.safetensors --workdir DIR [options]
  pelab-trainer dataset --spec JOB.json [--files DIR] --out FILE.safetensors
  pelab-trainer check --spec JOB.json [--files DIR] [--threads N] [--parent-fd N]
  pelab-trainer capabilities
  pelab-trainer preload --control-fd N
  pelab-trainer --help | --version

run trains each job, evaluates it after every epoch, runs its analyses and keeps its weights:
  --spec FILE             a canonical spec, or {"job": ID, "spec": {...}, "analyses": [...]}; each
                          begins a job
  --workdir DIR           folder for that job's weights and checkpoints; created if it is missing
  --files DIR             folder of the files that specs name, each under its SHA-256: those of own
                          encodings and own data
  --packing auto|off|on|K several jobs as one batch (on), one after another (off), or whichever a
                          measurement at the start finds faster (auto, default); K: with the
                          results of a batch of K jobs
  --device DEVICE         cpu (default) or cuda:N
  --threads N             CPU threads (default 1)
  --resume                continue from the newest checkpoint of this job in --workdir, if any
  --max-start-epoch N     with --resume: only from a checkpoint whose next epoch is at most N
  --checkpoint-seconds S  least seconds between checkpoints (default 30)
  --checkpoint-epochs N   a checkpoint after every N epochs instead (default 0: by the seconds)
  --micro-batch N         compute each batch N examples at a time; 0: all at once; auto (default):
                          on a CPU as many as fit into half a gigabyte
  --cuda-graphs on|off    on a GPU launch each step as one graph (default: on); results are the same
  --kernels fused|plain   plain: LibTorch's operations in place of our kernels, slower, for
                          comparisons (default: fused)
  --parent-fd N           end at once when this pipe reaches end of file

analyze runs the job's analyses on the weights that `run` kept, without training:
  --spec FILE             {"job": ID, "spec": {...}, "analyses": [...]}, with at least one analysis
  --weights FILE          weights.safetensors of this very job
  --workdir DIR           folder for result files; created if it is missing
  --files, --device, --threads, --parent-fd as above

dataset writes the job's data: tokens (N, T), lengths (N), targets (N), split (N; 0 train, 1 test).
check tries the job's encoding on small random inputs and prints what holds, as JSON; exit status 1
if something does not.
capabilities prints what this build can run, as JSON.
preload loads LibTorch once and forks a trainer for each request on the socket N, for pelab-worker.

exit status: 0 done, 1 failed (see the error event), 2 wrong use, 75 stopped by SIGTERM or SIGINT.

example:
  pelab-trainer run --spec job.json --workdir work | jq -c 'select(.event == "epoch")'
)";

constexpr std::string_view kCommands = "run, analyze, dataset, check, capabilities, preload";

[[noreturn]] void ThrowBadValue(const std::string& option, const std::string& value,
                                const std::string& allowed) {
  throw UsageError(option + " \"" + value + "\" is not allowed; allowed: " + allowed);
}

// `also`: other allowed values, for the message.
std::int64_t ReadInt(const std::string& option, const std::string& value, std::int64_t least,
                     std::int64_t most, const std::string& also = "") {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least ||
      number > most) {
    ThrowBadValue(
        option, value,
        also + "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

double ReadSeconds(const std::string& option, const std::string& value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number) ||
      number < 0) {
    ThrowBadValue(option, value, "a number of seconds from 0");
  }
  return number;
}

std::string ReadDevice(const std::string& option, const std::string& value) {
  if (value == "cpu") return value;
  if (value.rfind("cuda:", 0) == 0 && value.size() > 5) {
    ReadInt(option, value.substr(5), 0, 127);
    return value;
  }
  ThrowBadValue(option, value, "cpu or cuda:N");
}

PackingChoice ReadPacking(const std::string& option, const std::string& value) {
  if (value == "auto") return {PackingWay::kAuto, 0};
  if (value == "off") return {PackingWay::kOff, 0};
  if (value == "on") return {PackingWay::kOn, 0};
  return {PackingWay::kOn, ReadInt(option, value, 1, limits::kMembers, "auto, off, on, or ")};
}

using Reader = std::function<void(const std::string& option, const std::string& value)>;

std::map<std::string, Reader> Readers(Arguments* arguments) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  auto text = [](std::string* target) {
    return [target](const std::string& option, const std::string& value) {
      if (value.empty()) ThrowBadValue(option, value, "a path");
      *target = value;
    };
  };
  // Sets an option of the last job. If the last job already has this option, it starts a new job.
  auto of_job = [=](auto JobFiles::*member, auto unset) {
    return [=]() {
      std::vector<JobFiles>& jobs = arguments->jobs;
      if (jobs.empty() || jobs.back().*member != unset) jobs.emplace_back();
      return &(jobs.back().*member);
    };
  };
  auto path = [=](std::string JobFiles::*member) {
    return [=](const std::string& option, const std::string& value) {
      text(of_job(member, std::string())())(option, value);
    };
  };
  if (arguments->command == Command::kPreload) {
    return {{"--control-fd",
             [=](const auto& o, const auto& v) {
               arguments->control_fd = static_cast<int>(ReadInt(o, v, 0, 1 << 20));
             }},
            // Only its length matters, as the room for the command lines of trainers.
            {"--room", text(&arguments->out)}};
  }
  if (arguments->command == Command::kDataset) {
    return {{"--spec", path(&JobFiles::spec)},
            {"--files", text(&arguments->files)},
            {"--out", text(&arguments->out)}};
  }
  std::map<std::string, Reader> readers = {
      {"--spec", path(&JobFiles::spec)},
      {"--workdir", path(&JobFiles::workdir)},
      {"--files", text(&arguments->files)},
      {"--device", [=](const auto& o, const auto& v) { arguments->device = ReadDevice(o, v); }},
      {"--threads",
       [=](const auto& o, const auto& v) {
         arguments->threads = static_cast<int>(ReadInt(o, v, 1, 1024));
       }},
      {"--parent-fd",
       [=](const auto& o, const auto& v) {
         arguments->parent_fd = static_cast<int>(ReadInt(o, v, 0, 1 << 20));
       }},
  };
  if (arguments->command == Command::kAnalyze) {
    readers["--weights"] = text(&arguments->weights);
    return readers;
  }
  if (arguments->command == Command::kCheck) {
    for (const char* option : {"--workdir", "--device"}) readers.erase(option);
    return readers;
  }
  if (arguments->command != Command::kRun) return {};
  readers["--max-start-epoch"] = [=](const auto& o, const auto& v) {
    *of_job(&JobFiles::max_start_epoch, std::int64_t{-1})() = ReadInt(o, v, 0, kMost);
  };
  readers["--packing"] = [=](const auto& o, const auto& v) {
    arguments->packing = ReadPacking(o, v);
  };
  readers["--checkpoint-seconds"] = [=](const auto& o, const auto& v) {
    arguments->checkpoint_seconds = ReadSeconds(o, v);
  };
  readers["--checkpoint-epochs"] = [=](const auto& o, const auto& v) {
    arguments->checkpoint_epochs = ReadInt(o, v, 0, kMost);
  };
  readers["--cuda-graphs"] = [=](const auto& o, const auto& v) {
    if (v != "on" && v != "off") ThrowBadValue(o, v, "on or off");
    arguments->cuda_graphs = v == "on";
  };
  readers["--kernels"] = [=](const auto& o, const auto& v) {
    if (v != "fused" && v != "plain") ThrowBadValue(o, v, "fused or plain");
    arguments->plain = v == "plain";
  };
  readers["--micro-batch"] = [=](const auto& o, const auto& v) {
    if (v == "auto") {
      arguments->micro_batch.reset();
    } else {
      arguments->micro_batch = ReadInt(o, v, 0, limits::kMicroBatch, "auto, or ");
    }
  };
  return readers;
}

Command ReadCommand(const std::string& word) {
  const std::map<std::string, Command> commands = {
      {"run", Command::kRun},         {"analyze", Command::kAnalyze},
      {"dataset", Command::kDataset}, {"preload", Command::kPreload},
      {"check", Command::kCheck},     {"capabilities", Command::kCapabilities},
      {"help", Command::kHelp},       {"--help", Command::kHelp},
      {"-h", Command::kHelp},         {"--version", Command::kVersion}};
  const auto found = commands.find(word);
  if (found == commands.end()) {
    throw UsageError("unknown command \"" + word + "\"; known: " + std::string(kCommands));
  }
  return found->second;
}

void RequireOwnWorkdirs(const std::vector<JobFiles>& jobs) {
  std::set<std::string> seen;
  if (jobs.size() > static_cast<std::size_t>(limits::kMembers)) {
    throw UsageError(std::to_string(jobs.size()) + " jobs; allowed: at most " +
                     std::to_string(limits::kMembers));
  }
  for (const JobFiles& job : jobs) {
    if (seen.insert(job.workdir).second) continue;
    throw UsageError("--workdir " + job.workdir + " is given to two jobs; each needs its own");
  }
}

void RequireOptions(const Arguments& arguments) {
  const auto require = [](const std::string& value, const char* option) {
    if (value.empty()) throw UsageError(std::string(option) + " is missing");
  };
  const bool run = arguments.command == Command::kRun;
  const bool analyze = arguments.command == Command::kAnalyze;
  const bool dataset = arguments.command == Command::kDataset;
  if (run || analyze || dataset || arguments.command == Command::kCheck) {
    if (arguments.jobs.empty()) throw UsageError("--spec FILE is missing");
    if (!run && arguments.jobs.size() > 1) {
      throw UsageError("--spec and --workdir are given twice; allowed: one job");
    }
  }
  for (const JobFiles& job : arguments.jobs) {
    require(job.spec, "--spec FILE");
    if (run || analyze) require(job.workdir, "--workdir DIR");
  }
  RequireOwnWorkdirs(arguments.jobs);
  if (analyze) require(arguments.weights, "--weights FILE");
  if (dataset) require(arguments.out, "--out FILE");
  if (arguments.command == Command::kPreload && arguments.control_fd < 0)
    throw UsageError("--control-fd N is missing");
}

}  // namespace

std::string_view HelpText() { return kHelp; }

Arguments ParseArguments(const std::vector<std::string>& words) {
  Arguments arguments;
  if (words.empty()) {
    throw UsageError("a command is missing; known: " + std::string(kCommands));
  }
  arguments.command = ReadCommand(words[0]);
  const auto readers = Readers(&arguments);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") {
      arguments.command = Command::kHelp;
      return arguments;
    }
    if (words[i] == "--resume" && arguments.command == Command::kRun) {
      arguments.resume = true;
      continue;
    }
    const auto equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    const auto reader = readers.find(option);
    if (reader == readers.end()) {
      throw UsageError("unknown option \"" + option + "\" of " + words[0]);
    }
    if (equals != std::string::npos) {
      reader->second(option, words[i].substr(equals + 1));
    } else if (i + 1 < words.size()) {
      reader->second(option, words[++i]);
    } else {
      throw UsageError(option + " needs a value");
    }
  }
  RequireOptions(arguments);
  return arguments;
}

}  // namespace pelab::trainer
