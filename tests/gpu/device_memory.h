// The memory of an emulated device, which counts what kernels read and write. It sees the accesses
// of sources that are compiled with -fsanitize=thread: the compiler then calls a function before
// each access, and device_memory.cc has these functions in place of ThreadSanitizer's library.
// For one launch at a time. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace pelab::gpu {

struct Traffic {
  // Bytes that a launch read or wrote, each counted once. The memory of a device moves at least
  // these.
  std::int64_t read = 0, written = 0;
  // The same, but a byte counts once for each block that accesses it: what blocks ask of the
  // caches that they share.
  std::int64_t read_by_blocks = 0, written_by_blocks = 0;
};

class DeviceMemory {
 public:
  // There is one at a time.
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // `count` elements, all zero, at an address that is aligned to 256 bytes, as cudaMalloc's.
  // Throws std::length_error if the memory is full.
  template <class Element>
  Element* Array(std::int64_t count) {
    return static_cast<Element*>(Take(static_cast<std::size_t>(count) * sizeof(Element)));
  }

  // Forgets what was counted.
  void Reset();
  const Traffic& traffic() const { return traffic_; }

  // Called for each access of instrumented code, to whatever memory. Most accesses are to shared
  // memory or to a thread's own, and end here.
  void Read(const void* at, std::size_t bytes) {
    if (const std::size_t begin = Begin(at); begin < size_) CountRead(begin, bytes);
  }
  void Write(const void* at, std::size_t bytes) {
    if (const std::size_t begin = Begin(at); begin < size_) CountWritten(begin, bytes);
  }

 private:
  // When a byte was last accessed.
  struct Seen {
    std::uint32_t launch = 0, block = 0;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  // Zeros, in pages that are there only if they are used.
  template <class Element>
  using Zeros = std::unique_ptr<Element[], Free>;
  template <class Element>
  static Zeros<Element> MakeZeros(std::size_t count);

  // The offset of `at` from first_. It is above size_ for an address below first_.
  std::size_t Begin(const void* at) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - first_);
  }
  void* Take(std::size_t bytes);
  void CountRead(std::size_t begin, std::size_t bytes);
  void CountWritten(std::size_t begin, std::size_t bytes);
  void Count(std::size_t begin, std::size_t bytes, Seen* seen, std::int64_t& once,
             std::int64_t& by_blocks);

  Zeros<std::byte> whole_;
  std::byte* const first_;
  std::size_t const size_;
  std::size_t taken_ = 0;
  std::uint32_t launch_ = 1;
  Zeros<Seen> read_, written_;
  Traffic traffic_;
};

}  // namespace pelab::gpu
