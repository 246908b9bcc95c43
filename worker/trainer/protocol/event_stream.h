// The trainer's output: one JSON object per line (docs/formats.md, "Trainer's JSON Lines").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pelab::trainer {

// Moves standard output to a private descriptor (close-on-exec) and makes descriptor 1 a copy of
// standard error, so that no library can write into the stream. Returns the private descriptor.
// Throws TrainerError(kIo).
int TakeStandardOutput();

// Writes events to a descriptor that it does not own. Not thread-safe.
class EventStream {
 public:
  EventStream(int fd, std::string job) : fd_(fd), job_(std::move(job)) {}

  // Writes {"event": event, "job": …, members…} and a newline at once. Throws TrainerError: kIo if
  // the reader is gone, kInternal if the line would exceed limits::kLineBytes.
  void Emit(const std::string& event, const nlohmann::ordered_json& members);

 private:
  int fd_;
  std::string job_;
};

}  // namespace pelab::trainer
