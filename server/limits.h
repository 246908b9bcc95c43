// The coordinator's limits: what one request, worker, stream or import may take of it. Above a limit a
// request is refused, or a text is cut, as each line says. core/rpc/channel.h bounds a message;
// core/experiment/sweep.h bounds a sweep.
#pragma once

#include <cstddef>

namespace pelab::limits {

// Requests of clients.
inline constexpr int kAnalysesOfRequest = 64;  // analyses that one Analyze names
inline constexpr int kJobsOfRequest = 10'000;  // jobs that one Analyze names
inline constexpr int kReasonsOfAnswer = 20;    // reasons why jobs get no analyses, in one answer
inline constexpr std::size_t kSeedsBytes = 64 << 10;  // bytes of the seeds of one Extend
inline constexpr int kExtensions = 1000;              // times that one sweep may be extended
inline constexpr std::size_t kNoteBytes = 4096;       // bytes of a sweep's note
inline constexpr int kPreviewJobs = 10'000;           // jobs that one Preview lists
inline constexpr int kRunningOfUpdate = 64;           // running jobs in one SweepUpdate

// Streams and threads that clients hold.
inline constexpr std::size_t kWatchers = 1024;  // streams that watch sweeps
inline constexpr int kLogFollowers = 64;        // streams that follow logs; each holds a thread
inline constexpr int kDownloads = 64;           // files being sent; each holds a thread
inline constexpr int kBackups =
    2;  // backups under way; each holds a thread and a copy of the database on disk
inline constexpr int kImports = 4;  // imports under way; each holds a thread and a job in memory

// Imports.
inline constexpr std::size_t kImportedJobBytes = 64 << 20;   // bytes of a job, without its files
inline constexpr std::size_t kImportedPieceBytes = 1 << 20;  // bytes of a piece of a file
inline constexpr int kImportedKeys = 1000;                   // keys of one CheckImport
inline constexpr int kImportedCells = 10'000;                // cells of one message
inline constexpr std::size_t kImportedNameBytes = 256;       // bytes of a file's name

// Workers.
inline constexpr int kSlotsOfWorker = 1024;          // slots of one worker
inline constexpr int kJobsOfPack = 64;               // jobs that one slot trains together
inline constexpr std::size_t kLoadsOfWorker = 64;    // GPUs of one worker whose load is kept
inline constexpr std::size_t kDeviceNameBytes = 64;  // bytes of the name of a device ("cuda:0")
inline constexpr std::size_t kCapabilitiesBytes = 1
                                                  << 20;  // bytes of what a trainer says of itself
inline constexpr std::size_t kErrorBytes =
    16 << 10;  // bytes of an error or a warning; longer ones are cut
inline constexpr std::size_t kLogPartBytes = 64 << 10;  // bytes of one part of a log
inline constexpr std::size_t kOutgoingBytes =
    16 << 20;  // bytes that wait for a worker that does not read
inline constexpr std::size_t kDrainedBytes =
    256 << 20;                               // bytes that are read of an upload after its answer
inline constexpr int kLayersOrHeads = 4096;  // layers, and heads of a layer, of an ablation matrix

// HTTP.
inline constexpr std::size_t kHttpBodyBytes = 64 << 10;  // bytes of the body of a request
inline constexpr std::size_t kEventsWaiting = 64;        // events that wait for one browser
inline constexpr std::size_t kEventsWaitingBytes =
    32 << 20;  // bytes of these, if there is more than one

}  // namespace pelab::limits
