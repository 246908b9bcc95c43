// Any bytes as a safetensors file, for the reader of tensors, for the reader of data on top of it,
// and for the agent's, which reads the metadata alone.
#include <fstream>

#include "core/safetensors/safetensors.h"
#include "core/safetensors/task_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/checkpoint_file.h"

namespace pelab::safetensors_fuzz {
namespace {

using fuzz::Require;

std::uint64_t ElementBytes(DType dtype) {
  const std::string_view name = NameOf(dtype);  // "F32", "I64", "BOOL"
  if (name == "BOOL" || name == "I8" || name == "U8") return 1;
  return name.ends_with("16") ? 2 : name.ends_with("32") ? 4 : 8;
}

void CheckTensor(const TensorEntry& tensor, std::string_view text) {
  Require(tensor.bytes.data() >= text.data() &&
              tensor.bytes.data() + tensor.bytes.size() <= text.data() + text.size(),
          "a tensor lies within its file");
  // Divided, because a product could overflow here, too.
  std::uint64_t left = tensor.bytes.size() / ElementBytes(tensor.dtype);
  bool empty = false;
  for (const std::int64_t size : tensor.shape) {
    Require(size >= 0, "no size is negative");
    empty = empty || size == 0;
  }
  for (const std::int64_t size : tensor.shape) {
    if (empty) break;
    Require(left % static_cast<std::uint64_t>(size) == 0, "a shape divides its bytes");
    left /= static_cast<std::uint64_t>(size);
  }
  Require(empty ? tensor.bytes.empty() : left == 1, "a tensor has the bytes of its shape");
}

void CheckFile(const SafetensorsFile& file, std::string_view text) {
  for (const TensorEntry& tensor : file.tensors) {
    CheckTensor(tensor, text);
    Require(file.Find(tensor.name) != nullptr, "a tensor is found by its name");
  }
  const std::string written = WriteSafetensors(file);
  const SafetensorsFile back = ParseSafetensors(written).file;
  Require(back.metadata == file.metadata, "metadata read back");
  Require(back.tensors.size() == file.tensors.size(), "all tensors read back");
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    Require(back.tensors[i].shape == file.tensors[i].shape &&
                back.tensors[i].bytes == file.tensors[i].bytes,
            "a tensor reads back", file.tensors[i].name);
  }
}

// The declaration of an accepted file is read back as it was written.
void CheckData(std::string_view text) {
  const TaskFileResult read = ParseTaskFile(text);
  if (!read.problem.empty()) return fuzz::RequireSentence(read.problem);
  const experiment::OwnTaskResult again =
      experiment::ParseOwnTask(experiment::ToJson(read.file.declared));
  Require(again.problem.empty(), "a declaration reads back", again.problem);
  Require(experiment::ToJson(again.task) == experiment::ToJson(read.file.declared),
          "a declaration reads back as it was");
}

void CheckAgent(std::string_view text) {
  static const TempDir directory;
  const std::string path = directory / agent::kCheckpointName;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  const auto file = agent::ReadCheckpointFile(path);
  if (!file.ok()) return fuzz::RequireRefusal(file.status());
  Require(file->epoch >= 0, "an epoch is not negative");
}

}  // namespace

// The header's length is made right if the first byte says so, because a mutation rarely keeps it.
PELAB_FUZZ_TARGET(safetensors) {
  fuzz::Input input(data, size);
  std::string text;
  if (input.Number(1) != 0) {
    const std::string_view header = input.Piece();
    text = std::string(8, '\0');
    text[0] = static_cast<char>(header.size() & 0xff);
    text[1] = static_cast<char>(header.size() >> 8);
    text += header;
  }
  text += input.Rest();
  const SafetensorsResult read = ParseSafetensors(text);
  if (read.problem.empty()) {
    CheckFile(read.file, text);
  } else {
    fuzz::RequireSentence(read.problem);
  }
  CheckData(text);
  CheckAgent(text);
  return 0;
}

}  // namespace pelab::safetensors_fuzz
