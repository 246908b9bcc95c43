#include "worker/trainer/command/failure.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <new>

#include "worker/trainer/parameters/torch_compat.h"

namespace pelab::trainer {
namespace {

// Removes the source location and the failed condition of LibTorch's messages, which mean nothing
// to a user:
// "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: …".
std::string WithoutPlace(const std::string& text) {
  if (text.rfind("[enforce fail at ", 0) != 0) return text;
  const std::size_t end = text.find(". ", text.find(']'));
  return end == std::string::npos ? text : text.substr(end + 2);
}

// For CUDA, LibTorch reports the requested and the free memory; for the host, only the requested.
// This adds the free memory.
std::string WithFree(const std::string& text) {
  const std::int64_t free = FreeHostBytesAtPeak();
  if (free < 0 || text.find("CUDA") != std::string::npos) return text;
  return text + (text.back() == '.' ? " " : "; ") + std::to_string(free) + " bytes were free";
}

// LibTorch's messages have several lines; the first line is enough.
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
