// Whatever bytes come as a sweep document, canonical spec or job document: nothing crashes, every
// refusal has words that can be shown and sent, and every job that is accepted has a canonical form
// that reads back to itself.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/experiment/canonical_json.h"
#include "core/experiment/sweep.h"

namespace {

using namespace pelab::experiment;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Protobuf refuses strings that are not UTF-8. Strict enough to catch cut characters.
bool IsUtf8(std::string_view text) {
  std::size_t pending = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (pending > 0) {
      if ((byte & 0xC0) != 0x80) return false;
      --pending;
    } else if (byte >= 0x80) {
      if (byte < 0xC2 || byte > 0xF4) return false;
      pending = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
    }
  }
  return pending == 0;
}

void CheckViolations(const std::vector<Violation>& violations) {
  Require(violations.size() <= 100, "at most 100 violations");
  for (const Violation& violation : violations) {
    Require(!violation.message.empty(), "a violation has a message");
    Require(violation.message.size() < 4096, "a message is short");
    Require(violation.message.find('\n') == std::string::npos, "a message is one line");
    Require(violation.line >= 0 && violation.column >= 0, "a place is not negative");
    for (const auto* text :
         {&violation.message, &violation.path, &violation.value, &violation.allowed}) {
      Require(IsUtf8(*text), "a violation is UTF-8");
    }
  }
}

void CheckCell(const Cell& cell) {
  Require(cell.key.size() == 64, "a key has 64 digits");
  Require(CheckJob(cell.job).empty(), "a cell is valid");
  const CanonicalResult back = FromCanonicalJson(cell.canonical_json);
  Require(back.job.has_value(), "a canonical form reads back");
  Require(ToCanonicalJson(*back.job) == cell.canonical_json,
          "a canonical form reads back to itself");
}

void CheckSweep(const Sweep& sweep) {
  Require(sweep.cells() > 0 && sweep.cells() <= kMaxJobs, "a sweep has from 1 to kMaxJobs cells");
  const std::uint64_t step = sweep.cells() / 8 + 1;
  for (std::uint64_t i = 0; i < sweep.cells(); i += step) {
    if (const auto cell = sweep.At(i)) CheckCell(*cell);
  }
  Require(!sweep.At(sweep.cells()).has_value(), "there is nothing beyond the last cell");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const SweepResult result = ParseSweep(text);
  Require(result.sweep.has_value() == result.violations.empty(), "either a sweep or violations");
  CheckViolations(result.violations);
  if (result.sweep) CheckSweep(*result.sweep);

  const SweepResult overridden =
      ParseSweep("{name: a, pe: rope, task: distance}",
                 {{"model.layers", std::string(text)}, {std::string(text), "1"}});
  CheckViolations(overridden.violations);

  const CanonicalResult canonical = FromCanonicalJson(text);
  Require(canonical.job.has_value() == canonical.violations.empty(), "either a job or violations");
  CheckViolations(canonical.violations);
  const JobDocumentResult document = FromJobDocument(text);
  Require(document.document.has_value() == document.violations.empty(),
          "either a document or violations");
  CheckViolations(document.violations);
  return 0;
}
