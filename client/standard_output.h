// Standard output, with every write checked: a table that a full disk cut off must not pass for
// whole.
#pragma once

#include <string>

namespace pelab::client {

// Unbuffered. After the first error nothing more is written. Not thread-safe.
class StandardOutput {
 public:
  void Write(const std::string& text);

  // Nothing more reaches the reader, and what would take time to write need not be worked out.
  bool failed() const { return error_ != 0; }

  // Call it last, with the exit status that the program would have. Where something could not be
  // written, says so on standard error and returns 1 for a status of 0. A reader that went away
  // (`| head`) has what it wanted: then nothing is said and the status stays.
  int Finish(int status);

 private:
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace pelab::client
