#include "tests/support/cuda_emulation.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/support/fiber.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace pelab::cuda_emulation {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostWarps = kMostThreads / kWarp;
constexpr int kPoison = 0xff;  // a float or bfloat16 made of these bytes is a NaN
constexpr int kCanary = 0x5c;
constexpr std::size_t kCanaryBytes = 64;

struct Waiting {
  const char* name = nullptr;  // the barrier or collective; null: not waiting
  std::source_location where;
  std::uint32_t mask = 0;  // 0: the whole block
  void* operands = nullptr;
};

struct Thread {
  std::unique_ptr<Fiber> fiber;
  unsigned index = 0;
  dim3 coordinates;
  bool left = false;
  Waiting waiting;
};

// Shared memory, filled with poison and with a canary after its end, so that AddressSanitizer sees
// every overrun.
class SharedBytes {
 public:
  explicit SharedBytes(std::size_t bytes) : bytes_(bytes) {
    data_ = static_cast<unsigned char*>(::operator new (Whole(), std::align_val_t{128}));
    std::memset(data_, kPoison, bytes_);
    std::memset(data_ + bytes_, kCanary, Whole() - bytes_);
  }
  ~SharedBytes() { ::operator delete (data_, std::align_val_t{128}); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void Check() const {
    for (std::size_t i = bytes_; i < Whole(); ++i) {
      if (data_[i] != kCanary) {
        throw std::out_of_range("shared memory written past its " + std::to_string(bytes_) +
                                " bytes");
      }
    }
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  std::size_t Whole() const { return bytes_; }
#else
  std::size_t Whole() const { return bytes_ + kCanaryBytes; }
#endif
  std::size_t bytes_;
  unsigned char* data_;
};

class Block {
 public:
  void Run(dim3 shape, std::size_t dynamic_bytes, const std::function<void()>& body);
  void Barrier(std::source_location where);
  void Collective(const char* name, std::uint32_t mask, void* operands, Resolve resolve,
                  std::source_location where);
  void* Shared(const void* tag, std::size_t bytes);
  void* Dynamic() { return dynamic_->data(); }
  unsigned lane() const { return running_->index % kWarp; }

 private:
  static void Body(void* thread);
  void AddThreads(unsigned count);
  void Reset(dim3 shape, std::size_t dynamic_bytes);
  void Schedule();
  void RunThread(Thread* thread);
  void Wait(const Waiting& waiting);
  void Release(unsigned thread);
  [[noreturn]] void Diverged() const;
  std::string Describe(const Thread& thread) const;
  void CheckMeeting(const Thread& other, const Waiting& mine) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  unsigned count_ = 0, alive_ = 0, at_barrier_ = 0;
  // A bit for each lane that waits, warp by warp. Without it, each arriving lane would look at all.
  std::uint32_t waiting_[kMostWarps] = {};
  std::uint32_t order_ = 0;
  Thread* running_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::exception_ptr failure_;
  std::map<const void*, std::unique_ptr<SharedBytes>> shared_;
  std::unique_ptr<SharedBytes> dynamic_;
};

std::unique_ptr<Block> block;

std::string Text(dim3 at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

std::string Text(const Waiting& waiting) {
  std::string file = waiting.where.file_name();
  file = file.substr(file.rfind('/') + 1);
  return std::string(waiting.name) + " at " + file + ":" + std::to_string(waiting.where.line());
}

// Literals of one place have one address.
bool SameText(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

unsigned Volume(dim3 shape) { return shape.x * shape.y * shape.z; }

// Each fiber runs one thread of each block in turn.
void Block::Body(void* argument) {
  auto* const thread = static_cast<Thread*>(argument);
  for (;;) {
    try {
      (*block->body_)();
    } catch (...) {
      block->failure_ = std::current_exception();
    }
    thread->left = true;
    --block->alive_;
    thread->fiber->Suspend();
  }
}

void Block::AddThreads(unsigned count) {
  while (threads_.size() < count) {
    auto thread = std::make_unique<Thread>();
    thread->index = static_cast<unsigned>(threads_.size());
    thread->fiber = std::make_unique<Fiber>(&Block::Body, thread.get());
    threads_.push_back(std::move(thread));
  }
}

void Block::Reset(dim3 shape, std::size_t dynamic_bytes) {
  count_ = alive_ = Volume(shape);
  at_barrier_ = 0;
  AddThreads(count_);
  for (unsigned i = 0; i < count_; ++i) {
    Thread& thread = *threads_[i];
    thread.coordinates = {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)};
    thread.left = false;
    thread.waiting = {};
  }
  std::fill(std::begin(waiting_), std::end(waiting_), 0);
  shared_.clear();
  dynamic_ = std::make_unique<SharedBytes>(dynamic_bytes);
}

void Block::Run(dim3 shape, std::size_t dynamic_bytes, const std::function<void()>& body) {
  body_ = &body;
  Reset(shape, dynamic_bytes);
  Schedule();
  dynamic_->Check();
  std::size_t bytes = dynamic_bytes;
  for (const auto& [tag, variable] : shared_) {
    variable->Check();
    bytes += variable->bytes();
  }
  if (bytes > kMostShared) {
    throw std::invalid_argument("a block uses " + std::to_string(bytes) +
                                " bytes of shared memory");
  }
}

// Runs every thread in turn until it waits or leaves. The first thread and the direction change in
// every round.
void Block::Schedule() {
  while (alive_ > 0) {
    bool moved = false;
    order_ = order_ * 1664525U + 1013904223U;
    const unsigned first = (order_ >> 8) % count_;
    const bool backwards = (order_ >> 31) != 0;
    for (unsigned i = 0, at = first; i < count_; ++i) {
      Thread& thread = *threads_[at];
      at = backwards ? (at == 0 ? count_ : at) - 1 : (at + 1 == count_ ? 0 : at + 1);
      if (thread.left || thread.waiting.name != nullptr) continue;
      moved = true;
      RunThread(&thread);
      if (failure_ != nullptr) std::rethrow_exception(failure_);
    }
    if (!moved) Diverged();
  }
}

void Block::RunThread(Thread* thread) {
  running_ = thread;
  threadIdx = thread->coordinates;
  thread->fiber->Resume();
}

void Block::Wait(const Waiting& waiting) {
  running_->waiting = waiting;
  waiting_[running_->index / kWarp] |= 1U << lane();
  running_->fiber->Suspend();
}

void Block::Release(unsigned thread) {
  threads_[thread]->waiting = {};
  waiting_[thread / kWarp] &= ~(1U << thread % kWarp);
}

std::string Block::Describe(const Thread& thread) const {
  return "thread " + Text(thread.coordinates) +
         (thread.left ? " has left" : " waits for " + Text(thread.waiting));
}

void Block::Diverged() const {
  std::map<std::string, std::pair<unsigned, std::string>> groups;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& thread = *threads_[i];
    auto& [count, first] = groups[thread.left ? "left" : Text(thread.waiting)];
    if (count++ == 0) first = Describe(thread);
  }
  std::string message = "block " + Text(blockIdx) + " diverged:";
  for (const auto& [where, group] : groups) {
    message += " " + group.second;
    if (group.first > 1) message += " (and " + std::to_string(group.first - 1) + " more)";
    message += ";";
  }
  message.pop_back();
  throw Divergence(message);
}

void Block::CheckMeeting(const Thread& other, const Waiting& mine) const {
  const Waiting& theirs = other.waiting;
  if (theirs.where.line() == mine.where.line() && theirs.mask == mine.mask &&
      SameText(theirs.name, mine.name) &&
      SameText(theirs.where.file_name(), mine.where.file_name())) {
    return;
  }
  throw Divergence("block " + Text(blockIdx) + " diverged: " + Describe(other) + "; thread " +
                   Text(running_->coordinates) + " waits for " + Text(mine) +
                   (theirs.mask == mine.mask ? "" : " with another mask"));
}

void Block::Barrier(std::source_location where) {
  const Waiting mine{"__syncthreads", where};
  if (++at_barrier_ < count_) return Wait(mine);
  at_barrier_ = 0;
  for (unsigned i = 0; i < count_; ++i) {
    if (threads_[i].get() != running_) CheckMeeting(*threads_[i], mine);
  }
  for (unsigned i = 0; i < count_; ++i) Release(i);
}

void Block::Collective(const char* name, std::uint32_t mask, void* operands, Resolve resolve,
                       std::source_location where) {
  const Waiting mine{name, where, mask, operands};
  const unsigned first = running_->index / kWarp * kWarp;
  if ((mask >> lane() & 1U) == 0) {
    throw Divergence("thread " + Text(running_->coordinates) + " is not in the mask of " +
                     Text(mine));
  }
  if (const unsigned last = 31 - std::countl_zero(mask); first + last >= count_) {
    throw Divergence("no lane " + std::to_string(last) + " for " + Text(mine));
  }
  if ((mask & ~waiting_[first / kWarp] & ~(1U << lane())) != 0) return Wait(mine);
  void* brought[kWarp] = {};
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) == 0) continue;
    const Thread& thread = *threads_[first + i];
    brought[i] = &thread == running_ ? operands : thread.waiting.operands;
    if (&thread != running_) CheckMeeting(thread, mine);
  }
  if (resolve != nullptr) resolve(brought, mask);
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) != 0) Release(first + i);
  }
}

