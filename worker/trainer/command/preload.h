// Trainers that are forked from a process that has loaded LibTorch already: loading takes half a
// second of processor time, or several seconds with CUDA, and a job of the small size trains for
// not much longer.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pelab::trainer {

// Remembers where the words of the command line are, so that ForkTrainers can replace what /proc
// and `ps` show of a trainer. Call it in main with main's own arguments.
void RememberCommandLine(int argc, char** argv);

// Forks a trainer for each request on the socket `control_fd` (docs/formats.md, "Preloaded
// trainers"), and returns twice: in each trainer with the words of its command line, and in this
// process with nullopt, once the other end of the socket is closed. A trainer is a child of the
// nearest process that adopts orphans, not of this one. Must run on the only thread; a request is
// refused if there are others, because they do not survive a fork. Throws TrainerError(kIo) if the
// socket fails.
std::optional<std::vector<std::string>> ForkTrainers(int control_fd);

}  // namespace pelab::trainer
