// Sweep documents: from YAML (or JSON, which is YAML) to jobs. The number of jobs is computed with
// overflow checks and compared with the limits before anything is allocated for them. Pure
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

inline constexpr std::uint64_t kMaxJobs = 1'000'000;  // cells of one sweep, including excluded ones
// Limit of the different (protocol, PE, task, axes) combinations of one sweep. Each is checked
// while the document is read.
inline constexpr std::uint64_t kMaxCombinations = 50'000;
inline constexpr std::size_t kMaxDocumentBytes = 1 << 20;
inline constexpr std::int64_t kMaxSeed = (std::int64_t{1} << 53) - 1;

// The value of `seed` in the document of a sweep that begins without seeds. Extend or ExtendSome
// adds all of its seeds later.
inline constexpr std::string_view kNoSeeds = "none";

// `--set model.layers=4`: replaces a part of the document before defaults are applied. The value is
// read as YAML. `field` is name, protocol, seed, or the full name of a field. An override replaces
// the field everywhere in the document, including the field's axis. Of two overrides for one field,
// the later one wins.
struct Override {
  std::string field;
  std::string value;
};

struct Resources {
  std::string device = "any";      // any | gpu | cpu
  std::uint64_t memory_bytes = 0;  // 0: not specified
};

// One cell of the product, ready to be stored.
struct Cell {
  std::uint64_t ordinal = 0;      // its place among the sweep's cells, which `order` decides
  std::uint64_t combination = 0;  // of its settings other than the seed, whatever the order
  Job job;
  // The PE and the fields that differ from its default under the cell's protocol: "rope",
  // "rope(base=500)".
  std::string pe_label;
  std::string task_label;      // "distance"; "own:parity" for data from a file
  std::string protocol_label;  // "clean", "published", "matched" or "custom"
  std::string canonical_json;
  std::string key;  // lower-case hexadecimal SHA-256 of canonical_json
};

// Cell::pe_label of a job in a sweep of this protocol.
std::string PeLabel(const Job& job, std::string_view protocol);

struct Combination;
struct SweepPlan;

// A checked sweep. Cheap to copy, immutable, thread-safe. Holds the axes, not the cells.
class Sweep {
 public:
  const std::string& name() const { return name_; }
  // The document's protocols in document order, "clean" or "clean,published"; for display.
  const std::string& protocol() const { return protocol_; }
  // The analyses, resolved under each protocol and without duplicates.
  const std::vector<Analysis>& analyses() const { return analyses_; }
  const Resources& resources() const { return resources_; }
  // The number of cells of the product, including excluded ones; at most kMaxJobs.
  std::uint64_t cells() const { return cells_; }
  // The cell at `ordinal` < cells(). nullopt in three cases. (1) An `exclude` rule removes the
  // cell. (2) An axis has no meaning for the job (pe.base for nope), and the cell is not at the
  // first value of that axis; only the cell at the first value is kept. (3) An earlier protocol
  // gives the same job. Seeds vary fastest (unless `order` says otherwise), then tasks, PEs and
  // `axes` in document order; protocols vary slowest. Cells of seeds that were added to the sweep
  // later come after all earlier cells, in the same order. Use cell_maker.h to read many cells.
  std::optional<Cell> At(std::uint64_t ordinal) const;

  // The splits of a cell's data, "train" first: those of its file, or "train" and "test".
  std::vector<std::string> SplitsOf(const Job& job) const;

 private:
  friend class CellMaker;
  friend class SweepParser;

  // The cell of a job, without its ordinal.
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
  std::vector<Violation> violations;  // in document order; empty if and only if sweep is set
};

// The result of adding seeds to a sweep. Every existing cell keeps its ordinal.
struct Extension {
  std::optional<Sweep> sweep;  // unchanged if it had all the seeds already
  // The new seeds: "5..9,12", for some combinations alone "5..9 of 0,2..4"; empty if none is new.
  std::string seeds;
  std::string problem;  // for people; set if and only if `sweep` is not
};
// Adds seeds to a sweep. `seeds` is "5..9" or "5..9,12".
Extension Extend(const Sweep& sweep, std::string_view seeds);
// Adds seeds to some combinations only (Cell::combination). `problem` is set if `combinations` is
// empty. A seed that only some combinations have so far counts as new.
Extension ExtendSome(const Sweep& sweep, std::string_view seeds,
                     const std::vector<std::uint64_t>& combinations);
// Adds seeds again that an earlier Extend or ExtendSome added. `seeds` is the Extension::seeds that
// this call returned.
Extension ExtendAgain(const Sweep& sweep, std::string_view seeds);

// Parses a document and validates every distinct (protocol, PE, task, axes) combination once, not
// once per seed. A sweep that parses therefore has no invalid cell.
SweepResult ParseSweep(std::string_view document, const std::vector<Override>& overrides = {});

}  // namespace pelab::experiment
