#include "worker/trainer/train/checkpoint.h"

#include <ATen/ATen.h>

#include <charconv>
#include <cstring>

#include "core/safetensors/safetensors.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

constexpr const char* kNames[] = {"parameters", "first_moment", "second_moment"};

std::string_view BytesOf(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

at::Tensor TensorOf(const SafetensorsFile& file, const char* name) {
  const TensorEntry* const entry = file.Find(name);
  if (entry == nullptr || entry->dtype != DType::kF32 || entry->shape.size() != 1) {
    throw TrainerError(ErrorKind::kIo, std::string("the checkpoint has no float32 vector ") + name);
  }
  at::Tensor tensor = at::empty(entry->shape, at::TensorOptions().dtype(at::kFloat));
  std::memcpy(tensor.data_ptr(), entry->bytes.data(), entry->bytes.size());
  return tensor;
}

std::int64_t EpochOf(const std::string& text) {
  std::int64_t epoch = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), epoch);
  if (error != std::errc() || end != text.data() + text.size() || epoch < 0) {
    throw TrainerError(ErrorKind::kIo, "the checkpoint's epoch is \"" + text + "\", not a number");
  }
  return epoch;
}

}  // namespace

FileInfo WriteCheckpoint(const std::filesystem::path& workdir, const CheckpointOrigin& origin,
                         const Checkpoint& checkpoint) {
  SafetensorsFile file;
  file.metadata = {{"spec", origin.spec_json},
                   {"execution", origin.execution},
                   {"epoch", std::to_string(checkpoint.epoch)}};
  const at::Tensor* const tensors[] = {&checkpoint.parameters, &checkpoint.first_moment,
                                       &checkpoint.second_moment};
  for (int i = 0; i < 3; ++i) {
    file.tensors.push_back({kNames[i], DType::kF32, {tensors[i]->numel()}, BytesOf(*tensors[i])});
  }
  return WriteFileAtomically(workdir, kCheckpointName, WriteSafetensors(file));
}

std::optional<Checkpoint> ReadCheckpoint(const std::filesystem::path& workdir,
                                         const CheckpointOrigin& origin) {
  if (!std::filesystem::exists(workdir / kCheckpointName)) return std::nullopt;
  const std::string text = ReadFile(workdir / kCheckpointName);
  const SafetensorsFile file = ReadSafetensors(text);
  const auto is = [&file](const char* name, const std::string& wanted) {
    const auto found = file.metadata.find(name);
    return found != file.metadata.end() && found->second == wanted;
  };
  const auto epoch = file.metadata.find("epoch");
  if (epoch == file.metadata.end() || !is("spec", origin.spec_json) ||
      !is("execution", origin.execution)) {
    return std::nullopt;
  }
  return Checkpoint{EpochOf(epoch->second), TensorOf(file, kNames[0]), TensorOf(file, kNames[1]),
                    TensorOf(file, kNames[2])};
}

}  // namespace pelab::trainer
