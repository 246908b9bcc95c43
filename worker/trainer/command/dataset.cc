#include "worker/trainer/task/dataset.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "core/experiment/own_task.h"
#include "core/safetensors/safetensors.h"
#include "core/safetensors/task_file.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {
namespace {

// Refers to the vector's bytes without copying. The format and every supported host are
// little-endian.
TensorEntry Entry(const char* name, std::vector<std::int64_t> shape,
                  const std::vector<std::int32_t>& values) {
  return {name,
          DType::kI32,
          std::move(shape),
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]}};
}

// The metadata of a file of own data (docs/own-data.md). With it, a user can change the file and
// train on it.
std::map<std::string, std::string> Metadata(const experiment::Job& job, const Dataset& data) {
  const bool own = job.task == catalog::OwnTask().name;
  const nlohmann::json splits = {experiment::kTrainSplit, own ? job.Choice("task.test") : "test"};
  std::map<std::string, std::string> metadata = {
      {"spec", experiment::ToCanonicalJson(job)},
      {"data_sha256", DatasetSha256(data)},
      {"name", own ? job.Choice("task.data") : job.task},
      {"vocabulary", std::to_string(job.Int("task.vocabulary"))},
      {"classes", std::to_string(data.label_count)},
      {"first_label", std::to_string(data.label_min)},
      {"chance", catalog::NumberToText(experiment::ChanceAccuracy(job))},
      {"splits", splits.dump()},
      {"repeats", "allowed"}};
  nlohmann::ordered_json words = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < data.triggers.size(); ++i) {
    words[std::to_string(data.triggers[i])] = "trigger " + std::to_string(i + 1);
  }
  if (!words.empty()) metadata["words"] = words.dump();
  return metadata;
}

}  // namespace

void WriteDataset(const Arguments& arguments) {
  UseFilesIn(arguments.files);
  const experiment::JobDocument document = ReadJobDocument(arguments.jobs.front().spec);
  const Dataset data = MakeDataset(document.job);
  std::vector<std::int32_t> split(data.size(), 1);
  std::fill_n(split.begin(), data.train_examples, 0);
  const std::vector<std::int32_t> targets = TargetsInFile(data);
  std::vector<std::int64_t> shape = {data.size()};
  if (data.by_position) shape.push_back(data.length);
  SafetensorsFile file;
  file.metadata = Metadata(document.job, data);
  file.tensors = {Entry("tokens", {data.size(), data.length}, data.tokens),
                  Entry("lengths", {data.size()}, data.lengths), Entry("targets", shape, targets),
                  Entry("split", {data.size()}, split)};
  if (!data.triggers.empty()) {
    const auto triggers = static_cast<std::int64_t>(data.triggers.size());
    file.tensors.push_back(Entry("triggers", {triggers}, data.triggers));
  }
  const std::filesystem::path out = arguments.out;
  const auto folder = out.has_parent_path() ? out.parent_path() : std::filesystem::path(".");
  WriteFileAtomically(folder, out.filename().string(), WriteSafetensors(file));
}

}  // namespace pelab::trainer
