// Converts a NumPy archive (numpy.savez) of data into a safetensors file. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pelab::own_files {

// The bytes of the safetensors file. Arrays of integers become tensors of the same names. An array
// of texts named `split` becomes numbers, with the names as metadata `splits`. Other texts, single
// numbers and lists of texts become metadata: name="parity", classes=2, class_names=["even",
// "odd"]. INVALID_ARGUMENT with a sentence that names the path.
absl::StatusOr<std::string> ConvertNpz(const std::string& path);

}  // namespace pelab::own_files
