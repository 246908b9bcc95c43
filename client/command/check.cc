// check: what is in a file of an own encoding or of own data, and whether it can be used.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "client/command/check_data.h"
#include "client/command/commands.h"
#include "client/options/filter.h"
#include "client/terminal/put.h"
#include "client/terminal/style.h"
#include "client/terminal/table.h"
#include "core/base/duration.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/process.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/temporary_folder.h"
#include "core/experiment/declaration.h"
#include "core/experiment/sweep.h"
#include "core/own_files/own_file.h"
#include "core/render/text.h"
#include "core/rpc/status.h"
#include "core/rpc/sweep_document.h"
#include "core/rpc/token_variable.h"
#include "core/torchscript/archive.h"

namespace pelab::client {
namespace {

using experiment::OwnEncoding;
using experiment::OwnOption;
using render::Json;

struct CheckCommandOptions {
  std::string file;
  std::vector<std::string> options;  // NAME=VALUE of the encoding
  std::vector<std::string> set;      // FIELD=VALUE of the model
  std::string timeout = "5m";
  bool declaration_only = false;
};

constexpr int kExitFailed = 1;
constexpr std::size_t kMostOutput = 1 << 20;  // bytes that a trainer may print

std::string DefaultOf(const OwnOption& option) {
  const std::string name = "pe." + option.name;
  return Concat(catalog::ToText(option.default_value), " (", catalog::Allowed(option.ToField(name)),
                ")");
}

// The messages alone: nobody wrote the document that has the places.
absl::Status WithoutPlaces(const absl::Status& status) {
  const auto violations = rpc::GetViolations(status);
  if (!violations) return status;
  std::string text;
  for (const v1::Violation& violation : violations->violations()) {
    text += Concat(text.empty() ? "" : "; ", violation.message());
  }
  return absl::InvalidArgumentError(text);
}

using Overrides = google::protobuf::RepeatedPtrField<v1::Override>;

// A sweep of a small model with this encoding, as the sweeps of docs/sweeps/small have it.
absl::StatusOr<std::string> SmallSweep(const CheckCommandOptions& options) {
  std::string pe = "{name: own, file: x";
  for (const std::string& option : options.options) {
    const std::size_t equals = option.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(
          Concat("--option ", option, ": write NAME=VALUE, such as --option alpha=0.5"));
    }
    pe += Concat(", ", option.substr(0, equals), ": ", option.substr(equals + 1));
  }
  return Concat("name: check\npe: ", pe,
                "}\ntask: {name: distance, length: 32, vocabulary: 100, train_examples: 1000, "
                "test_examples: 1000}\nmodel: {d_model: 64, heads: 4, layers: 2, d_ff: 128, "
                "max_len: 32, dropout: 0}\n");
}

absl::StatusOr<experiment::Cell> OnlyCell(const std::string& document, const OwnEncoding& encoding,
                                          const Overrides& set) {
  Overrides overrides = set;
  v1::Override& file = *overrides.Add();
  file.set_field(Concat(experiment::kFileOverride, "x"));
  file.set_value(experiment::ToJson(encoding));
  const auto sweep = rpc::ParseSweepDocument(document, overrides);
  if (!sweep.ok()) return WithoutPlaces(sweep.status());
  if (auto cell = sweep->At(0)) return *std::move(cell);
  return absl::InvalidArgumentError("--set and --option must leave one job");
}

// The value that meets the need: the first that it lists, or the end of its range that is nearer.
std::string Meeting(const experiment::OwnNeed& need, const catalog::Value& value) {
  if (!need.allowed.empty()) return catalog::ToText(need.allowed.front());
  const auto* whole = std::get_if<std::int64_t>(&value);
  const double number = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  return catalog::NumberToText(number < need.min ? need.min : need.max);
}

// The small model's job. Fields that --set leaves open get values that the encoding needs.
absl::StatusOr<experiment::Cell> SmallJob(const CheckCommandOptions& options,
                                          const OwnEncoding& encoding) {
  PELAB_ASSIGN_OR_RETURN(const std::string document, SmallSweep(options));
  Overrides overrides;
  std::set<std::string> set;
  for (const std::string& flag : options.set) {
    PELAB_ASSIGN_OR_RETURN(*overrides.Add(), ParseOverride(flag));
    set.insert(overrides.rbegin()->field());
  }
  OwnEncoding without_needs = encoding;
  without_needs.needs.clear();
  PELAB_ASSIGN_OR_RETURN(const experiment::Cell usual,
                         OnlyCell(document, without_needs, overrides));
  for (const auto* need : experiment::UnmetNeeds(encoding.needs, usual.job.values)) {
    if (set.count(need->field) > 0) continue;
    v1::Override& override = *overrides.Add();
    override.set_field(need->field);
    override.set_value(Meeting(*need, usual.job.values.find(need->field)->second));
  }
  return OnlyCell(document, encoding, overrides);
}

struct Said {
  std::optional<ExitStatus> status;  // nullopt: the time was over
  std::string out;
};

// Reads what the trainer prints, to its end or until the time is over.
absl::Status ReadAnswer(int fd, absl::Time end, Said* said) {
  std::array<char, 1 << 16> piece;
  for (;;) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const absl::Duration left = std::max(end - absl::Now(), absl::ZeroDuration());
    const int ready = poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return absl::DeadlineExceededError("");
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (ready < 0 || got < 0) return ErrnoStatus(errno, "cannot read the trainer's answer");
    if (got == 0) return absl::OkStatus();
    said->out.append(piece.data(), static_cast<std::size_t>(got));
    if (said->out.size() > kMostOutput) {
      return absl::InternalError("the trainer printed more than a megabyte");
    }
  }
}

