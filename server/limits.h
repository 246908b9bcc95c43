// The coordinator's limits on one request, worker, stream or import. Above a limit, a request is
// refused or a text is cut, as each line says. core/rpc/channel.h bounds a message;
// core/experiment/sweep.h bounds a sweep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pelab::limits {

// Requests of clients.
inline constexpr int kAnalysesOfRequest = 64;  // analyses that one Analyze names
inline constexpr int kJobsOfRequest = 10'000;  // jobs that one Analyze names
inline constexpr int kReasonsOfAnswer = 20;    // reasons why jobs get no analyses, in one answer
inline constexpr std::size_t kSeedsBytes =
    64 << 10;  // bytes of the seeds of one Extend, and of all Extends of a sweep
inline constexpr int kSlotsOfSheet = 100'000;        // slots that a sheet's rounds are made for
inline constexpr int kExtensions = 1000;             // times that one sweep may be extended
inline constexpr std::size_t kNoteBytes = 4096;      // bytes of a sweep's note
inline constexpr std::size_t kFileNameBytes = 4096;  // bytes of the name of a document's file
inline constexpr std::size_t kOverridesBytes =
    1 << 20;                            // bytes of the overrides of a document, stored as JSON
inline constexpr int kFileUploads = 8;  // files of documents being received; each holds a thread
inline constexpr std::size_t kFilePieceBytes = 1 << 20;  // bytes of a piece of such a file
inline constexpr int kPreviewJobs = 10'000;              // jobs that one Preview lists
inline constexpr int kRunningOfUpdate = 64;              // running jobs in one SweepUpdate

// Principals.
inline constexpr int kPrincipals = 10'000;
inline constexpr std::size_t kAuditTextBytes = 512;  // bytes of a text of an audit row; cut
inline constexpr std::size_t kTraceIdBytes = 64;     // bytes of a trace id; longer ones are cut
inline constexpr int kRefusalsRecorded = 10;         // refusals a second with rows of their own
inline constexpr double kCallsPerSecond = 50;        // of one reader, submitter or scaler
inline constexpr double kCallsAtOnce = 200;          // that it may make at once
inline constexpr int kStreamsOfPrincipal = 8;        // streams that a reader or submitter has open

// Queues of pelab-scale, and what it reports of them.
inline constexpr int kQueues = 100;
inline constexpr int kReportedAllocations = 20'000;       // of all queues; more are not kept
inline constexpr std::size_t kAllocationTextBytes = 128;  // bytes of a text of an allocation; cut
inline constexpr std::size_t kPauseReasonBytes = 1000;    // bytes of the reason of a pause

// Requests that take turns (server/turns.h). Of documents, and of pages that are not small, as many
// are read at once as there are pairs of processors.
inline constexpr int kRowsOfSmallPage = 1000;        // rows of a small page
inline constexpr int kPagesAtOnce = 16;              // small pages that are read at once
inline constexpr int kHttpAnswersAtOnce = 4;         // answers of the pages' API made at once
inline constexpr std::size_t kRequestsWaiting = 64;  // requests of a kind that wait for a turn

// Streams and threads that clients hold.
inline constexpr std::size_t kWatchers = 1024;  // streams that watch sweeps
inline constexpr int kLogFollowers = 64;        // streams that follow logs; each holds a thread
inline constexpr int kDownloads = 64;           // files being sent; each holds a thread
inline constexpr int kUploads = 64;             // files being received; each holds a thread
inline constexpr int kBackups =
    2;  // backups under way; each holds a thread and a copy of the database on disk
inline constexpr int kImports = 4;  // imports under way; each holds a thread and a job in memory

// Imports.
inline constexpr std::size_t kImportedJobBytes = 64 << 20;   // bytes of a job, without its files
inline constexpr std::size_t kImportedPieceBytes = 1 << 20;  // bytes of a piece of a file
inline constexpr int kImportedKeys = 1000;                   // keys of one CheckImport
inline constexpr int kImportedCells = 10'000;                // cells of one message
inline constexpr std::size_t kImportedTextBytes = 1 << 20;   // bytes of a JSON text of a row
inline constexpr std::size_t kLabelBytes = 1024;             // bytes of a label or a device

