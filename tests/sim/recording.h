// The recorded session of a worker of protocol 1 and its coordinator. The program
// tests/contract/sessions/record.py made the recording with the real programs. The simulation works
// with the messages of the wire: its old workers say the recorded hello, and any worker that trains
// a recorded job reports the recorded events. Thread-safe; the file is read once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pelab/v1/fleet.pb.h"

namespace pelab::sim {

// A job of the recorded sweep, as its trainer reported it.
struct RecordedJob {
  v1::Started started;
  std::vector<v1::Epoch> epochs;
  v1::HeadAblation matrix;
  v1::AnalysisResult analysis;
  v1::Artifact weights;
};

const std::string& RecordedDocument();
const v1::Hello& RecordedHello();
const RecordedJob* RecordedJobOf(std::string_view key);  // null: no job with this key was recorded
std::optional<std::uint64_t> RecordedBytes(std::string_view sha256);  // of a recorded file

// Empty if an old worker's hello has no field that the recorded one lacks, apart from the attempts
// that it holds; otherwise the name of such a field.
std::string UnrecordedField(const v1::Hello& hello);

}  // namespace pelab::sim
