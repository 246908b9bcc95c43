// A thread of control of its own stack, switched to and from by hand. AddressSanitizer knows about the switches.
#pragma once

#include <cstddef>

namespace pelab {

// Not thread-safe: all fibers of a program run on the thread that made them, none inside another.
class Fiber {
 public:
  // Runs body(argument) when first resumed. `body` must not return and must not let an exception out.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();  // what the stack holds is dropped without destructors
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs until the fiber suspends itself.
  void Resume();
  // From inside.
  void Suspend();

 private:
  static void Start();
  void Enter();

  void (*body_)(void*);
  void* argument_;
  void* mapping_ = nullptr;  // a guard page, then the stack
  std::size_t mapped_ = 0;
  char* bottom_ = nullptr;
  std::size_t size_ = 0;
  // Where both sides stand while the other runs.
  void* inside_ = nullptr;
  void* outside_ = nullptr;
  // AddressSanitizer's view of both stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace pelab
