// An environment variable that has another value until the end of a test.
#pragma once

#include <stdlib.h>

#include <optional>
#include <string>

namespace pelab {

// Without a value the variable is not set. Its former value comes back in the end.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = getenv(name); before != nullptr) before_ = before;
    Set(value);
  }
  ~Variable() { Set(before_); }

 private:
  void Set(const std::optional<std::string>& value) {
    if (value) {
      setenv(name_, value->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace pelab
