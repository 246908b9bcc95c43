// Standard output with every write checked. Without the check, a table that a full disk cut short
// would look complete.
#pragma once

#include <string>

namespace pelab::client {

// Writes without a buffer. Writes nothing more after the first error. Not thread-safe.
class StandardOutput {
 public:
  void Write(const std::string& text);

  // True after an error: nothing more reaches the reader, so callers can skip expensive work.
  bool failed() const { return error_ != 0; }

  // Call it last, with the program's intended exit status. If something could not be written, it
  // says so on standard error and returns 1 in place of 0. A reader that closed the pipe early
  // (`| head`) is no error: nothing is said and the status stays.
  int Finish(int status);

 private:
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace pelab::client
