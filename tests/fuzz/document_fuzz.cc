// Any bytes as a sweep document, canonical spec or job document: nothing crashes, every refusal has
// words that can be shown and sent, and every job that is accepted has a canonical form that reads
// back to itself.
#include <grpcpp/support/status.h>

#include <vector>

#include "core/experiment/canonical_json.h"
#include "core/experiment/sweep.h"
#include "core/rpc/status.h"
#include "core/rpc/sweep_document.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/violations.h"

namespace pelab::document_fuzz {
namespace {

using namespace pelab::experiment;
using pelab::fuzz::CheckViolations;
using pelab::fuzz::Require;

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

// As the coordinator reads a submission, and answers it.
void CheckSubmission(const std::string& text, bool good) {
  const auto sweep = pelab::rpc::ParseNewSweepDocument(text, {});
  Require(good || !sweep.ok(), "a new document is held to all rules of a document");
  if (sweep.ok()) return (void)pelab::rpc::AnalysesOf(*sweep);
  const grpc::Status sent = pelab::rpc::ToGrpc(sweep.status());
  pelab::fuzz::RequireSentence(sent.error_message());
  pelab::v1::Violations violations;
  Require(violations.ParseFromString(sent.error_details()), "violations can be sent");
}

// As the value and the name of `--set`, and as the seeds of `pelab extend`.
void CheckAdditions(const std::string& text) {
  constexpr char kDocument[] = "{name: a, pe: rope, task: distance}";
  CheckViolations(ParseSweep(kDocument, {{"model.layers", text}, {text, "1"}}).violations);
  static const Sweep& sweep = *new Sweep(*ParseSweep(kDocument).sweep);
  const Extension extended = Extend(sweep, text);
  Require(extended.sweep.has_value() == extended.problem.empty(), "either a sweep or a problem");
  if (extended.sweep) {
    Require(extended.sweep->cells() >= sweep.cells(), "seeds are only added");
  } else {
    pelab::fuzz::RequireSentence(extended.problem);
  }
}

}  // namespace

PELAB_FUZZ_TARGET(document) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SweepResult result = ParseSweep(text);
  Require(result.sweep.has_value() == result.violations.empty(), "either a sweep or violations");
  CheckViolations(result.violations);
  if (result.sweep) CheckSweep(*result.sweep);
  CheckSubmission(text, result.sweep.has_value());
  CheckAdditions(text);

  const CanonicalResult canonical = FromCanonicalJson(text);
  Require(canonical.job.has_value() == canonical.violations.empty(), "either a job or violations");
  CheckViolations(canonical.violations);
  const JobDocumentResult document = FromJobDocument(text);
  Require(document.document.has_value() == document.violations.empty(),
          "either a document or violations");
  CheckViolations(document.violations);
  return 0;
}

}  // namespace pelab::document_fuzz
