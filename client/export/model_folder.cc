#include "client/export/model_folder.h"

#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/export/folder.h"
#include "client/export/model_text.h"
#include "client/source/download.h"
#include "client/terminal/show.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/process.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/temporary_folder.h"
#include "core/catalog/catalog.h"
#include "core/experiment/own_task.h"
#include "core/render/json.h"
#include "core/render/text.h"
#include "core/rpc/token_variable.h"

namespace pelab::client {
namespace {

namespace fs = std::filesystem;
using render::Json;

constexpr char kWeights[] = "weights.safetensors";
constexpr char kEncoding[] = "encoding.pt";
constexpr char kDataSet[] = "data.safetensors";

absl::StatusOr<std::vector<ModelFolder::File>> FilesIn(const std::string& folder) {
  std::vector<ModelFolder::File> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    files.push_back({entry.path().filename().string(), entry.file_size(error)});
  }
  if (error) return absl::InternalError(Concat("cannot read ", folder, ": ", error.message()));
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

// Moves the files into the folder `to`, which is made if it does not exist.
absl::Status MoveTo(const std::string& to, const std::vector<ModelFolder::File>& files,
                    TemporaryFolder* partial) {
  std::error_code error;
  if (!fs::is_directory(to, error)) {
    const char* const path = partial->path().c_str();
    if (chmod(path, 0755) != 0) return ErrnoStatus(errno, Concat("cannot write ", to));
    PELAB_RETURN_IF_ERROR(FsyncDirectory(path));
    if (rename(path, to.c_str()) != 0) return ErrnoStatus(errno, Concat("cannot write ", to));
    partial->Release();
    return FsyncDirectory(DirectoryOf(to));
  }
  for (const ModelFolder::File& file : files) {
    const std::string target = Concat(to, "/", file.name);
    if (rename((*partial / file.name).c_str(), target.c_str()) != 0) {
      return ErrnoStatus(errno, Concat("cannot write ", target));
    }
  }
  return FsyncDirectory(to);
}

struct TrainedJob {
  v1::JobRow row;
  std::string spec;             // canonical
  std::string encoding_sha256;  // of an own encoding; else empty
  std::string data_sha256;      // of own data; else empty
  bool in_bfloat16 = false;
};

absl::StatusOr<TrainedJob> FindTrained(DataSource& source, const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobRow found, FindJob(source, name));
  v1::JobFilter filter;
  filter.add_jobs(Concat(found.job_id()));
  PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, source.Jobs(filter));
  if (jobs.empty()) return absl::NotFoundError(Concat("no job ", name));
  TrainedJob job{.row = jobs.rows().front()};
  const std::string title = Concat("job ", job.row.job_id());
  if (!job.row.trained()) {
    return absl::FailedPreconditionError(Concat(title, " is ", StateText(job.row),
                                                "; only a job whose training has succeeded has a "
                                                "model"));
  }
  job.spec = jobs.SpecOf(job.row);
  const Json spec = ParseJson<Json>(job.spec);
  const auto has = [&](const char* part) {
    return spec.is_object() && spec.contains(part) && spec[part].is_object();
  };
  if (!has("pe") || !has("task")) {
    return absl::DataLossError(Concat("the spec of ", title, " cannot be read"));
  }
  const auto file_of = [&](const char* part, std::string_view own) -> absl::StatusOr<std::string> {
    if (spec[part].value("name", Json()) != std::string(own)) return "";
    const Json file = spec[part].value("file", Json());
    if (file.is_string()) return file.get<std::string>();
    return absl::DataLossError(Concat("the spec of ", title, " names no file under ", part));
  };
  PELAB_ASSIGN_OR_RETURN(job.encoding_sha256, file_of("pe", catalog::OwnPe().name));
  PELAB_ASSIGN_OR_RETURN(job.data_sha256, file_of("task", catalog::OwnTask().name));
  const Json train = spec.value("train", Json());
  job.in_bfloat16 = train.is_object() && train.value("precision", Json()) == "bf16";
  return job;
}

absl::Status Lost(const absl::Status& status, const std::string& what) {
  if (status.code() != absl::StatusCode::kNotFound) return status;
  return absl::NotFoundError(
      Concat("the artifact store has lost ", what, ": ", std::string(status.message())));
}

absl::Status WriteWeights(DataSource& source, const v1::JobRow& job, const std::string& to) {
  v1::JobFilter filter;
  filter.add_jobs(Concat(job.job_id()));
  PELAB_ASSIGN_OR_RETURN(const auto rows, source.Artifacts(filter));
  for (const v1::ArtifactRow& row : rows) {
    if (row.name() != kWeights) continue;
    return Lost(Download(source, row, to, /*force=*/false),
                Concat("the weights of job ", job.job_id()));
  }
  return absl::FailedPreconditionError(Concat("the weights of job ", job.job_id(), " were not kept",
                                              job.warning().empty() ? "" : ": ",
                                              render::Escape(job.warning())));
}

// Writes a file that the spec names by its hash. `what`: "the encoding", "the data".
absl::Status WriteNamed(DataSource& source, const std::string& sha256, const std::string& what,
                        const std::string& to) {
  std::string bytes;
  const auto take = [&](const std::string& piece) {
    bytes += piece;
    return bytes.size() <= experiment::kMaxTaskBytes
               ? absl::OkStatus()
               : absl::DataLossError(Concat("the stored file of ", what, " is too long"));
  };
  PELAB_RETURN_IF_ERROR(Lost(source.ReadArtifact(sha256, take), Concat("the file of ", what)));
  if (Sha256Hex(bytes) != sha256) {
    return absl::DataLossError(Concat("the stored file of ", what, " is damaged: its SHA-256 is ",
                                      Sha256Hex(bytes), ", not ", sha256));
  }
  return WriteNewFile(to, bytes);
}

