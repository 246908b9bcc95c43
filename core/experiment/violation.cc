#include "core/experiment/violation.h"

#include <string>

namespace pelab::experiment {

std::string Format(const Violation& violation, std::string_view file_name) {
  if (violation.line > 0) {
    return std::string(file_name) + ":" + std::to_string(violation.line) + ":" +
           std::to_string(violation.column) + ": " + violation.message;
  }
  const bool from_command_line = violation.path.rfind("--", 0) == 0;
  return from_command_line ? violation.path + ": " + violation.message : violation.message;
}

}  // namespace pelab::experiment
