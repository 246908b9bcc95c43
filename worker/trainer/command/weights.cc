#include "worker/trainer/command/weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/base/json_text.h"
#include "core/safetensors/safetensors.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

[[noreturn]] void ThrowOther(const std::filesystem::path& path, const std::string& what) {
  throw TrainerError(ErrorKind::kBadSpec, path.string() + ": " + what);
}

// The first difference between two specs: "model.layers is 4 there and 2 in the job".
std::string FirstDifference(const nlohmann::json& there, const nlohmann::json& here) {
  const nlohmann::json patch = nlohmann::json::diff(there, here);
  const nlohmann::json::json_pointer at(patch.at(0).at("path").get<std::string>());
  const auto value = [&](const nlohmann::json& document) {
    return document.contains(at) ? document.at(at).dump() : std::string("absent");
  };
  std::string name = at.to_string().substr(std::min<std::size_t>(1, at.to_string().size()));
  for (char& c : name) c = c == '/' ? '.' : c;
  return name + " is " + value(there) + " there and " + value(here) + " in the job";
}

void RequireSpec(const std::filesystem::path& path, const SafetensorsFile& file,
                 const std::string& spec_json) {
  const auto spec = file.metadata.find("spec");
  if (spec == file.metadata.end()) {
    ThrowOther(path, "no kept weights: its metadata has no \"spec\"");
  }
  if (spec->second == spec_json) return;
  const nlohmann::json there = ParseJson(spec->second);
  if (!there.is_object()) {
    throw TrainerError(ErrorKind::kIo,
                       path.string() + ": the \"spec\" of its metadata is not a JSON object");
  }
  const nlohmann::json here = ParseJson(spec_json);
  if (there != here) {
    ThrowOther(path, "the weights of another job: " + FirstDifference(there, here));
  }
}

void CopyTensor(const std::filesystem::path& path, const TensorEntry& from, const at::Tensor& to) {
  if (from.dtype != DType::kF32) {
    ThrowOther(path, "tensor \"" + from.name + "\" is not of type F32");
  }
  if (from.shape != to.sizes().vec()) {
    ThrowOther(path, "tensor \"" + from.name + "\" has shape " + ShapeText(from.shape) +
                         "; the model's has " + ShapeText(to.sizes().vec()));
  }
  const at::Tensor host = at::empty(to.sizes(), at::TensorOptions().dtype(at::kFloat));
  // The source may be unaligned.
  std::memcpy(host.data_ptr(), from.bytes.data(), from.bytes.size());
  if (!at::isfinite(host).all().item().toBool()) {
    throw TrainerError(ErrorKind::kIo, path.string() + ": tensor \"" + from.name +
                                           "\" holds values that are not finite");
  }
  to.copy_(host);
}

}  // namespace

FileInfo WriteWeights(const std::filesystem::path& workdir, const std::string& spec_json,
                      const ParameterSet& parameters, std::int64_t member) {
  SafetensorsFile file;
  file.metadata = {{"spec", spec_json}};
  std::vector<at::Tensor> kept;  // the file borrows their bytes
  for (const ParameterSet::Named& named : parameters.NamedTensors(member)) {
    kept.push_back(named.tensor.to(at::kFloat).cpu().contiguous());
    const at::Tensor& tensor = kept.back();
    file.tensors.push_back(
        {named.name,
         DType::kF32,
         tensor.sizes().vec(),
         {static_cast<const char*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())}});
  }
  return WriteFileAtomically(workdir, kWeightsName, WriteSafetensors(file));
}

void ReadWeights(const std::filesystem::path& path, const std::string& spec_json,
                 ParameterSet* parameters) {
  const at::NoGradGuard no_grad;
  const std::string text = ReadFile(path);
  SafetensorsFile file;
  try {
    file = ReadSafetensors(text);
  } catch (const TrainerError& error) {
    throw TrainerError(error.kind(), path.string() + ": " + error.what());
  }
  RequireSpec(path, file, spec_json);
  std::set<std::string> known;
  for (const ParameterSet::Named& named : parameters->NamedTensors()) {
    const TensorEntry* const entry = file.Find(named.name);
    if (entry == nullptr) ThrowOther(path, "tensor \"" + named.name + "\" is missing");
    CopyTensor(path, *entry, named.tensor);
    known.insert(named.name);
  }
  for (const TensorEntry& entry : file.tensors) {
    if (known.count(entry.name) == 0) {
      ThrowOther(path, "tensor \"" + entry.name + "\" is none of the model's");
    }
  }
}

}  // namespace pelab::trainer
