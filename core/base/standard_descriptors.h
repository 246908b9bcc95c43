#pragma once

#include <cstdint>

namespace pelab {

// Opens /dev/null on each of descriptors 0, 1 and 2 that is closed. Otherwise the next file that
// the program opens, perhaps its database, would get that number, and text for standard output or
// standard error would be written into it. Reads and writes on a descriptor that was closed still
// fail (EBADF). Call it first in main, before anything opens a file.
void OpenClosedStandardDescriptors();

// Raises the number of files that this process may have open to the most that it is allowed to ask
// for (the soft limit RLIMIT_NOFILE to the hard one). Returns the number that now holds; 0 if it is
// not known. Processes that are started later inherit it.
std::uint64_t RaiseDescriptorLimit();

// Flushes std::cout and stdout, and returns `status`. Call it right after the last output: errno
// then names the reason of a failure. If something could not be written, reports that on standard
// error in the name of `program` and returns 1 in place of 0. A reader that went away (`| head`) is
// no error.
int FlushStandardOutput(const char* program, int status);

}  // namespace pelab