// Workers.
inline constexpr std::size_t kAttemptsInMemory = 20'000;  // whose rows the store keeps
inline constexpr int kSlotsOfWorker = 1024;               // slots of one worker
inline constexpr int kJobsOfPack = 64;                    // jobs that one slot trains together
// Attempts that a hello or a heartbeat names: all that a worker may run, and as many ended ones.
inline constexpr int kHeldOfWorker = 2 * kSlotsOfWorker * kJobsOfPack;
inline constexpr std::size_t kLoadsOfWorker = 64;    // GPUs of one worker whose load is kept
inline constexpr std::size_t kErrorsOfWorker = 64;   // kinds of errors of its GPUs that are kept
inline constexpr std::size_t kDeviceNameBytes = 64;  // bytes of the name of a device ("cuda:0")
inline constexpr int kWorkers = 10'000;  // known workers; beyond, those that left no attempt go
inline constexpr std::size_t kWorkerIdBytes = 128;    // bytes of a worker's id
inline constexpr std::size_t kWorkerNameBytes = 256;  // bytes of a worker's name
inline constexpr int kFeaturesOfWorker = 256;         // names of features in a worker's hello
inline constexpr std::size_t kHostBytes = 256;        // bytes of the name of its host
inline constexpr std::size_t kVersionBytes = 64;      // bytes of the version of its pelab
inline constexpr std::size_t kDeviceTextBytes =
    256;  // bytes of what a device is called; longer texts are cut
inline constexpr std::size_t kCapabilitiesBytes = 1 << 20;  // bytes of a worker's capabilities_json
inline constexpr std::size_t kErrorBytes =
    16 << 10;  // bytes of an error or a warning; longer ones are cut
inline constexpr std::size_t kLogPartBytes = 64 << 10;  // bytes of one part of a log
// Bytes of a log before one of its parts; parts further on are dropped. Databases have no larger
// integers than 2^63 - 1, so that the end of a part is one too.
inline constexpr std::uint64_t kLogOffset = std::uint64_t{1} << 62;
inline constexpr std::size_t kOutgoingBytes =
    8 << 20;  // bytes that wait for a worker that does not read
// Bytes of a worker's events and logs that wait for the disk. Above it, the worker is not read.
inline constexpr std::size_t kUnstoredBytes = 256 << 10;
inline constexpr int kFilesOfAttempt = 16;  // files of one attempt that no event names yet
inline constexpr int kCheckpointsOfAttempt =
    12;  // the same for its checkpoints: fewer, so that its weights find room
inline constexpr std::size_t kDrainedBytes =
    256 << 20;  // bytes that are read of an upload after its answer

// Connections, and what gRPC may use for all of them together. docs/security.md lists them.
inline constexpr int kOwnDescriptors = 64;  // descriptors that connections leave free for files
inline constexpr int kRpcThreads = 512;     // threads that answer calls; further calls are refused
inline constexpr std::size_t kRpcBytes = 768 << 20;    // bytes of messages being read or sent
inline constexpr std::size_t kHealthBytes = 16 << 20;  // the same at the address of --health
// Connections to the address of --health: how long one lives, and how many are open.
inline constexpr int kHealthConnectionMs = 5'000;
inline constexpr int kHealthGraceMs = 1'000;  // for a check that is under way at the end
inline constexpr std::size_t kHealthConnections = 256;
inline constexpr std::size_t kHealthOfAddress = 64;
inline constexpr std::size_t kUntakenBytes = 128 << 20;  // bytes of answers that nobody takes
inline constexpr int kStreamsOfConnection = 256;         // calls that one connection has open

// HTTP.
inline constexpr std::size_t kHttpBodyBytes = 64 << 10;  // bytes of the body of a request
inline constexpr std::size_t kEventsWaiting = 64;        // events that wait for one browser
inline constexpr std::size_t kEventsWaitingBytes =
    32 << 20;  // bytes of these events, if more than one waits

}  // namespace pelab::limits