// Runs the program to its end, or until the time is over. Its messages go to standard error.
absl::StatusOr<Said> RunTrainer(std::vector<std::string> argv, absl::Duration timeout) {
  PELAB_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  PELAB_ASSIGN_OR_RETURN(Pipe alive, MakePipe());  // the trainer ends when this program does
  constexpr int kParentFd = 3;
  argv.insert(argv.end(), {"--parent-fd", Concat(kParentFd)});
  SpawnOptions spawn;
  spawn.argv = std::move(argv);
  spawn.unset_env = {rpc::kTokenVariable};
  spawn.fds = {{out.write.get(), 1}, {alive.read.get(), kParentFd}};
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(spawn));
  out.write.Reset();
  Said said;
  const absl::Status read = ReadAnswer(out.read.get(), absl::Now() + timeout, &said);
  if (absl::IsDeadlineExceeded(read)) return said;  // which kills the trainer
  PELAB_RETURN_IF_ERROR(read);
  said.status = process.Wait();
  return said;
}

// Tries the encoding in a trainer. Returns its answer: {"parameters", "checks"}.
absl::StatusOr<Json> Tried(const CheckCommandOptions& options, const OwnEncoding& encoding) {
  PELAB_ASSIGN_OR_RETURN(const experiment::Cell cell, SmallJob(options, encoding));
  PELAB_ASSIGN_OR_RETURN(const std::string trainer, FindProgram("pelab-trainer"));
  PELAB_ASSIGN_OR_RETURN(
      const TemporaryFolder scratch,
      TemporaryFolder::Make((std::filesystem::temp_directory_path() / "pelab-check-").string()));
  PELAB_ASSIGN_OR_RETURN(const std::string bytes,
                         ReadFile(options.file, experiment::kMaxEncodingBytes));
  PELAB_RETURN_IF_ERROR(WriteNewFile(scratch / encoding.sha256, bytes));
  PELAB_RETURN_IF_ERROR(WriteNewFile(scratch / "job.json", cell.canonical_json));
  PELAB_ASSIGN_OR_RETURN(const absl::Duration timeout, ParseDuration(options.timeout, "--timeout"));
  PELAB_ASSIGN_OR_RETURN(
      const Said said,
      RunTrainer({trainer, "check", "--spec", scratch / "job.json", "--files", scratch.path()},
                 timeout));
  if (!said.status) {
    return absl::FailedPreconditionError(
        Concat("the trainer was not done after ", absl::FormatDuration(timeout),
               " and was ended; a method may run without end (--timeout gives it longer)"));
  }
  const Json found = ParseJson<Json>(said.out);
  if (found.is_object() && found.contains("checks")) return found;
  return absl::FailedPreconditionError(Concat("the trainer gave no answer and ",
                                              said.status->ToString(),
                                              "; a method may have ended its process"));
}

std::string DeclaredText(const OwnEncoding& encoding) {
  std::string text = Concat("encoding ", encoding.name,
                            encoding.help.empty() ? "" : ": " + render::Escape(encoding.help),
                            "\nmethods  ", Join(encoding.methods, ", "), "\n");
  for (const OwnOption& option : encoding.options) {
    text += Concat("option   ", option.name, ": ", DefaultOf(option),
                   option.help.empty() ? "" : ", " + render::Escape(option.help), "\n");
  }
  if (encoding.causal_only) text += "needs    model.mask: causal\n";
  for (const experiment::OwnNeed& need : encoding.needs) {
    text += Concat("needs    ", need.field, ": ", render::Escape(need.ToText()), "\n");
  }
  if (encoding.extrapolates) {
    text += Concat("lengths  extrapolates: ", *encoding.extrapolates ? "true" : "false", "\n");
  }
  return text + Concat("SHA-256  ", encoding.sha256, "\n");
}

