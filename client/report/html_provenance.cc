// The provenance of a report: documents, keys, versions, devices, and the commands that repeat it.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/claims/sheet_sweep.h"
#include "client/options/repeat_command.h"
#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/catalog/protocol_values.h"
#include "core/results/rows.h"

namespace pelab::client::report {
namespace {

using render::Json;

// The sizes of a sheet's rounds depend on its slots.
std::string SlotsOf(const ReportInput& input, const v1::Sweep& sweep) {
  for (const ReportSheet& sheet : input.sheets) {
    const auto& registered = sheet.judged.registered;
    if (registered && registered->sweep_id() == sweep.sweep_id()) {
      return Concat(" --slots ", registered->slots());
    }
  }
  return "";
}

Json Commands(const ReportInput& input, const ReportOptions& options) {
  Json commands = Json::array();
  for (const v1::Sweep& sweep : input.sweeps) {
    if (IsOfSheet(sweep)) {  // rounds add its seeds
      commands.push_back(Concat(RunCommand(sweep), SlotsOf(input, sweep)));
      continue;
    }
    commands.push_back(RunCommand(sweep));
    for (const std::string& seeds : sweep.extensions()) {
      commands.push_back(
          Concat("pelab extend ", ShellWord(sweep.name()), " --seed ", ShellWord(seeds)));
    }
    if (sweep.extensions_size() > 0) commands.push_back(RunCommand(sweep));  // trains the seeds
  }
  commands.push_back(options.command);
  return commands;
}

// The environments that trainers reported in the last attempt of each job, with the number of jobs.
Json Environments(const ReportInput& input) {
  std::map<std::int64_t, const v1::AttemptRow*> last;
  for (const v1::AttemptRow& attempt : input.attempts) {
    if (!attempt.has_environment_json()) continue;
    const v1::AttemptRow*& known = last[attempt.job_id()];
    if (known == nullptr || known->number() < attempt.number()) known = &attempt;
  }
  std::map<std::string, std::pair<Json, int>> kinds;
  for (const auto& [job, attempt] : last) {
    const Json said = ParseJson<Json>(attempt->environment_json());
    if (!said.is_object()) continue;
    Json kind = Json::object();
    for (const char* name :
         {"device", "device_name", "threads", "micro_batch", "libtorch", "trainer"}) {
      kind[name] = said.contains(name) ? said[name] : Json(nullptr);
    }
    const std::string text = kind.dump(-1, ' ', false, Json::error_handler_t::replace);
    auto& [json, jobs] = kinds.emplace(text, std::pair(std::move(kind), 0)).first->second;
    ++jobs;
  }
  Json rows = Json::array();
  for (auto& [text, kind] : kinds) {
    Json row = kind.first;
    row["jobs"] = kind.second;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json Keys(const ReportInput& input) {
  Json rows = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    for (const v1::JobRow& job : input.cells.cells[c].jobs) {
      const Json row = results::ToJson(job, "");
      rows.push_back({{"cell", c},
                      {"job_id", job.job_id()},
                      {"seed", job.seed()},
                      {"key", job.key()},
                      {"generation", job.generation()},
                      {"state", row["state"]},
                      {"device", row["device"]},
                      {"attempts", job.attempts()},
                      {"test_correct", row["test_correct"]},
                      {"test_total", row["test_total"]}});
    }
  }
  return rows;
}

// The canonical spec of each group's first job; its other jobs differ only in the seed.
Json Specs(const ReportInput& input) {
  Json specs = Json::array();
  for (const results::Cell& cell : input.cells.cells)
    specs.push_back(input.jobs.SpecOf(cell.jobs.front()));
  return specs;
}

// Notes that a reader needs when comparing these groups.
Json Notes(const ReportInput& input) {
  std::vector<catalog::ComparedJob> compared;
  for (const results::Cell& cell : input.cells.cells) {
    const v1::JobRow& job = cell.jobs.front();
    const Json spec = ParseJson<Json>(input.jobs.SpecOf(job));
    if (!spec.is_object() || !spec.contains("train")) continue;
    compared.push_back({job.protocol(), job.pe(), spec["train"].value("beta1", 0.0),
                        spec["train"].value("beta2", 0.0)});
  }
  const std::string note = catalog::NoteOnComparison(compared);
  return note.empty() ? Json::array() : Json::array({note});
}

}  // namespace

Json Provenance(const ReportInput& input, const ReportOptions& options) {
  return {{"commands", Commands(input, options)},
          {"environments", Environments(input)},
          {"jobs", Keys(input)},
          {"specs", Specs(input)},
          {"notes", Notes(input)}};
}

}  // namespace pelab::client::report
