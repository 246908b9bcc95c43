#pragma once

namespace pelab {

// Opens /dev/null on each of descriptors 0, 1 and 2 that is closed. Otherwise the next file that
// the program opens, perhaps its database, would get that number, and text for standard output or
// standard error would be written into it. Reads and writes on a descriptor that was closed still
// fail (EBADF). Call it first in main, before anything opens a file.
void OpenClosedStandardDescriptors();

}  // namespace pelab
