#pragma once

namespace pelab {

// Opens /dev/null on each of descriptors 0, 1 and 2 that is closed. Otherwise the next file that
// the program opens, perhaps its database, would get that number, and text for standard output or
// standard error would be written into it. Reads and writes on a descriptor that was closed still
// fail (EBADF). Call it first in main, before anything opens a file.
void OpenClosedStandardDescriptors();

// Writes out what std::cout and stdout hold. Returns `status`; where something could not be
// written, says so on standard error in the name of `program` and returns 1 for a status of 0. A
// reader that went away (`| head`) has what it wanted.
int FlushStandardOutput(const char* program, int status);

}  // namespace pelab