// `files` is the folder of the files that the spec names.
absl::Status WriteData(const std::string& trainer, const std::string& spec,
                       const std::string& files, const std::string& to) {
  SpawnOptions spawn;
  spawn.argv = {trainer, "dataset", "--spec", spec, "--files", files, "--out", to};
  spawn.unset_env = {rpc::kTokenVariable};
  spawn.fds = {{2, 1}};  // standard output is for the answer
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(spawn));
  const ExitStatus status = process.Wait();
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(
      Concat("--data: ", trainer, " dataset ", status.ToString(), " and wrote no data set"));
}

std::string StoredAccuracy(const v1::JobRow& job) {
  return Concat(job.test_correct(), "/", job.test_total());
}

std::string Readme(const TrainedJob& job) {
  const v1::JobRow& row = job.row;
  std::string text = Concat(
      "# A model trained by pelab\n\n"
      "A small transformer decoder with the positional encoding `",
      render::Escape(row.pe_label()), "`, trained on the\ntask `", render::Escape(row.task()),
      "`, as plain PyTorch (1.13 or newer).\n\n", "| | |\n|---|---|\n| job | ", row.job_id(),
      ", seed ", row.seed(), ", protocol `", render::Escape(row.protocol()),
      "` |\n| key (SHA-256 of `spec.json`) | `", render::Escape(row.key()),
      "` |\n| stored test accuracy | ", StoredAccuracy(row), " after ", row.epochs_done(),
      row.epochs_done() == 1 ? " epoch" : " epochs",
      " |\n| written by | pelab " PELAB_VERSION
      " |\n\n"
      "```python\n"
      "from model import load\n"
      "model = load()                    # a torch.nn.Module with its weights\n"
      "logits = model(tokens, lengths)   # (B, T) token ids, (B) tokens before the padding\n"
      "```\n\n"
      "| file | holds |\n|---|---|\n"
      "| `model.py` | the model; needs PyTorch and nothing of pelab |\n"
      "| `weights.safetensors` | the weights after the last epoch |\n"
      "| `spec.json` | every setting of the training (canonical JSON) |\n");
  if (!job.encoding_sha256.empty()) {
    text += "| `encoding.pt` | the positional encoding, a TorchScript module |\n";
  }
  text += Concat(
      "| `data.safetensors` | the training and test examples, if they were asked for |\n"
      "\nTwo commands count the test examples that the model gets right. The first writes\n"
      "`data.safetensors` and needs pelab's trainer; leave it out if the file is there.",
      job.data_sha256.empty() ? ""
                              : " DIR is a\nfolder with the file of the data, named by its "
                                "SHA-256 (`file` in spec.json).",
      "\n\n```\npelab-trainer dataset --spec spec.json",
      job.data_sha256.empty() ? "" : " --files DIR",
      " --out data.safetensors\n"
      "python3 model.py data.safetensors\n```\n\n"
      "The second prints ",
      StoredAccuracy(row),
      " first. Only examples whose two largest logits are almost equal may\n"
      "come out otherwise; the second line counts them.\n");
  if (job.in_bfloat16) {
    text +=
        "\nThe training multiplied in bfloat16 (`train.precision`), and `model.py` multiplies in "
        "float32, so further predictions may differ.\n";
  }
  return text;
}

}  // namespace

absl::StatusOr<ModelFolder> ExportModel(DataSource& source, const std::string& name,
                                        const ModelFolderOptions& options) {
  const std::string out = WithoutSlash(options.out);
  if (const absl::Status free = CheckFree(out, options.force); !free.ok()) {
    if (options.force || !absl::IsAlreadyExists(free)) return free;
    return absl::AlreadyExistsError(Concat(std::string(free.message()),
                                           ", or replace the files of an earlier export "
                                           "(--force)"));
  }
  absl::StatusOr<std::string> trainer = "";
  if (options.data) trainer = FindProgram("pelab-trainer");
  if (!trainer.ok()) {
    return absl::FailedPreconditionError(Concat("--data needs pelab-trainer to make the data set: ",
                                                std::string(trainer.status().message())));
  }
  PELAB_ASSIGN_OR_RETURN(const TrainedJob job, FindTrained(source, name));
  PELAB_ASSIGN_OR_RETURN(TemporaryFolder partial, TemporaryFolder::Make(out + ".partial-"));
  PELAB_RETURN_IF_ERROR(WriteWeights(source, job.row, partial / kWeights));
  if (!job.encoding_sha256.empty()) {
    PELAB_RETURN_IF_ERROR(
        WriteNamed(source, job.encoding_sha256, "the encoding", partial / kEncoding));
  }
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "spec.json", job.spec));
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "model.py", {kModelText.data(), kModelText.size()}));
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "README.md", Readme(job)));
  if (options.data) {
    const std::string prefix = fs::temp_directory_path() / "pelab-data-";
    PELAB_ASSIGN_OR_RETURN(const TemporaryFolder named, TemporaryFolder::Make(prefix));
    if (!job.data_sha256.empty()) {
      PELAB_RETURN_IF_ERROR(
          WriteNamed(source, job.data_sha256, "the data", named / job.data_sha256));
    }
    PELAB_RETURN_IF_ERROR(
        WriteData(*trainer, partial / "spec.json", named.path(), partial / kDataSet));
  }
  ModelFolder folder{.job = job.row};
  PELAB_ASSIGN_OR_RETURN(folder.files, FilesIn(partial.path()));
  PELAB_RETURN_IF_ERROR(MoveTo(out, folder.files, &partial));
  return folder;
}

}  // namespace pelab::client
