#pragma once

namespace pelab {

// Opens /dev/null on each of descriptors 0, 1 and 2 that is closed. Otherwise the next file that
// the program opens, perhaps its database, would get that number, and text for standard output or
// standard error would be written into it. Reads and writes on a descriptor that was closed still
// fail (EBADF). Call it first in main, before anything opens a file.
void OpenClosedStandardDescriptors();

// Flushes std::cout and stdout, and returns `status`. Call it right after the last output: errno then
// names the reason of a failure. If something could not be written, it says so on standard error in
// the name of `program` and returns 1 in place of 0. A reader that went away (`| head`) is no error.
int FlushStandardOutput(const char* program, int status);

}  // namespace pelab
