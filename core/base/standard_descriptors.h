// Descriptors 0, 1 and 2.
#pragma once

namespace pelab {

// Opens /dev/null for those of descriptors 0, 1 and 2 that are closed: else the next file that the
// program opens, its database maybe, would get the number, and what is meant for standard output or
// standard error would be written into it. Reading from or writing to a descriptor that was closed
// still fails (EBADF). Call it first in main, before anything opens a file.
void OpenClosedStandardDescriptors();

// Writes out what std::cout and stdout hold. Returns `status`; where something could not be
// written, says so on standard error in the name of `program` and returns 1 for a status of 0. A
// reader that went away (`| head`) has what it wanted.
int FlushStandardOutput(const char* program, int status);

}  // namespace pelab