void* Block::Shared(const void* tag, std::size_t bytes) {
  std::unique_ptr<SharedBytes>& variable = shared_[tag];
  if (variable == nullptr) variable = std::make_unique<SharedBytes>(bytes);
  return variable->data();
}

struct ShuffleOperands {
  std::uint64_t bits;
  unsigned source;
  std::uint64_t result;
};

void ResolveShuffle(void* const lanes[32], std::uint32_t mask) {
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) == 0) continue;
    auto* const mine = static_cast<ShuffleOperands*>(lanes[i]);
    const auto* const source = static_cast<const ShuffleOperands*>(lanes[mine->source]);
    if (source == nullptr) throw Divergence("a shuffle reads a lane outside its mask");
    mine->result = source->bits;
  }
}

struct BallotOperands {
  bool predicate;
  std::uint32_t result;
};

void ResolveBallot(void* const lanes[32], std::uint32_t mask) {
  std::uint32_t votes = 0;
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) != 0 && static_cast<const BallotOperands*>(lanes[i])->predicate) {
      votes |= 1U << i;
    }
  }
  for (unsigned i = 0; i < kWarp; ++i) {
    if ((mask >> i & 1U) != 0) static_cast<BallotOperands*>(lanes[i])->result = votes;
  }
}

}  // namespace

