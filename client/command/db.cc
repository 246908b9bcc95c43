#include <CLI/CLI.hpp>
#include <filesystem>

#include "client/command/commands.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/backup/backup.h"
#include "core/db/check/check.h"
#include "core/render/text.h"
#include "core/rpc/lock_file.h"
#include "migrations/migrate.h"
#include "migrations/schema.h"

namespace pelab::client {
namespace {

using render::Json;

absl::StatusOr<int> Info(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const db::DatabaseInfo info, db::ReadInfo(context.options.database));
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
  render::Table table({{"what"}, {"value", render::Column::Align::kRight}});
  for (const auto& [name, value] : json.items()) {
    table.AddRow({name, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  return PutRow(context, json, table.Render(context.style));
}

absl::StatusOr<int> CheckFile(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(const auto checks, db::CheckDatabase(context.options.database));
  bool sound = true;
  Json rows = Json::array();
  std::string text;
  for (const db::Check& check : checks) {
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
  Put(context, {.json =
                    [&] {
                      return Json{{"ok", sound}, {"checks", rows}};
                    },
                .text = [&] { return text; },
                .rows = "checks"});
  return sound ? kExitOk : kExitFailed;
}

// Writes one part from the coordinator into the copy.
absl::Status Receive(const v1::BackupPart& part, db::BackupWriter& writer) {
  switch (part.part_case()) {
    case v1::BackupPart::kHeader:
      writer.Announce(part.header().database_bytes(), part.header().artifacts());
      return absl::OkStatus();
    case v1::BackupPart::kDatabase:
      return writer.AppendDatabase(part.database());
    case v1::BackupPart::kFile:
      if (!part.file().missing())
        return writer.BeginArtifact({part.file().sha256(), part.file().bytes()});
      return writer.ArtifactIsMissing(part.file().sha256());
    case v1::BackupPart::kData:
      return writer.AppendArtifact(part.data());
    default:  // skips parts that a newer coordinator may send
      return absl::OkStatus();
  }
}

absl::StatusOr<db::BackupReport> BackUpServed(Coordinator& coordinator, const std::string& target) {
  PELAB_ASSIGN_OR_RETURN(const auto writer, db::BackupWriter::Create(target));
  PELAB_RETURN_IF_ERROR(
      coordinator.Backup([&](const v1::BackupPart& part) { return Receive(part, *writer); }));
  return writer->Finish();
}

// Lets the coordinator make the backup if one serves the file; otherwise copies it here.
absl::StatusOr<db::BackupReport> MakeBackup(const Context& context, const std::string& target,
                                            std::string* from) {
  const std::string& database = context.options.database;
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = FindCoordinator(context.options);
  if (coordinator.ok()) {
    *from = (*coordinator)->Description();
    return BackUpServed(**coordinator, target);
  }
  if (!context.options.server.empty()) return coordinator.status();
  *from = database;
  PELAB_RETURN_IF_ERROR(db::ReadInfo(database).status());  // fails if there is nothing to copy
  // While this process holds the lock, no coordinator can open the file.
  const absl::StatusOr<rpc::LockFile> lock = rpc::LockFile::Acquire(database);
  if (!lock.ok() && IsServed(context.options).value_or(false)) {
    return absl::FailedPreconditionError(
        Concat("cannot back up: ", std::string(coordinator.status().message())));
  }
  if (!lock.ok()) return Annotate(lock.status(), "cannot back up");
  return db::Backup(database, target);
}

absl::StatusOr<int> BackUp(const Context& context, const std::string& target) {
  std::string from;
  PELAB_ASSIGN_OR_RETURN(const db::BackupReport report, MakeBackup(context, target, &from));
  const std::size_t missing = report.missing_artifacts.size();
  std::string text =
      Concat("copied ", render::Escape(from), " to ", target, ": ", report.database_bytes,
             " bytes\nand ", report.artifacts, " artifacts of ", report.artifact_bytes,
             " bytes to ", target, ".artifacts\n");
  if (missing != 0) {
    text += Concat("the copy lacks ", missing,
                   " artifacts that are missing or damaged in the original, such as ",
                   render::Escape(report.missing_artifacts.front()), "\n");
  }
  PutRow(context,
         {{"database", from},
          {"backup", target},
          {"database_bytes", report.database_bytes},
          {"artifacts", report.artifacts},
          {"artifact_bytes", report.artifact_bytes},
          {"missing_artifacts", report.missing_artifacts}},
         text);
  return missing == 0 ? kExitOk : kExitFailed;
}

// The first free name of FILE.schema-1, FILE.schema-1.2, …
std::string NameOfOldCopy(const std::string& database, int schema) {
  const std::string name = Concat(database, ".schema-", schema);
  std::error_code ignored;
  std::string free = name;
  for (int i = 2; std::filesystem::exists(free, ignored); ++i) free = Concat(name, ".", i);
  return free;
}

absl::StatusOr<int> Migrate(const Context& context, bool keep_copy) {
  const std::string& database = context.options.database;
  const int newest = migrations::NewestSchema();
  PELAB_ASSIGN_OR_RETURN(int from, migrations::SchemaOfFile(database));
  std::string copy;
  if (from != newest) {
    const absl::StatusOr<rpc::LockFile> lock = rpc::LockFile::Acquire(database);
    if (!lock.ok()) return Annotate(lock.status(), "cannot migrate");
    if (keep_copy && from != 0) {
      copy = NameOfOldCopy(database, from);
      PELAB_ASSIGN_OR_RETURN(const auto writer, db::BackupWriter::Create(copy));
      PELAB_RETURN_IF_ERROR(db::CopyAnySchema(database, writer->database_file()));
      PELAB_RETURN_IF_ERROR(writer->Finish().status());
    }
    PELAB_ASSIGN_OR_RETURN(const migrations::Migrated done, migrations::MigrateFile(database));
    from = done.from;
  }
  const bool done = from != newest;
  std::string text =
      Concat(database, " has schema ", newest, ", the newest: there is nothing to do\n");
  if (done) {
    text = Concat("migrated ", database, " from schema ", from, " to ", newest,
                  copy.empty() ? "" : "; the old one is kept as ", copy, "\n");
  }
  PutRow(context,
         {{"database", database},
          {"from", from},
          {"to", newest},
          {"copy", copy.empty() ? Json() : Json(copy)}},
         text);
  return kExitOk;
}

}  // namespace

void AddDb(Commands& commands) {
  CLI::App* app = AddCommand(commands, "db", "inspect, check, back up or migrate the database",
                             "  pelab db info\n"
                             "  pelab db check --db runs/quick.db\n"
                             "  pelab db backup /backup/pelab-friday.db\n"
                             "      while it is served or not; pelab-server --db COPY serves it\n"
                             "  pelab db migrate --db runs/old.db\n"
                             "      to the schema of this version");
  app->require_subcommand(1);
  app->fallthrough();
  CLI::App* info = app->add_subcommand("info", "how much it holds");
  info->callback(
      [&commands] { commands.chosen = [&commands] { return Info(*commands.context); }; });
  CLI::App* check = app->add_subcommand(
      "check", "check that the file is sound, and every promise about its data");
  check->callback(
      [&commands] { commands.chosen = [&commands] { return CheckFile(*commands.context); }; });
  auto target = std::make_shared<std::string>();
  CLI::App* backup = app->add_subcommand(
      "backup", "a consistent copy with its artifacts, from the coordinator if one serves it");
  backup->add_option("FILE", *target, "target file; must not exist")->required();
  backup->callback([&commands, target] {
    commands.chosen = [&commands, target] { return BackUp(*commands.context, *target); };
  });
  auto no_copy = std::make_shared<bool>(false);
  CLI::App* migrate = app->add_subcommand(
      "migrate",
      "change the database to the schema of this version; first copies it to FILE.schema-N. "
      "pelab-server does the same when it starts, without a copy");
  migrate->add_flag("--no-copy", *no_copy, "keep no copy of the old one");
  migrate->callback([&commands, no_copy] {
    commands.chosen = [&commands, no_copy] { return Migrate(*commands.context, !*no_copy); };
  });
}

}  // namespace pelab::client
