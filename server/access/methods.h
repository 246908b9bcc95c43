// The role that each method needs, read from the options of the generated descriptors.
#pragma once

#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pelab/v1/access.pb.h"

namespace pelab::access {

// Immutable after Build, so thread-safe.
class Methods {
 public:
  struct Method {
    std::string name;  // "Sweeps/Submit"
    v1::Needs needs;
    bool streams = false;  // its answer is a stream, which may stay open
  };

  // FAILED_PRECONDITION names the method if one has no option (pelab.v1.needs): a new method must
  // not be open to everybody by oversight.
  static absl::StatusOr<Methods> Build();

  // By path: "/pelab.v1.Sweeps/Submit". Null if no service of pelab has it.
  const Method* Find(absl::string_view path) const;
  const std::unordered_map<std::string, Method>& all() const { return methods_; }

 private:
  std::unordered_map<std::string, Method> methods_;
};

}  // namespace pelab::access
