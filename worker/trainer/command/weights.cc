#include "worker/trainer/command/weights.h"

#include <ATen/ATen.h>

#include <vector>

#include "worker/trainer/protocol/safetensors.h"

namespace pelab::trainer {

FileInfo WriteWeights(const std::filesystem::path& workdir, const std::string& spec_json,
                      const ParameterSet& parameters) {
  SafetensorsFile file;
  file.metadata = {{"spec", spec_json}};
  std::vector<at::Tensor> kept;  // the file borrows their bytes
  for (const ParameterSet::Named& named : parameters.NamedTensors()) {
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

}  // namespace pelab::trainer
