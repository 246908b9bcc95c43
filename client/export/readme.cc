#include "client/export/readme.h"

#include <algorithm>
#include <filesystem>

#include "client/claims/sheet_sweep.h"
#include "client/options/repeat_command.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"

namespace pelab::client {
namespace {

using render::Json;

// Database text as inline code: it cannot add markup or a line break.
std::string Code(const std::string& text) {
  std::string safe = render::Escape(text);
  std::replace(safe.begin(), safe.end(), '`', '\'');
  std::replace(safe.begin(), safe.end(), '|', '/');
  return Concat("`", safe.empty() ? std::string(" ") : safe, "`");
}

std::string DescribeFile(const std::string& name) {
  if (name == "sweep.yaml") return "the sweep's document as it was submitted (YAML, or JSON)";
  if (name == "specs.jsonl") {
    return "a line a job: its number, its key and its spec, every setting resolved";
  }
  if (name == "provenance.json") return "versions, devices, times and commands, for programs";
  if (name == "SHA256SUMS") return "`sha256sum --check SHA256SUMS` finds damage";
  return "";
}

std::string FileList(const std::vector<ExportTable>& tables,
                     const std::vector<WrittenFile>& files) {
  std::string out = "| file | holds | rows |\n|---|---|---|\n";
  for (const WrittenFile& file : files) {
    const auto table = std::find_if(tables.begin(), tables.end(),
                                    [&](const ExportTable& t) { return t.file == file.name; });
    const bool is_table = table != tables.end();
    out += Concat("| `", file.name, "` | ", is_table ? table->row : DescribeFile(file.name), " | ",
                  is_table ? Concat(file.rows) : std::string(), " |\n");
  }
  return out + Concat("| `SHA256SUMS` | ", DescribeFile("SHA256SUMS"), " | |\n");
}

// Lists the paths that sweep.yaml has in place of those that were submitted.
std::string OwnFilesText(const ExportFacts& facts) {
  std::string list;
  for (const ExportedFile& file : facts.own_files) {
    const bool same = std::filesystem::path(file.path).lexically_normal() == file.name;
    if (!same) list += Concat("- ", Code(file.path), " is ", Code(file.name), "\n");
  }
  return list.empty() ? ""
                      : Concat(
                            "Paths that led out of this folder, or to a file of the list, are "
                            "others in `sweep.yaml`:\n\n",
                            list, "\n");
}

std::string States(const ExportFacts& facts) {
  std::string out;
  for (const auto& [state, count] : facts.states) {
    out += Concat(out.empty() ? "" : ", ", count, " ", state);
  }
  return out.empty() ? "none" : out;
}

std::string MissingSection(const ExportFacts& facts) {
  std::string out = "## What is missing\n\n";
  if (facts.trained == facts.jobs() && facts.jobs() > 0) {
    return out + Concat("Nothing: all ", facts.jobs(), " jobs ",
                        facts.where.empty() ? "of the sweep" : "that meet the condition",
                        " are trained.\n\n");
  }
  out += Concat(
      "**", facts.jobs() - facts.trained, " of ", facts.jobs(), " jobs are not trained** (",
      States(facts),
      "). Their rows in `jobs.csv` and `curves.csv` hold what there is of them; "
      "`summary.csv` counts them as\nmissing, failed or cancelled and leaves them out of its "
      "means.\n\n");
  for (const std::string& line : facts.unfinished) out += Concat("- ", Code(line), "\n");
  const std::uint64_t more = facts.jobs() - facts.trained - facts.unfinished.size();
  if (more > 0) out += Concat("- and ", more, " more: `state` in `jobs.csv`\n");
  if (facts.sweep.state() == v1::SWEEP_STATE_EXPANDING) {
    out += "- the sweep was still being expanded: more jobs were to come\n";
  }
  return out + "\n";
}

std::string ComputedSection(const ExportFacts& facts) {
  std::string out = "## How it was computed\n\n";
  const v1::Sweep& sweep = facts.sweep;
  out += Concat("- sweep ", Code(sweep.name()), " (number ", sweep.sweep_id(), "), protocol ",
                Code(sweep.protocol()), ", submitted ", render::FormatTime(sweep.created_at_ms()),
                sweep.file_name().empty() ? "" : Concat(" from ", Code(sweep.file_name())), "\n");
  if (facts.first_started_at_ms > 0) {
    out += Concat("- first attempt ", render::FormatTime(facts.first_started_at_ms));
    if (facts.last_ended_at_ms > 0) {
      out += Concat(", last end ", render::FormatTime(facts.last_ended_at_ms));
    }
    out += "\n";
  }
  for (const auto& [member, values] : facts.environment) {
    out += Concat("- ", member, ":");
    for (const auto& [value, count] : values) {
      out += Concat(" ", Code(value), " (", count, " attempts)");
    }
    out += "\n";
  }
  out += Concat("- exported ", render::FormatTime(facts.exported_at_ms), " by pelab ",
                facts.version, "\n\nTo compute everything again:\n\n```\n");
  for (const std::string& command : CommandsToRepeat(sweep)) {
    out += render::Escape(command) + "\n";
  }
  return out +
         "```\n\nOn one kind of device with one number of threads a job repeats bit for bit; "
         "elsewhere the last digits differ, and with\nthem, now and then, more than digits.\n\n";
}

std::string ColumnSections(const std::vector<ExportTable>& tables) {
  std::string out =
      "## Columns\n\nCSV as RFC 4180 has it: one header line, commas, CRLF, quotation marks where "
      "needed, UTF-8. Numbers read back bit for\nbit; an empty field is a figure that is not "
      "there. Accuracies are fractions from 0 to 1 with the counts behind them;\nepochs, layers "
      "and heads count from 0.\n\n";
  for (const ExportTable& table : tables) {
    out +=
        Concat("### ", table.file, "\n\nA row is ", table.row, ".\n\n| column | is |\n|---|---|\n");
    for (const ExportColumn& column : table.columns) {
      out += Concat("| `", column.name, "` | ", column.meaning, " |\n");
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::uint64_t ExportFacts::jobs() const {
  std::uint64_t sum = 0;
  for (const auto& [state, count] : states) sum += count;
  return sum;
}

const std::vector<std::string>& EnvironmentMembers() {
  static const auto& members = *new std::vector<std::string>{"trainer",     "libtorch", "device",
                                                             "device_name", "threads",  "packing"};
  return members;
}

std::vector<std::string> CommandsToRepeat(const v1::Sweep& sweep) {
  if (IsOfSheet(sweep)) {
    return {Concat("pelab settle ", ShellWord(sweep.file_name()),
                   " --db repeated.db    # the claim sheet whose rounds gave the sweep its seeds"),
            Concat("pelab results ", ShellWord(sweep.name()), " --db repeated.db")};
  }
  v1::Sweep exported = sweep;
  exported.set_file_name("sweep.yaml");  // beside this page
  const std::string run = RunCommand(exported) + " --db repeated.db";
  std::vector<std::string> commands = {run};
  for (const std::string& seeds : sweep.extensions()) {
    commands.push_back(Concat("pelab extend ", ShellWord(sweep.name()), " --seed ",
                              ShellWord(seeds), " --db repeated.db"));
  }
  if (sweep.extensions_size() > 0) commands.push_back(run);  // trains what was added
  commands.push_back(Concat("pelab results ", ShellWord(sweep.name()), " --db repeated.db"));
  return commands;
}

render::Json ProvenanceOf(const ExportFacts& facts) {
  const v1::Sweep& sweep = facts.sweep;
  Json overrides = Json::array();
  for (const v1::Override& override : sweep.overrides()) {
    overrides.push_back({{"field", override.field()}, {"value", override.value()}});
  }
  Json own_files = Json::array();
  for (const ExportedFile& file : facts.own_files) {
    own_files.push_back({{"path", file.path}, {"file", file.name}, {"sha256", file.sha256}});
  }
  Json environment = Json::object();
  for (const auto& [member, values] : facts.environment) environment[member] = values;
  return {{"pelab", facts.version},
          {"exported_at_ms", facts.exported_at_ms},
          {"sweep",
           {{"sweep_id", sweep.sweep_id()},
            {"name", sweep.name()},
            {"protocol", sweep.protocol()},
            {"state", results::StateName(sweep.state())},
            {"file_name", sweep.file_name()},
            {"submitted_at_ms", sweep.created_at_ms()},
            {"overrides", overrides},
            {"extensions",
             std::vector<std::string>(sweep.extensions().begin(), sweep.extensions().end())}}},
          {"own_files", std::move(own_files)},
          {"where", facts.where.empty() ? Json(nullptr) : Json(facts.where)},
          {"jobs", facts.states},
          {"trained", facts.trained},
          {"first_started_at_ms",
           facts.first_started_at_ms > 0 ? Json(facts.first_started_at_ms) : Json(nullptr)},
          {"last_ended_at_ms",
           facts.last_ended_at_ms > 0 ? Json(facts.last_ended_at_ms) : Json(nullptr)},
          {"environment", environment},
          {"commands", CommandsToRepeat(sweep)}};
}

std::string ReadmeOf(const ExportFacts& facts, const std::vector<ExportTable>& tables,
                     const std::vector<WrittenFile>& files) {
  return Concat(
      "# Results of the sweep ", Code(facts.sweep.name()),
      "\n\nSmall decoder transformers were trained with different positional encodings on "
      "synthetic tasks, each with several seeds,\nand of each trained model attention heads were "
      "taken away one by one to see what they are worth. These files hold\nevery number that was "
      "stored",
      facts.where.empty()
          ? std::string()
          : Concat(" of those jobs of the sweep that meet the condition\n", Code(facts.where)),
      ". They were written by pelab.\n\n", FileList(tables, files), "\n", OwnFilesText(facts),
      MissingSection(facts),
      "## How cells are put together\n\nA cell is all jobs that differ in nothing but their seed "
      "(`seed`, and seeds of parts that follow it). `summary.csv` has\nthe mean over the trained "
      "jobs of a cell with its 95 % interval: mean ± `half_width`, by Student's t with n - 1 "
      "degrees\nof freedom. A cell with `complete` false lacks seeds; compare it with care. Jobs "
      "of one cell are independent\nrepetitions, rows of `curves.csv` or `head_ablations.csv` are "
      "not.\n\n",
      ComputedSection(facts), ColumnSections(tables));
}

}  // namespace pelab::client
