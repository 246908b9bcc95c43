// export-model: a trained job as a folder for PyTorch.
#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/export/model_folder.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

struct ExportModelOptions {
  std::string job;
  ModelFolderOptions folder;
};

absl::StatusOr<int> Run(const Context& context, const ExportModelOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const ModelFolder folder,
                         ExportModel(*source, options.job, options.folder));
  const v1::JobRow& job = folder.job;
  render::Json files = render::Json::array();
  for (const ModelFolder::File& file : folder.files) {
    files.push_back({{"file", file.name}, {"bytes", file.bytes}});
  }
  render::Json value = {{"job_id", job.job_id()},          {"key", job.key()},
                        {"directory", options.folder.out}, {"test_correct", job.test_correct()},
                        {"test_total", job.test_total()},  {"files", files}};
  std::string text = Concat("exported job ", job.job_id(), " (", render::Escape(JobLabel(job)),
                            ") to ", render::Escape(options.folder.out), ": ", files.size(),
                            " files, stored test accuracy ", job.test_correct(), "/",
                            job.test_total(), "\nbegin with README.md\n");
  return Put(context, {.json = [&] { return value; },
                       .text = [&] { return text; },
                       .columns = {"file", "bytes"},
                       .csv = [&] { return files; }});
}

}  // namespace

void AddExportModel(Commands& commands) {
  auto options = std::make_shared<ExportModelOptions>();
  CLI::App* app = AddCommand(
      commands, "export-model", "a trained job as a folder for PyTorch, without pelab",
      "  pelab export-model 12 --out rope --data\n"
      "  pelab export-model 4f0c2a --out /data/rope --server gpu01:7470\n"
      "DIR gets model.py (plain PyTorch), weights.safetensors, spec.json and a README.md; "
      "encoding.pt if the encoding came from a file; data.safetensors with --data. `python3 "
      "model.py data.safetensors` counts the test examples that the model gets right.");
  app->add_option("JOB", options->job, "job number, or first digits of its key")->required();
  app->add_option("--out", options->folder.out, "a new or empty folder")
      ->type_name("DIR")
      ->required();
  app->add_flag("--data", options->folder.data,
                "write the data set too; pelab-trainer on this machine makes it");
  app->add_flag("--force", options->folder.force,
                "write into a folder that has files, and replace those of an earlier export");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
