#include "client/command/dry_run.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include "client/command/notes.h"
#include "client/limits.h"
#include "client/options/filter.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/table.h"
#include "client/terminal/varying_columns.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/job_counts.h"
#include "core/db/read/reader.h"
#include "core/experiment/sweep_notes.h"
#include "core/results/cell_jobs.h"
#include "core/results/rows.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {
namespace {

std::vector<experiment::Cell> Expand(const experiment::Sweep& sweep) {
  std::vector<experiment::Cell> cells;
  for (std::uint64_t i = 0; i < sweep.cells(); ++i) {
    if (auto cell = sweep.At(i)) cells.push_back(*std::move(cell));
  }
  return cells;
}

struct Counted {
  v1::JobCounts counts;
  std::string asked;  // the source that said what is stored
};

absl::StatusOr<Counted> AskFile(const std::string& path, const std::vector<experiment::Cell>& cells,
                                const std::vector<v1::Analysis>& analyses) {
  PELAB_ASSIGN_OR_RETURN(auto reader, db::Reader::Open(path));
  Counted answer;
  answer.asked = path;
  for (std::size_t first = 0; first < cells.size(); first += limits::kKeysLookedUp) {
    std::vector<std::string> keys;
    for (std::size_t i = first; i < std::min(cells.size(), first + limits::kKeysLookedUp); ++i)
      keys.push_back(cells[i].key);
    PELAB_ASSIGN_OR_RETURN(const auto found, reader->FindKeys(keys, analyses));
    for (const std::string& key : keys) {
      const auto job = found.find(key);
      db::CountJob(job == found.end() ? db::StoredJob{} : job->second, /*fresh=*/false,
                   answer.counts);
    }
  }
  return answer;
}

absl::StatusOr<Counted> Ask(const Context& context, const Document& document, bool fresh,
                            const std::vector<experiment::Cell>& cells) {
  Counted answer;
  answer.counts.set_new_jobs(cells.size());
  answer.asked = "nobody: no database exists yet";
  auto coordinator = FindCoordinator(context.options);
  std::error_code ignored;
  if (coordinator.ok()) {
    v1::PreviewRequest request;
    request.set_document(document.text);
    request.set_file_name(document.file_name);
    *request.mutable_overrides() = document.overrides;
    request.set_fresh(fresh);
    PELAB_ASSIGN_OR_RETURN(const auto preview, (*coordinator)->Preview(request));
    answer.counts = preview.counts();
    answer.asked = (*coordinator)->Description();
  } else if (!context.options.server.empty()) {
    return coordinator.status();
  } else if (fresh) {
    answer.asked = "nobody: --fresh makes every job new";
  } else if (std::filesystem::exists(context.options.database, ignored)) {
    PELAB_ASSIGN_OR_RETURN(
        answer, AskFile(context.options.database, cells, rpc::AnalysesOf(document.sweep)));
  }
  answer.counts.set_total(cells.size());
  return answer;
}

std::string CellsTable(const std::vector<experiment::Cell>& cells, const render::Style& style) {
  using Align = render::Column::Align;
  const results::JobList jobs = results::JobsOf(cells);
  const VaryingColumns varying(jobs, /*shown=*/"protocol");
  std::vector<render::Column> columns = {
      render::LabelColumn("pe"), render::LabelColumn("task"), {"protocol"}};
  varying.AddTo(columns);
  columns.insert(columns.end(), {{"seed", Align::kRight}, {"epochs", Align::kRight}, {"key"}});
  render::Table table(columns);
  for (std::size_t i = 0; i < std::min(cells.size(), limits::kDryRunRows); ++i) {
    const experiment::Cell& cell = cells[i];
    std::vector<std::string> row = {cell.pe_label, cell.task_label, cell.protocol_label};
    varying.AddCells(i, row);
    row.insert(row.end(), {Concat(cell.job.seed), Concat(cell.job.Int("train.epochs")),
                           cell.key.substr(0, 12)});
    table.AddRow(std::move(row));
  }
  std::string out = table.Render(style);
  if (cells.size() > limits::kDryRunRows)
    out += Concat("and ", cells.size() - limits::kDryRunRows, " more\n");
  return out;
}

render::Json CellsJson(const std::vector<experiment::Cell>& cells) {
  render::Json rows = render::Json::array();
  for (const experiment::Cell& cell : cells) {
    rows.push_back({{"ordinal", cell.ordinal},
                    {"key", cell.key},
                    {"pe", cell.job.pe},
                    {"pe_label", cell.pe_label},
                    {"task", cell.task_label},
                    {"protocol", cell.protocol_label},
                    {"seed", cell.job.seed},
                    {"spec", ParseJson<render::Json>(cell.canonical_json)}});
  }
  return rows;
}

// A sweep of this name that has another document is a reason to refuse this one. The coordinator
// says so at the submission.
void NoteOtherDocument(const Context& context, const Document& document) {
  std::error_code ignored;
  if (context.options.server.empty() &&
      !std::filesystem::exists(context.options.database, ignored)) {
    return;
  }
  const auto source = FindSource(context.options);
  if (!source.ok()) return;
  const auto sweep = (*source)->Sweep(document.sweep.name());
  if (!sweep.ok()) return;
  if (sweep->document() == document.text &&
      rpc::ByField(sweep->overrides()) == rpc::ByField(document.overrides)) {
    return;
  }
  context.err(Concat("note: sweep ", sweep->sweep_id(),
                     " has this name and another document or other overrides, so this one will be "
                     "refused: give it a name of its own (--name NAME), make it another sweep of "
                     "that name (--new), or add seeds with pelab extend ",
                     sweep->sweep_id(), "\n"));
}

}  // namespace

absl::StatusOr<int> DryRun(const Context& context, const Document& document,
                           const SubmitOptions& submit) {
  const std::vector<experiment::Cell> cells = Expand(document.sweep);
  PELAB_ASSIGN_OR_RETURN(const Counted answer, Ask(context, document, submit.fresh, cells));
  PutNotes(context, document.sweep);
  if (!submit.fresh && !submit.new_sweep) NoteOtherDocument(context, document);
  const auto json = [&] {
    return render::Json{{"dry_run", true},
                        {"name", document.sweep.name()},
                        {"counts", results::ToJson(answer.counts)},
                        {"asked", answer.asked},
                        {"notes", experiment::NotesOn(document.sweep)},
                        {"jobs", CellsJson(cells)}};
  };
  const auto text = [&] {
    return Concat(CellsTable(cells, context.style), document.sweep.name(), ": ", cells.size(),
                  " jobs: ", CountsText(answer.counts), " (asked ", answer.asked,
                  ")\nnothing was stored\n");
  };
  return Put(context,
             {.json = json,
              .text = text,
              .columns = {"ordinal", "key", "pe", "pe_label", "task", "protocol", "seed", "spec"},
              .csv = [&] { return CellsJson(cells); }});
}

}  // namespace pelab::client
