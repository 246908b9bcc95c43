// The worker's limits: how much it accepts, keeps in memory and writes to disk. Other limits are
// options of pelab-worker (`--spool-quota`).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pelab::agent::limits {

// Messages to the coordinator.
inline constexpr std::size_t kBatchBytes = 256 << 10;  // bytes of the events in one message
// Bytes of an error or a warning; longer ones are cut, as the coordinator does it
inline constexpr std::size_t kErrorBytes = 16 << 10;
inline constexpr std::size_t kMessagesOut = 4;  // messages that wait to be sent
inline constexpr std::size_t kMessagesIn = 64;  // messages that wait to be handled
// Bytes of what `pelab-trainer capabilities` prints; sent in the worker's first message
inline constexpr std::size_t kCapabilitiesBytes = 256 << 10;

// Output of trainers.
inline constexpr std::size_t kLineBytes = 1 << 20;       // bytes of one line
inline constexpr std::size_t kLogFileBytes = 256 << 10;  // bytes of one of the two files of a log
inline constexpr std::size_t kLogPendingBytes = 256 << 10;  // bytes of a log that wait to be sent

// Files.
inline constexpr std::uint32_t kSpooledEventBytes = 16 << 20;  // bytes of one event in a spool
// Bytes of the header of a checkpoint
inline constexpr std::uint64_t kCheckpointHeaderBytes = 4 << 20;
inline constexpr std::size_t kRecordBytes = 4 << 20;  // bytes of a record in the working directory
// Bytes that are read of the environment of a process
inline constexpr std::size_t kEnvironmentBytes = 8 << 20;

}  // namespace pelab::agent::limits
