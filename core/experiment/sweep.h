// Sweep documents: from YAML (or JSON, which is YAML) to jobs. Nothing is allocated for the jobs of
// a sweep before their number is computed, overflow-checked and found within the limits. Pure
// functions over text: thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {

inline constexpr std::uint64_t kMaxJobs = 1'000'000;  // cells of one sweep, excluded ones counted
// Different (PE, task, axes) combinations of one sweep: each is checked while the document is read.
inline constexpr std::uint64_t kMaxCombinations = 50'000;
inline constexpr std::size_t kMaxDocumentBytes = 1 << 20;
inline constexpr std::int64_t kMaxSeed = (std::int64_t{1} << 53) - 1;

// `--set model.layers=4`: applied over the document, before defaults; the value is read as YAML.
// `field` is a field's full name (it then replaces that field everywhere in the document, its axis
// too), or name, protocol or seed. Of two for one field the later counts.
struct Override {
  std::string field;
  std::string value;
};

struct Resources {
  std::string device = "any";      // any | gpu | cpu
  std::uint64_t memory_bytes = 0;  // 0: not said
};

// One cell of the product, ready to be stored.
struct Cell {
  std::uint64_t ordinal = 0;
  Job job;
  // The PE with what differs from its default under the cell's protocol: "rope", "rope(base=500)".
  std::string pe_label;
  std::string protocol_label;  // "clean", "published" or "custom"
  std::string canonical_json;
  std::string key;  // lower-case hexadecimal SHA-256 of canonical_json
};

struct Combination;
struct SweepPlan;

// A checked sweep. Cheap to copy, immutable, thread-safe; holds the axes, not the cells.
class Sweep {
 public:
  const std::string& name() const { return name_; }
  // The document's protocols in its order, "clean" or "clean,published": for display.
  const std::string& protocol() const { return protocol_; }
  // Resolved under each protocol; those that are the same stand once.
  const std::vector<Analysis>& analyses() const { return analyses_; }
  const Resources& resources() const { return resources_; }
  // Cells of the product, excluded ones counted; at most kMaxJobs.
  std::uint64_t cells() const { return cells_; }
  // The cell at `ordinal` < cells(); nullopt where an `exclude` rule takes it out, where an axis has
  // no meaning for the job (pe.base for nope), which then stands only at that axis's first value,
  // and where an earlier protocol gives the same job. Seeds vary fastest, then tasks, PEs, `axes`
  // in the document's order, and protocols slowest. The cells of seeds that were added to the
  // document's stand after all of those before, in the same order. For many of them: cell_maker.h.
  std::optional<Cell> At(std::uint64_t ordinal) const;

 private:
  friend class CellMaker;
  friend class SweepParser;

  // The cell of a job, but its ordinal.
  static Cell CellOf(const Combination& combination, Job job);

  std::shared_ptr<const SweepPlan> plan_;
  std::string name_;
  std::string protocol_;
  std::vector<Analysis> analyses_;
  Resources resources_;
  std::uint64_t cells_ = 0;
};

struct SweepResult {
  std::optional<Sweep> sweep;
  std::vector<Violation>
      violations;  // in the order of the document; empty if and only if sweep is set
};

// A sweep with further seeds. Every cell that it had keeps its ordinal.
struct Extension {
  std::optional<Sweep> sweep;  // the same where it has all the seeds
  std::string seeds;           // those that are new: "5..9,12"; empty: none
  std::string problem;         // for people; set if and only if `sweep` is not
};
// `seeds` is "5..9" or "5..9,12".
Extension Extend(const Sweep& sweep, std::string_view seeds);

// Validates every distinct (PE, task, axes) combination once (not once a seed), so that a sweep
// that parses has no cell that is invalid.
SweepResult ParseSweep(std::string_view document, const std::vector<Override>& overrides = {});

}  // namespace pelab::experiment
