#include "tests/gpu/device_memory.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "tests/support/cuda_emulation.h"

namespace pelab::gpu {
namespace {

constexpr std::size_t kAlignment = 256;

DeviceMemory* present = nullptr;

std::byte* Aligned(std::byte* at) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(at) % kAlignment;
  return beyond == 0 ? at : at + (kAlignment - beyond);
}

// The number of the running block, from 1 on.
std::uint32_t BlockNumber() {
  return 1 + blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

}  // namespace

template <class Element>
DeviceMemory::Zeros<Element> DeviceMemory::MakeZeros(std::size_t count) {
  void* const zeros = std::calloc(count, sizeof(Element));
  if (zeros == nullptr) throw std::bad_alloc();
  return Zeros<Element>(static_cast<Element*>(zeros));
}

DeviceMemory::DeviceMemory(std::size_t bytes)
    : whole_(MakeZeros<std::byte>(bytes + kAlignment)),
      first_(Aligned(whole_.get())),
      size_(bytes),
      read_(MakeZeros<Seen>(bytes)),
      written_(MakeZeros<Seen>(bytes)) {
  present = this;
}

DeviceMemory::~DeviceMemory() { present = nullptr; }

void* DeviceMemory::Take(std::size_t bytes) {
  if (bytes > size_ - taken_) throw std::length_error("the emulated device has too little memory");
  std::byte* const at = first_ + taken_;
  taken_ = std::min(size_, taken_ + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return at;
}

void DeviceMemory::Reset() {
  ++launch_;
  traffic_ = {};
}

void DeviceMemory::Count(std::size_t begin, std::size_t bytes, Seen* seen, std::int64_t& once,
                         std::int64_t& by_blocks) {
  const std::uint32_t block = BlockNumber();
  for (std::size_t i = begin; i < std::min(begin + bytes, size_); ++i) {
    if (seen[i].launch != launch_) {
      seen[i] = {launch_, 0};
      ++once;
    }
    if (seen[i].block == block) continue;
    seen[i].block = block;
    ++by_blocks;
  }
}

void DeviceMemory::CountRead(std::size_t begin, std::size_t bytes) {
  Count(begin, bytes, read_.get(), traffic_.read, traffic_.read_by_blocks);
}

void DeviceMemory::CountWritten(std::size_t begin, std::size_t bytes) {
  Count(begin, bytes, written_.get(), traffic_.written, traffic_.written_by_blocks);
}

}  // namespace pelab::gpu

// The compiler calls these functions under -fsanitize=thread.
// NOLINTBEGIN(bugprone-reserved-identifier)
using pelab::gpu::present;
#define PELAB_ACCESSES(bytes)                          \
  void __tsan_read##bytes(void* at) {                  \
    if (present != nullptr) present->Read(at, bytes);  \
  }                                                    \
  void __tsan_write##bytes(void* at) {                 \
    if (present != nullptr) present->Write(at, bytes); \
  }                                                    \
  void __tsan_unaligned_read##bytes(void* at) {        \
    if (present != nullptr) present->Read(at, bytes);  \
  }                                                    \
  void __tsan_unaligned_write##bytes(void* at) {       \
    if (present != nullptr) present->Write(at, bytes); \
  }
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** /*at*/, void* /*value*/) {}
PELAB_ACCESSES(1)
PELAB_ACCESSES(2)
PELAB_ACCESSES(4)
PELAB_ACCESSES(8)
PELAB_ACCESSES(16)
void __tsan_read_range(void* at, std::size_t bytes) {
  if (present != nullptr) present->Read(at, bytes);
}
void __tsan_write_range(void* at, std::size_t bytes) {
  if (present != nullptr) present->Write(at, bytes);
}
}
// NOLINTEND(bugprone-reserved-identifier)
