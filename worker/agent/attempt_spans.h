// Spans of an attempt on this host, and the ids of its log lines.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log_scope.h"
#include "core/base/trace_context.h"
#include "core/trace/span_file.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// The ids of log lines about this attempt.
LogIds IdsOf(const v1::Assignment& assignment);

// One span for the attempt, below the one that the assignment names, and below it one for each
// part: "fetch", "start trainer", "train", "analysis", "upload". The parts follow each other, so
// each is told when it is over. Does nothing without a file, or for an attempt without a trace. Not
// thread-safe. `clock` and `file` must outlive the object.
class AttemptSpans {
 public:
  AttemptSpans(const v1::Assignment& assignment, const Clock& clock, trace::SpanFile* file);

  // For the trainer's environment, a `traceparent`; empty: the attempt belongs to no trace.
  std::string traceparent() const;

  // The files that the trainer needs are here.
  void Fetched() { Record("fetch", {}); }
  // The trainer has said this.
  void Said(const v1::Event& event);
  // Its weights are with the coordinator, or given up.
  void Uploaded() { Record("upload", {}); }
  // The attempt has ended on this host. Only the first call counts.
  void Ended(const v1::Finished& finished);

 private:
  void EndTraining();
  void Record(const std::string& name, trace::Attributes attributes);
  void Add(const std::string& name, absl::Time end, trace::Attributes attributes);

  const Clock& clock_;
  trace::SpanFile* const file_;         // null: nothing is recorded
  std::optional<trace::Span> attempt_;  // nullopt: there is no trace, or it has ended
  absl::Time mark_;                     // when the part began that is going on
  absl::Time last_epoch_;
  int epochs_ = 0;  // since `mark_`
};

}  // namespace pelab::agent
