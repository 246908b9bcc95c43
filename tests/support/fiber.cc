#include "tests/support/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace pelab {
namespace {

constexpr std::size_t kGuard = 4096;
// Stacks begin at different lines of the cache: mappings begin at pages, and the tops of many
// stacks would be in one set of the cache.
constexpr std::size_t kLine = 64, kLines = kGuard / kLine;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStack = 512 * 1024;  // sanitized frames are several times as large
#else
constexpr std::size_t kStack = 128 * 1024;
#endif

Fiber* starting = nullptr;

// Switches from the current stack to the stack of `to`. Stores the state of the current stack in
// *from.
#if defined(__x86_64__)
// swapcontext would enter the kernel twice per switch for the signal mask. Saving the registers
// that calls preserve is enough.
asm(R"(
.text
.align 16
.type PelabSwitchStacks,@function
PelabSwitchStacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size PelabSwitchStacks,.-PelabSwitchStacks
)");
extern "C" void PelabSwitchStacks(void** from, void* to);

void Switch(void** from, void* to) { PelabSwitchStacks(from, to); }

void* FirstState(char* bottom, std::size_t size, void (*start)()) {
  auto* top = reinterpret_cast<std::uintptr_t*>(bottom + size) -
              1;  // after a call the stack pointer is 8 below a multiple of 16
  *top = 0;       // no return address
  *--top = reinterpret_cast<std::uintptr_t>(start);
  for (int i = 0; i < 6; ++i) *--top = 0;
  return top;
}
void Forget(void*) {}
#else
void Switch(void** from, void* to) {
  if (*from == nullptr) *from = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(*from), static_cast<ucontext_t*>(to));
}

void* FirstState(char* bottom, std::size_t size, void (*start)()) {
  auto* const context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = size;
  context->uc_link = nullptr;
  makecontext(context, start, 0);
  return context;
}
void Forget(void* state) { delete static_cast<ucontext_t*>(state); }
#endif

}  // namespace

Fiber::Fiber(void (*body)(void*), void* argument)
    : body_(body), argument_(argument), mapped_(kGuard + kStack) {
  mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED || mprotect(mapping_, kGuard, PROT_NONE) != 0) throw std::bad_alloc();
  bottom_ = static_cast<char*>(mapping_) + kGuard;
  static std::size_t made = 0;
  size_ = kStack - made++ % kLines * kLine;
  inside_ = FirstState(bottom_, size_, &Fiber::Start);
}

Fiber::~Fiber() {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(bottom_, size_);
#endif
  munmap(mapping_, mapped_);
  Forget(inside_);
  Forget(outside_);
}

void Fiber::Start() { starting->Enter(); }

void Fiber::Enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_size_);
#endif
  body_(argument_);
  __builtin_trap();
}

void Fiber::Resume() {
  starting = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_outside_, bottom_, size_);
#endif
  Switch(&outside_, inside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
}

void Fiber::Suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_inside_, outside_bottom_, outside_size_);
#endif
  Switch(&inside_, outside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_inside_, &outside_bottom_, &outside_size_);
#endif
}

}  // namespace pelab