// An encoding that never runs behind a causal mask may look at later tokens.
void ExcuseFromCausality(const OwnEncoding& encoding, Json* checks) {
  const catalog::Values causal = {{"model.mask", std::string("causal")}};
  if (experiment::UnmetNeeds(encoding.needs, causal).empty()) return;
  for (Json& row : *checks) {
    if (row.value("name", "") == "causality" && row.value("status", "") == "failed") {
      row["status"] = "note";
    }
  }
}

std::string ChecksText(const Json& checks) {
  render::Table table(
      {{"check"}, {"result"}, {"what was found", render::Column::Align::kLeft, true}},
      render::Table::kAllLines);
  for (const Json& row : checks) {
    const std::string status = row.value("status", "");
    table.AddRow({row.value("name", ""), status == "note" ? "" : status, row.value("text", "")},
                 status == "failed" ? "31" : "");
  }
  return table.Render(render::StyleOfStdout());
}

absl::StatusOr<int> Run(const Context& context, const CheckCommandOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckRegularFile(options.file, "a file of an encoding or of data"));
  if (own_files::LooksLikeData(options.file)) {
    if (options.options.empty() && options.set.empty() && !options.declaration_only) {
      auto code = CheckData(context, options.file);
      const bool named_so =
          options.file.ends_with(".safetensors") || options.file.ends_with(".npz");
      if (code.ok() || named_so) return code;
      return absl::InvalidArgumentError(
          Concat(options.file,
                 ": this is neither a TorchScript file of an encoding (pelab.save_encoding writes "
                 "one) nor a safetensors file of data (pelab.save_task)"));
    }
    return absl::InvalidArgumentError(
        Concat(options.file,
               " is a file of data; --option, --set and --declaration are for an "
               "encoding"));
  }
  PELAB_ASSIGN_OR_RETURN(const OwnEncoding encoding, torchscript::ReadEncodingFile(options.file));
  Json json = ParseJson<Json>(experiment::ToJson(encoding));
  std::string text = DeclaredText(encoding);
  bool failed = false;
  if (!options.declaration_only) {
    PELAB_ASSIGN_OR_RETURN(Json found, Tried(options, encoding));
    ExcuseFromCausality(encoding, &found["checks"]);
    json["parameters"] = found.value("parameters", 0);
    json["checks"] = found["checks"];
    for (const Json& row : found["checks"]) failed |= row.value("status", "") == "failed";
    const int parameters = found.value("parameters", 0);
    text += Concat("trained  ", parameters, parameters == 1 ? " parameter" : " parameters",
                   " of its own\n\n", ChecksText(found["checks"]));
  }
  PutRow(context, json, text, {"name", "sha256"});
  return failed ? kExitFailed : kExitOk;
}

}  // namespace

void AddCheck(Commands& commands) {
  auto options = std::make_shared<CheckCommandOptions>();
  CLI::App* app = AddCommand(
      commands, "check", "try the file of an own encoding, or look at one of own data",
      "  pelab check decay.pt\n"
      "  pelab check decay.pt --option strength=4 --set model.heads=8\n"
      "  pelab check induction.safetensors\n"
      "An encoding: runs the methods of the file in a trainer on this machine: shapes, finite "
      "numbers, causality, gradients against finite differences, the same numbers again and after "
      "an interruption, and the time of a step beside rope's. Data: its splits, labels and "
      "lengths, how far guessing gets, and what the splits share. Exit status 1: a check has "
      "failed. docs/own-encodings.md and docs/own-data.md say how to write such files.");
  app->add_option("FILE", options->file,
                  "the file, as pelab.save_encoding or pelab.save_task writes it, or numpy.savez")
      ->required();
  app->add_option("--option", options->options, "an option of the encoding [default: its default]")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  app->add_option("--set", options->set,
                  "a field of the small model: model.heads=8 [default: 2 layers of 4 heads]")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->take_all();
  app->add_option("--timeout", options->timeout, "how long the trainer may take [default: 5m]")
      ->type_name("TIME");
  app->add_flag("--declaration", options->declaration_only,
                "show what the file declares and run nothing");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
