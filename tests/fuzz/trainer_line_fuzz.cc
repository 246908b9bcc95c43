// Any bytes as what a trainer prints: nothing crashes, and what the agent makes of it is an event
// that every other part of pelab can read and accepts.
#include <vector>

#include "core/base/file.h"
#include "core/base/process.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/quiet.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/limits.h"
#include "worker/agent/line_splitter.h"
#include "worker/agent/trainer_trace.h"

namespace pelab::trainer_line_fuzz {
namespace {

using fuzz::Require;

constexpr char kParameters[] = R"({"data":"test","max_examples":0})";

// A job of 2 layers of 2 heads with 2 epochs, of which two analyses are asked.
v1::Assignment MakeAssignment() {
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  v1::Assignment assignment;
  assignment.set_max_start_epoch(1);
  assignment.set_spec_json(ToCanonicalJson(experiment::MakeJob("clean", "rope", "distance", 1,
                                                               {{"task.train_examples", whole(99)},
                                                                {"task.test_examples", whole(97)},
                                                                {"model.layers", whole(2)},
                                                                {"model.heads", whole(2)},
                                                                {"train.epochs", whole(2)}})));
  for (const auto& [name, version] : {std::pair("head_ablation", 2), {"layer_ablation", 1}}) {
    v1::Analysis* analysis = assignment.add_analyses();
    analysis->set_name(name);
    analysis->set_version(version);
    analysis->set_parameters_json(kParameters);
  }
  return assignment;
}

// The trainer's directory, with a result file of an analysis.
const TempDir& Directory() {
  static const TempDir directory;
  static const bool written =
      WriteFileAtomically(directory / "r.json", R"({"lost":[1,2]})", 0600).ok();
  Require(written, "the trainer's directory can be written");
  return directory;
}

void RequireSound(const v1::Event& event) {
  Require(event::WhatIsWrong(event).empty(), "an event of the agent keeps the rules",
          event::WhatIsWrong(event));
  v1::Event back;
  Require(back.ParseFromString(event.SerializeAsString()), "an event of the agent can be read",
          event.ShortDebugString());
}

void RequireSound(const v1::Finished& finished) {
  v1::Event event;
  *event.mutable_finished() = finished;
  RequireSound(event);
}

}  // namespace

// The first byte chooses into what pieces the pipe cuts the output.
PELAB_FUZZ_TARGET(trainer_line) {
  static const v1::Assignment& assignment = *new v1::Assignment(MakeAssignment());
  fuzz::Input input(data, size);
  const std::size_t piece = 1 + input.Number(1) * 8;
  agent::TrainerTrace trace(assignment);
  absl::Status output;
  const auto on_line = [&](absl::string_view line) {
    auto parsed = event::ParseTrainerLine(line, "1", Directory().path());
    if (!parsed.ok()) {
      fuzz::RequireRefusal(parsed.status());
      output.Update(parsed.status());
      return;
    }
    const auto event = trace.Accept(*std::move(parsed));
    if (!event.ok()) fuzz::RequireRefusal(event.status());
    output.Update(event.status());
    if (event.ok() && event->has_value()) RequireSound(**event);
  };
  agent::LineSplitter splitter(agent::limits::kLineBytes);
  std::string_view words;
  while (!input.empty()) {
    words = input.Bytes(piece);
    splitter.Feed({words.data(), words.size()}, on_line);
  }
  for (const ExitStatus exit : {ExitStatus{}, ExitStatus{false, 1}, ExitStatus{true, 9}}) {
    for (const auto reason : {agent::StopReason::kNone, agent::StopReason::kPreempt}) {
      RequireSound(trace.Conclude(exit, reason, output, {words.data(), words.size()}, 1.5));
    }
  }
  return 0;
}

}  // namespace pelab::trainer_line_fuzz
