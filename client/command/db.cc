#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/render/table.h"
#include "client/render/text.h"
#include "core/base/status.h"
#include "core/rpc/lock_file.h"
#include "core/views/maintenance.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using render::Json;

absl::StatusOr<int> Info(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const views::DatabaseInfo info, views::ReadInfo(context.options.database));
  const Json json = {{"path", info.path},
                     {"schema_version", info.schema_version},
                     {"bytes", info.bytes},
                     {"sweeps", info.sweeps},
                     {"jobs", info.jobs},
                     {"jobs_succeeded", info.jobs_succeeded},
                     {"attempts", info.attempts},
                     {"epochs", info.epochs},
                     {"ablated_heads", info.ablated_heads},
                     {"artifacts", info.artifacts},
                     {"artifact_bytes", info.artifact_bytes}};
  std::vector<std::string> columns;
  render::Table table({{"what"}, {"value", render::Column::Align::kRight}});
  for (const auto& [name, value] : json.items()) {
    columns.push_back(name);
    table.AddRow({name, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  switch (context.output()) {
    case Output::kJson:
      PutJson(context, json);
      break;
    case Output::kCsv:
      PutCsv(context, columns, Json::array({json}));
      break;
    case Output::kTable:
      context.out(table.Render(context.style));
      break;
  }
  return kExitOk;
}

absl::StatusOr<int> CheckFile(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const auto checks, views::CheckDatabase(context.options.database));
  bool sound = true;
  Json rows = Json::array();
  std::string text;
  for (const views::Check& check : checks) {
    sound = sound && check.problems.empty();
    rows.push_back({{"check", check.name},
                    {"ok", check.problems.empty()},
                    {"problems", check.problems},
                    {"notes", check.notes}});
    text += check.problems.empty() ? render::Paint(context.style, "32", "ok    ")
                                   : render::Paint(context.style, "31", "FAILED");
    text += Concat(" ", check.name, "\n");
    for (const std::string& problem : check.problems)
      text += Concat("         ", render::Escape(problem), "\n");
    for (const std::string& note : check.notes)
      text += Concat("         note: ", render::Escape(note), "\n");
  }
  switch (context.output()) {
    case Output::kJson:
      PutJson(context, {{"ok", sound}, {"checks", rows}});
      break;
    case Output::kCsv:
      PutCsv(context, {"check", "ok", "problems", "notes"}, rows);
      break;
    case Output::kTable:
      context.out(text);
      break;
  }
  return sound ? kExitOk : kExitFailed;
}

absl::StatusOr<int> BackUp(const Context& context, const std::string& target) {
  const std::string& database = context.options.database;
  PELAB_RETURN_IF_ERROR(views::ReadInfo(database).status());  // is there anything to copy?
  // Holding the lock keeps a coordinator from starting on the file meanwhile.
  absl::StatusOr<rpc::LockFile> lock = rpc::LockFile::Acquire(database);
  if (!lock.ok()) {
    return Annotate(lock.status(),
                    "cannot back up while a coordinator writes the file; stop it first");
  }
  PELAB_RETURN_IF_ERROR(views::Backup(database, target));
  const Json json = {{"database", database}, {"backup", target}};
  switch (context.output()) {
    case Output::kJson:
      PutJson(context, json);
      break;
    case Output::kCsv:
      PutCsv(context, {"database", "backup"}, Json::array({json}));
      break;
    case Output::kTable:
      context.out(Concat("copied ", database, " and its artifacts to ", target, "\n"));
      break;
  }
  return kExitOk;
}

}  // namespace

void AddDb(Commands& commands) {
  CLI::App* app = AddCommand(commands, "db", "look after the database file",
                             "  pelab db info\n"
                             "  pelab db check --db runs/quick.db\n"
                             "  pelab db backup /backup/pelab-friday.db");
  app->require_subcommand(1);
  app->fallthrough();
  CLI::App* info = app->add_subcommand("info", "how much it holds");
  info->callback(
      [&commands] { commands.chosen = [&commands] { return Info(*commands.context); }; });
  CLI::App* check = app->add_subcommand(
      "check", "is the file sound, and does everything hold that is promised about it?");
  check->callback(
      [&commands] { commands.chosen = [&commands] { return CheckFile(*commands.context); }; });
  auto target = std::make_shared<std::string>();
  CLI::App* backup =
      app->add_subcommand("backup", "a consistent copy with its artifacts, while nobody serves it");
  backup->add_option("FILE", *target, "where to; must not be there yet")->required();
  backup->callback([&commands, target] {
    commands.chosen = [&commands, target] { return BackUp(*commands.context, *target); };
  });
}

}  // namespace pelab::client
