#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/connect.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "client/rows.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

std::string WorkerTable(const std::vector<v1::WorkerRow>& workers, const render::Style& style) {
  render::Table table({{"worker", Align::kLeft, true},
                       {"host", Align::kLeft, true},
                       {"state"},
                       {"busy", Align::kRight},
                       {"last seen"},
                       {"version"}});
  for (const v1::WorkerRow& worker : workers) {
    table.AddRow({worker.worker_id(), worker.host(), worker.state(),
                  Concat(worker.busy_slots(), "/", worker.slots()),
                  render::FormatTime(worker.last_seen_at_ms()), worker.version()},
                 worker.state() == "online" ? "" : "2");
  }
  return table.Render(style);
}

absl::StatusOr<int> Run(const Context& context) {
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  auto workers = (*source)->Workers();
  if (!workers.ok()) return workers.status();
  switch (context.output()) {
    case Output::kJson:
      PutJson(context, {{"workers", ToJsonArray(*workers)}});
      break;
    case Output::kCsv:
      PutCsv(context, kWorkerColumns, ToJsonArray(*workers));
      break;
    case Output::kTable:
      context.out(workers->empty() ? "no workers\n" : WorkerTable(*workers, context.style));
      break;
  }
  return kExitOk;
}

}  // namespace

void AddWorkers(Commands& commands) {
  CLI::App* app = AddCommand(commands, "workers", "the workers, their slots and what they do",
                             "  pelab workers\n"
                             "  pelab workers --server gpu01:7470 --output json");
  app->callback([&commands] { commands.chosen = [&commands] { return Run(*commands.context); }; });
}

}  // namespace pelab::client
