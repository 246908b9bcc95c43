#include "client/export/model_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/export/model_text.h"
#include "client/source/download.h"
#include "client/terminal/show.h"
#include "core/base/file.h"
#include "core/base/json_text.h"
#include "core/base/process.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/experiment/own_encoding.h"
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

absl::Status CheckFolder(const std::string& path, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    const std::string parent = DirectoryOf(path);
    if (fs::is_directory(parent, error)) return absl::OkStatus();
    return absl::NotFoundError(Concat("cannot write ", path, ": there is no directory ", parent));
  }
  if (status.type() != fs::file_type::directory) {
    return absl::AlreadyExistsError(Concat(path, " is there already and is no folder"));
  }
  const bool is_empty = fs::is_empty(path, error);
  if (error) return absl::FailedPreconditionError(Concat("cannot read ", path));
  if (is_empty || force) return absl::OkStatus();
  return absl::AlreadyExistsError(
      Concat(path,
             " is not empty; name a folder that is not there or empty, or let --force "
             "replace the files of an earlier export"));
}

// A temporary folder. The destructor removes it, or what MoveTo left of it.
class Partial {
 public:
  static absl::StatusOr<Partial> Beside(const std::string& path) {
    std::string name = path + ".partial-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return ErrnoStatus(errno, Concat("cannot make a directory beside ", path));
    }
    return Partial(std::move(name));
  }
  Partial(Partial&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~Partial() {
    if (!path_.empty()) (void)RemoveAll(path_);
  }
  std::string operator/(const std::string& name) const { return Concat(path_, "/", name); }

  absl::StatusOr<std::vector<ModelFolder::File>> Files() const {
    std::vector<ModelFolder::File> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
      files.push_back({entry.path().filename().string(), entry.file_size(error)});
    }
    if (error) return absl::InternalError(Concat("cannot read ", path_, ": ", error.message()));
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return files;
  }

  // Moves the files into the folder `to`, which is made if it does not exist.
  absl::Status MoveTo(const std::string& to, const std::vector<ModelFolder::File>& files) {
    std::error_code error;
    if (!fs::is_directory(to, error)) {
      if (chmod(path_.c_str(), 0755) != 0) return ErrnoStatus(errno, Concat("cannot write ", to));
      PELAB_RETURN_IF_ERROR(FsyncDirectory(path_));
      if (rename(path_.c_str(), to.c_str()) != 0) {
        return ErrnoStatus(errno, Concat("cannot write ", to));
      }
      path_.clear();
      return FsyncDirectory(DirectoryOf(to));
    }
    for (const ModelFolder::File& file : files) {
      const std::string target = Concat(to, "/", file.name);
      if (rename((*this / file.name).c_str(), target.c_str()) != 0) {
        return ErrnoStatus(errno, Concat("cannot write ", target));
      }
    }
    return FsyncDirectory(to);
  }

 private:
  explicit Partial(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct TrainedJob {
  v1::JobRow row;
  std::string spec;             // canonical
  std::string encoding_sha256;  // of an own encoding; else empty
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
  if (!spec.is_object() || !spec.contains("pe") || !spec["pe"].is_object()) {
    return absl::DataLossError(Concat("the spec of ", title, " cannot be read"));
  }
  if (spec["pe"].value("name", Json()) == "own") {
    const Json file = spec["pe"].value("file", Json());
    if (!file.is_string()) {
      return absl::DataLossError(Concat("the spec of ", title, " names no encoding file"));
    }
    job.encoding_sha256 = file.get<std::string>();
  }
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

absl::Status WriteEncoding(DataSource& source, const std::string& sha256, const std::string& to) {
  std::string bytes;
  const auto take = [&](const std::string& piece) {
    bytes += piece;
    return bytes.size() <= experiment::kMaxEncodingBytes
               ? absl::OkStatus()
               : absl::DataLossError("the stored encoding is longer than an encoding may be");
  };
  PELAB_RETURN_IF_ERROR(Lost(source.ReadArtifact(sha256, take), "the file of the encoding"));
  if (Sha256Hex(bytes) != sha256) {
    return absl::DataLossError(Concat("the stored file of the encoding is damaged: its SHA-256 is ",
                                      Sha256Hex(bytes), ", not ", sha256));
  }
  return WriteNewFile(to, bytes);
}

absl::Status WriteData(const std::string& trainer, const std::string& spec, const std::string& to) {
  SpawnOptions spawn;
  spawn.argv = {trainer, "dataset", "--spec", spec, "--out", to};
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
      "` |\n| stored test accuracy | ", StoredAccuracy(row), " after epoch ", row.epochs_done(),
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
      "`data.safetensors` and needs pelab's trainer; leave it out if the file is there.\n\n```\n"
      "pelab-trainer dataset --spec spec.json --out data.safetensors\n"
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
  std::string out = options.out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  PELAB_RETURN_IF_ERROR(CheckFolder(out, options.force));
  absl::StatusOr<std::string> trainer = "";
  if (options.data) trainer = FindProgram("pelab-trainer");
  if (!trainer.ok()) {
    return absl::FailedPreconditionError(Concat("--data needs pelab-trainer to make the data set: ",
                                                std::string(trainer.status().message())));
  }
  PELAB_ASSIGN_OR_RETURN(const TrainedJob job, FindTrained(source, name));
  PELAB_ASSIGN_OR_RETURN(Partial partial, Partial::Beside(out));
  PELAB_RETURN_IF_ERROR(WriteWeights(source, job.row, partial / kWeights));
  if (!job.encoding_sha256.empty()) {
    PELAB_RETURN_IF_ERROR(WriteEncoding(source, job.encoding_sha256, partial / kEncoding));
  }
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "spec.json", job.spec));
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "model.py", {kModelText.data(), kModelText.size()}));
  PELAB_RETURN_IF_ERROR(WriteNewFile(partial / "README.md", Readme(job)));
  if (options.data) {
    PELAB_RETURN_IF_ERROR(WriteData(*trainer, partial / "spec.json", partial / kDataSet));
  }
  ModelFolder folder{.job = job.row};
  PELAB_ASSIGN_OR_RETURN(folder.files, partial.Files());
  PELAB_RETURN_IF_ERROR(partial.MoveTo(out, folder.files));
  return folder;
}

}  // namespace pelab::client
