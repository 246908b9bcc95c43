#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "client/command/ablation_options.h"
#include "client/command/commands.h"
#include "client/source/connect.h"
#include "client/source/download.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/table.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct ArtifactsOptions {
  std::string target;
  std::string sweep;
  std::string action;
  std::string name;
  std::string out;
  bool force = false;
};

absl::StatusOr<int> List(const Context& context, DataSource& source, const Target& target) {
  PELAB_ASSIGN_OR_RETURN(const auto rows, source.Artifacts(target.filter));
  const auto text = [&] {
    if (rows.empty()) return Concat(target.title, " has no stored files\n");
    render::Table table({{"job", Align::kRight}, {"name"}, {"bytes", Align::kRight}, {"sha256"}});
    for (const v1::ArtifactRow& row : rows) {
      table.AddRow({Concat(row.job_id()), row.name(), Concat(row.bytes()), row.sha256()});
    }
    return table.Render(context.style);
  };
  return Put(context, {.json =
                           [&] {
                             return render::Json{{"artifacts", results::ToJsonArray(rows)}};
                           },
                       .text = text,
                       .rows = "artifacts",
                       .columns = results::ColumnsOf<v1::ArtifactRow>()});
}

absl::StatusOr<v1::ArtifactRow> FindArtifact(const std::vector<v1::ArtifactRow>& rows,
                                             const Target& target, const std::string& name) {
  std::vector<std::string> known;
  for (const v1::ArtifactRow& row : rows) {
    if (row.name() == name) return row;
    known.push_back(row.name());
  }
  return absl::NotFoundError(Concat(target.title, " has no file \"", name,
                                    "\"; it has: ", known.empty() ? "none" : Join(known, ", ")));
}

absl::StatusOr<int> Get(const Context& context, DataSource& source, const Target& target,
                        const ArtifactsOptions& options) {
  if (target.is_sweep) {
    return absl::InvalidArgumentError(Concat(target.title, " is a sweep: get takes one job"));
  }
  PELAB_ASSIGN_OR_RETURN(const auto rows, source.Artifacts(target.filter));
  PELAB_ASSIGN_OR_RETURN(const v1::ArtifactRow row, FindArtifact(rows, target, options.name));
  if (options.out.empty() && !IsPlainFileName(row.name())) {
    return absl::FailedPreconditionError(Concat("the stored file's name \"",
                                                render::Escape(row.name()),
                                                "\" is not a plain file name; say with --out "
                                                "where to write it"));
  }
  const std::string out = options.out.empty() ? options.name : options.out;
  std::error_code ignored;
  if (options.out.empty() && std::filesystem::is_symlink(out, ignored)) {
    return absl::FailedPreconditionError(
        Concat(out, " is a link; say with --out where to write the file"));
  }
  PELAB_RETURN_IF_ERROR(Download(source, row, out, options.force));
  render::Json json = results::ToJson(row);
  json["file"] = out;
  return PutRow(context, json,
                Concat(render::Escape(out), ": ", row.bytes(), " bytes, sha256 ",
                       render::Escape(row.sha256()), "\n"));
}

absl::Status CheckAction(const ArtifactsOptions& options) {
  if (options.action.empty()) {
    return options.out.empty() && !options.force
               ? absl::OkStatus()
               : absl::InvalidArgumentError("--out and --force belong to: artifacts JOB get NAME");
  }
  if (options.action != "get") {
    return absl::InvalidArgumentError(
        Concat("unknown action \"", options.action, "\"; known: get (without one: list)"));
  }
  return options.name.empty()
             ? absl::InvalidArgumentError(
                   "name the file to get, as in: artifacts JOB get weights.safetensors")
             : absl::OkStatus();
}

absl::StatusOr<int> Run(const Context& context, const ArtifactsOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep));
  PELAB_RETURN_IF_ERROR(CheckAction(options));
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target, FindTarget(*source, options.target, options.sweep));
  return options.action.empty() ? List(context, *source, target)
                                : Get(context, *source, target, options);
}

}  // namespace

void AddArtifacts(Commands& commands) {
  auto options = std::make_shared<ArtifactsOptions>();
  CLI::App* app =
      AddCommand(commands, "artifacts", "list the stored files of jobs, or download one",
                 "  pelab artifacts quick\n"
                 "  pelab artifacts 12\n"
                 "  pelab artifacts 12 get weights.safetensors --out rope.safetensors\n"
                 "get checks the file's SHA-256 and writes it whole or not at all.");
  AddTarget(app, options->target, options->sweep);
  app->add_option("get", options->action, "get one file [default: list]");
  app->add_option("NAME", options->name, "the file's name in the list");
  app->add_option("--out", options->out, "where to write it [default: NAME, in this folder]")
      ->type_name("F");
  app->add_flag("--force", options->force, "replace a file that is there");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
