#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string_view>

#include "client/command/commands.h"
#include "client/embedded/call_session.h"
#include "client/import/importer.h"
#include "client/limits.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct ImportOptions {
  std::string other;
  bool dry_run = false;
  bool no_files = false;
};

// Previews an import into a file that nobody serves. If the file does not exist, every job is new.
absl::StatusOr<ImportReport> PreviewFile(const std::string& database, Importer& importer) {
  std::error_code ignored;
  if (!std::filesystem::exists(database, ignored)) {
    return importer.Preview([](const v1::CheckImportRequest& request) {
      v1::CheckImportResponse all_new;
      for (int i = 0; i < request.keys_size(); ++i) {
        all_new.add_verdicts(v1::IMPORT_VERDICT_NEW);
      }
      return absl::StatusOr<v1::CheckImportResponse>(all_new);
    });
  }
  PELAB_ASSIGN_OR_RETURN(const auto reader, db::ImportReader::Open(database));
  return importer.Preview(
      [&](const v1::CheckImportRequest& request) -> absl::StatusOr<v1::CheckImportResponse> {
        PELAB_ASSIGN_OR_RETURN(const auto verdicts, reader->Check(request));
        v1::CheckImportResponse response;
        for (const v1::ImportVerdict verdict : verdicts) response.add_verdicts(verdict);
        return response;
      });
}

absl::StatusOr<ImportReport> Import(const Context& context, const ImportOptions& options,
                                    Importer& importer) {
  const auto progress = [&context](std::uint64_t done, std::uint64_t all) {
    if (done % limits::kImportProgressJobs == 0) {
      context.err(Concat("pelab: ", done, " of ", all, " jobs\n"));
    }
  };
  PELAB_ASSIGN_OR_RETURN(const bool served, IsServed(context.options));
  if (served) {
    PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
    if (options.dry_run) {
      return importer.Preview(
          [&](const v1::CheckImportRequest& request) { return coordinator->CheckImport(request); });
    }
    return importer.Run(
        *coordinator, [] { return false; }, progress);
  }
  if (options.dry_run) return PreviewFile(context.options.database, importer);
  PELAB_RETURN_IF_ERROR(CheckDatabaseFile(context.options.database));
  ImportReport report;
  PELAB_RETURN_IF_ERROR(
      CallEmbedded(context, "stopped; what was imported stays, and the same command goes on",
                   [&](Coordinator& coordinator, Canceller& canceller) {
                     PELAB_ASSIGN_OR_RETURN(
                         report, importer.Run(
                                     coordinator, [&] { return canceller.cancelled(); }, progress));
                     return absl::OkStatus();
                   }));
  return report;
}

std::string Lines(const ImportOptions& options, const ImportReport& report) {
  std::string text =
      Concat(options.dry_run ? "would import " : "imported ", report.imported, " new jobs, ",
             report.present, " already here, ", report.unfinished, " not finished there");
  if (report.in_flight > 0) text += Concat(", ", report.in_flight, " being trained here");
  if (!report.different.empty()) {
    text += Concat(", ", report.different.size(), " different here");
  }
  text += Concat("; ", report.files, " files of ", report.file_bytes, " bytes\n");
  if (report.sweeps > 0) {
    text += report.sweeps == 1
                ? std::string("1 sweep is here now with all its jobs\n")
                : Concat(report.sweeps, " sweeps are here now with all their jobs\n");
  }
  for (const std::string& sweep : report.partial_sweeps) {
    text += Concat("sweep ", render::Escape(sweep),
                   " are trained here; it is kept as cancelled: submit its document to train the "
                   "rest\n");
  }
  for (const std::string& key : report.different) {
    text += Concat("job ", render::Escape(std::string_view(key).substr(0, 12)),
                   " has another curve here than there: nothing was overwritten\n");
  }
  for (const std::string& path : report.missing_files) {
    text += Concat(render::Escape(path), " is missing or damaged: its job came without it\n");
  }
  if (report.old_matrices > 0) {
    text += Concat(report.old_matrices, " head ablations of version 1 were left out\n");
  }
  return text;
}

absl::StatusOr<int> Run(const Context& context, const ImportOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto importer, Importer::Open(options.other, !options.no_files));
  auto report = Import(context, options, *importer);
  if (!report.ok()) {
    if (absl::IsResourceExhausted(report.status()) && !options.no_files) {
      return absl::ResourceExhaustedError(
          Concat(std::string(report.status().message()),
                 "; what was imported stays, and --no-files leaves weights out"));
    }
    return report.status();
  }
  const render::Json row = {{"database", options.other},
                            {"dry_run", options.dry_run},
                            {"imported", report->imported},
                            {"present", report->present},
                            {"in_flight", report->in_flight},
                            {"unfinished", report->unfinished},
                            {"different", report->different},
                            {"files", report->files},
                            {"file_bytes", report->file_bytes},
                            {"missing_files", report->missing_files},
                            {"old_matrices", report->old_matrices},
                            {"sweeps", report->sweeps},
                            {"partial_sweeps", report->partial_sweeps}};
  PutRow(context, row, Lines(options, *report));
  return report->different.empty() && report->missing_files.empty() ? kExitOk : kExitFailed;
}

}  // namespace

void AddImport(Commands& commands) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* app = AddCommand(
      commands, "import", "merge another database's finished jobs into this one, by key",
      "  pelab import other.db --db all.db\n"
      "  pelab import other.db --server gpu01:7470 --dry-run\n"
      "  pelab import runs/ --db all.db\n"
      "A job comes with its curve, attempts, analyses, ablations and weights; sweeps come with "
      "their documents. Jobs that are here stay as they are, and a second import changes nothing. "
      "A folder has runs of pelab-trainer alone: each is a folder with the trainer's job.json, its "
      "lines in events.jsonl, and its files. "
      "If no coordinator serves --db, this command starts one, which creates the file if it is "
      "missing.\n"
      "Exit status 1: a job has another curve here, or a file there is missing or damaged.");
  app->add_option("OTHER.db", options->other,
                  "the database to take jobs from, or a folder of recorded runs; is only read, "
                  "may be served")
      ->required();
  app->add_flag("--dry-run", options->dry_run, "say what would be imported, and change nothing");
  app->add_flag("--no-files", options->no_files, "leave out weights and other files");
  app->callback([&commands, options] {
    options->other = ResolveLinks(options->other);
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
