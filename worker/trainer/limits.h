// The trainer's limits: what it accepts, how much memory it aims at, and how long it tries. The
// largest sizes that single kernels support stand beside the kernels, and the ranges of fields in
// core/catalog.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pelab::trainer::limits {

// Command line.
inline constexpr std::int64_t kMembers = 64;  // jobs that one trainer runs together
// Examples in --micro-batch; no batch is larger
inline constexpr std::int64_t kMicroBatch = std::int64_t{1} << 30;

// Files and output.
// Bytes of one line of events; the worker reads no longer line (worker/agent/limits.h)
inline constexpr std::size_t kLineBytes = std::size_t{1} << 20;
// Removals in the result of a cumulative ablation, so that its file stays below the size that a
// worker reads
inline constexpr std::int64_t kRemovals = 100'000;

// Data sets.
// Draws for one example before generation fails. With 100, failing by chance is practically
// impossible unless most sequences are already taken.
inline constexpr std::uint64_t kDraws = 100;

// Memory.
// Bytes of activations of one micro-batch on a CPU, unless --micro-batch says otherwise. Another
// value adds gradients in another order: the results of new jobs would differ in the last bits.
inline constexpr std::int64_t kActivationBytes = std::int64_t{256} << 20;
// Bytes of activations that an evaluation holds at once, on a CPU and on a GPU
inline constexpr std::int64_t kCpuChunkBytes = std::int64_t{16} << 20;
inline constexpr std::int64_t kGpuChunkBytes = std::int64_t{512} << 20;
inline constexpr std::int64_t kChunkExamples = 1024;  // examples that it evaluates at once

// Evaluation of the training examples after each epoch: a tenth of them, between these numbers, so
// that it takes a few percent of the training. Other numbers change train_eval_accuracy.
inline constexpr std::int64_t kLeastFitExamples = 250;
inline constexpr std::int64_t kMostFitExamples = 1000;

// Sections, into which a batch is divided by length.
inline constexpr std::int64_t kSections = 8;               // sections of a batch
inline constexpr std::int64_t kLeastSectionExamples = 32;  // fewer do not fill a device

}  // namespace pelab::trainer::limits
