#include "worker/trainer/task/dataset.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "core/experiment/canonical_json.h"
#include "worker/trainer/command/command.h"
#include "worker/trainer/protocol/files.h"
#include "worker/trainer/protocol/safetensors.h"

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

}  // namespace

void WriteDataset(const Arguments& arguments) {
  const experiment::JobDocument document = ReadJobDocument(arguments.jobs.front().spec);
  const Dataset data = MakeDataset(document.job);
  std::vector<std::int32_t> split(data.size(), 1);
  std::fill_n(split.begin(), data.train_examples, 0);
  SafetensorsFile file;
  file.metadata = {{"spec", experiment::ToCanonicalJson(document.job)},
                   {"data_sha256", DatasetSha256(data)}};
  file.tensors = {
      Entry("tokens", {data.size(), data.length}, data.tokens),
      Entry("lengths", {data.size()}, data.lengths), Entry("labels", {data.size()}, data.labels),
      Entry("split", {data.size()}, split),
      Entry("triggers", {static_cast<std::int64_t>(data.triggers.size())}, data.triggers)};
  const std::filesystem::path out = arguments.out;
  const auto folder = out.has_parent_path() ? out.parent_path() : std::filesystem::path(".");
  WriteFileAtomically(folder, out.filename().string(), WriteSafetensors(file));
}

}  // namespace pelab::trainer
