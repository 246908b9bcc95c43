// A fiber: code with a stack of its own that runs and pauses by explicit switches. AddressSanitizer
// knows about the switches.
#pragma once

#include <cstddef>

namespace pelab {

// Not thread-safe: all fibers of a program run on the thread that made them, and no fiber runs
// inside another.
class Fiber {
 public:
  // Runs body(argument) on the first Resume. `body` must not return and must not let an exception
  // out.
  Fiber(void (*body)(void*), void* argument);
  ~Fiber();  // the objects on the stack are dropped without destructors
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Call from outside: runs the fiber until it suspends itself.
  void Resume();
  // Call from inside the fiber.
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
  // Stack pointers of each side while the other one runs.
  void* inside_ = nullptr;
  void* outside_ = nullptr;
  // AddressSanitizer's data about both stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace pelab