void RunGrid(Dim3 grid, Dim3 shape, std::size_t dynamic_shared_bytes,
             const std::function<void()>& thread) {
  if (Volume(shape) == 0 || Volume(shape) > kMostThreads || grid.x == 0 || grid.y == 0 ||
      grid.z == 0 || grid.y > 65535 || grid.z > 65535) {
    throw std::invalid_argument("grid " + Text(grid) + ", block " + Text(shape));
  }
  if (block == nullptr) block = std::make_unique<Block>();
  gridDim = grid;
  blockDim = shape;
  try {
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          block->Run(shape, dynamic_shared_bytes, thread);
        }
      }
    }
  } catch (...) {
    block.reset();  // its threads are still in the middle of the kernel
    throw;
  }
}

void* SharedVariable(const void* tag, std::size_t bytes) { return block->Shared(tag, bytes); }
void* DynamicShared() { return block->Dynamic(); }
void BlockBarrier(std::source_location where) { block->Barrier(where); }
void WarpCollective(const char* name, std::uint32_t mask, void* operands, Resolve resolve,
                    std::source_location where) {
  block->Collective(name, mask, operands, resolve, where);
}
unsigned Lane() { return block->lane(); }

std::uint64_t Shuffle(const char* name, std::uint32_t mask, std::uint64_t bits, unsigned source,
                      std::source_location where) {
  ShuffleOperands operands{bits, source, 0};
  WarpCollective(name, mask, &operands, &ResolveShuffle, where);
  return operands.result;
}

std::uint32_t Ballot(const char* name, std::uint32_t mask, bool predicate,
                     std::source_location where) {
  BallotOperands operands{predicate, 0};
  WarpCollective(name, mask, &operands, &ResolveBallot, where);
  return operands.result;
}

}  // namespace pelab::cuda_emulation
