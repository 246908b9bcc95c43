#include "worker/trainer/command/failure.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <new>

#include "worker/trainer/parameters/torch_compat.h"

namespace pelab::trainer {
namespace {

// The place in LibTorch's sources and the condition that failed there mean nothing to a person:
// "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: …".
std::string WithoutPlace(const std::string& text) {
  if (text.rfind("[enforce fail at ", 0) != 0) return text;
  const std::size_t end = text.find(". ", text.find(']'));
  return end == std::string::npos ? text : text.substr(end + 2);
}

// LibTorch says of CUDA how much was asked and how much is free, of the host what was asked alone.
std::string WithFree(const std::string& text) {
  const std::int64_t free = FreeHostBytesAtPeak();
  if (free < 0 || text.find("CUDA") != std::string::npos) return text;
  return text + (text.back() == '.' ? " " : "; ") + std::to_string(free) + " bytes were free";
}

// LibTorch says it in many words, several lines of them.
Failure FromLibTorch(std::string text) {
  text = WithoutPlace(text.substr(0, text.find('\n')));
  for (const char* const sign : {"out of memory", "not enough memory", "can't allocate memory"}) {
    if (text.find(sign) != std::string::npos) return {ErrorKind::kOutOfMemory, WithFree(text)};
  }
  return {ErrorKind::kInternal, text};
}

}  // namespace

Failure CurrentFailure() {
  try {
    throw;
  } catch (const TrainerError& error) {
    return {error.kind(), error.what()};
  } catch (const c10::Error& error) {
    return FromLibTorch(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kOutOfMemory, WithFree("out of memory on the host")};
  } catch (const std::exception& error) {
    return FromLibTorch(error.what());
  }
}

void ReportToPerson(const Failure& failure) {
  std::cerr << "pelab-trainer: " << failure.message << "\n";
}

}  // namespace pelab::trainer
