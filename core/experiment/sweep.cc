#include "core/experiment/sweep.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/utf8.h"
#include "core/catalog/protocol_values.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/key.h"
#include "core/experiment/sweep_checker.h"
#include "core/experiment/sweep_notes.h"
#include "core/experiment/sweep_reader.h"

namespace pelab::experiment {
namespace {

using catalog::Field;

constexpr std::size_t kShownBytes = 100;  // of seeds, in a message

// "own:decay(alpha=0.5)": the name that the file declares, and the options.
std::string OwnLabel(const Job& job) {
  const std::string& options = job.Choice("pe.options");
  return job.pe + ":" + job.Choice("pe.encoding") + (options.empty() ? "" : "(" + options + ")");
}

}  // namespace

std::string PeLabel(const Job& job, std::string_view protocol) {
  if (job.pe == catalog::OwnPe().name) return OwnLabel(job);
  catalog::Values resolved = WithCoordinates(job);
  std::string parameters;
  for (const Field& field : catalog::Fields()) {
    const auto value = job.values.find(field.name);
    if (field.owner != job.pe || value == job.values.end()) continue;
    if (value->second == catalog::DefaultOf(field, protocol, job.pe, job.task, resolved)) continue;
    parameters += (parameters.empty() ? "" : ",") +
                  std::string(field.name.substr(field.name.find('.') + 1)) + "=" +
                  catalog::ToText(value->second);
  }
  return parameters.empty() ? job.pe : job.pe + "(" + parameters + ")";
}

// Builds the Sweep of a plan that has no violations.
class SweepParser {
 public:
  static Sweep Build(SweepPlan plan) {
    Sweep sweep;
    sweep.name_ = plan.name;
    for (const ProtocolChoice& protocol : plan.protocols) {
      sweep.protocol_ += (sweep.protocol_.empty() ? "" : ",") + protocol.name;
    }
    sweep.analyses_ = plan.analyses;
    sweep.resources_ = plan.resources;
    sweep.cells_ = plan.CountCells();
    sweep.plan_ = std::make_shared<const SweepPlan>(std::move(plan));
    return sweep;
  }
  static const SweepPlan& PlanOf(const Sweep& sweep) { return *sweep.plan_; }
};

namespace {

constexpr std::string_view kOf = " of ";

// Calls `take` with each of "5..9,12". Returns what is wrong, for people; empty: nothing.
std::string ReadRanges(std::string_view text, const std::function<void(SeedSet::Range)>& take) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const SeedText one = ParseSeeds(text.substr(at, comma - at));
    if (!one.range) {
      return "seeds \"" + Shorten(text.substr(at, comma - at), kShownBytes) + "\": " + one.problem +
             "; allowed: numbers and ranges from 0 to 2^53-1, 5..9,12";
    }
    take(*one.range);
    at = comma + 1;
  }
  return "";
}

// "5..9,12", with neighbors as one range.
std::string ToText(const SeedSet& set) {
  std::vector<SeedSet::Range> joined;
  for (const SeedSet::Range& range : set.ranges()) {
    if (!joined.empty() && joined.back().last + 1 == range.first) {
      joined.back().last = range.last;
    } else {
      joined.push_back(range);
    }
  }
  std::string text;
  for (const SeedSet::Range& range : joined) {
    text += text.empty() ? "" : ",";
    text += std::to_string(range.first);
    if (range.last != range.first) text += ".." + std::to_string(range.last);
  }
  return text;
}

// Adds seeds to the combinations; to all if there are none.
Extension Add(const Sweep& sweep, std::string_view seeds, const SeedSet& combinations) {
  SweepPlan plan = SweepParser::PlanOf(sweep);
  SeedSet known = plan.seeds;  // of all combinations
  for (const AddedSeeds& earlier : plan.extensions) {
    if (earlier.combinations.count() > 0) continue;
    for (const SeedSet::Range& range : earlier.seeds.ranges()) known.Add(range);
  }
  AddedSeeds added{.seeds = {}, .combinations = combinations};
  Extension extension;
  extension.problem = ReadRanges(seeds, [&](SeedSet::Range asked) {
    for (const SeedSet::Range& range : known.Missing(asked)) {
      known.Add(range);
      added.seeds.Add(range);
    }
  });
  if (!extension.problem.empty()) return extension;
  const std::uint64_t all = plan.CountCombinations();
  for (const SeedSet::Range& range : combinations.ranges()) {
    if (static_cast<std::uint64_t>(range.last) < all) continue;
    extension.problem =
        "combination " + std::to_string(range.last) + " of a sweep with " + std::to_string(all);
    return extension;
  }
  if (added.seeds.count() == 0) {
    extension.sweep = sweep;
    return extension;
  }
  extension.seeds = ToText(added.seeds);
  if (combinations.count() > 0) extension.seeds += std::string(kOf) + ToText(combinations);
  plan.extensions.push_back(std::move(added));
  if (plan.CountCells() > kMaxJobs) {
    extension.problem = "with seeds " + Shorten(extension.seeds, kShownBytes) + " the sweep has " +
                        std::to_string(plan.CountCells()) + " cells; allowed: at most " +
                        std::to_string(kMaxJobs);
    return extension;
  }
  extension.sweep = SweepParser::Build(std::move(plan));
  return extension;
}

}  // namespace

std::vector<std::string> Sweep::SplitsOf(const Job& job) const {
  if (job.HasField("task.file")) {
    const auto found = plan_->splits.find(job.Choice("task.file"));
    if (found != plan_->splits.end()) return found->second;
  }
  return {std::string(kTrainSplit), "test"};
}

std::optional<Cell> Sweep::At(std::uint64_t ordinal) const {
  if (ordinal >= cells_) return std::nullopt;
  const SweepPlan::Position position = plan_->PositionOf(ordinal);
  const Combination combination = plan_->CombinationAt(position.combination);
  Job job = plan_->MakeJobOf(combination, position.seed);
  if (plan_->IsRepeat(combination, job) || plan_->IsExcluded(combination, job)) {
    return std::nullopt;
  }
  Cell cell = CellOf(combination, std::move(job));
  cell.ordinal = ordinal;
  cell.combination = position.combination;
  return cell;
}

Cell Sweep::CellOf(const Combination& combination, Job job) {
  Cell cell;
  cell.pe_label = PeLabel(job, combination.protocol->name);
  cell.task_label = TaskLabel(job);
  cell.protocol_label = catalog::ProtocolLabel(job.pe, job.task, job.values);
  cell.canonical_json = ToCanonicalJson(job);
  cell.key = KeyOf(cell.canonical_json);
  cell.job = std::move(job);
  return cell;
}

Extension Extend(const Sweep& sweep, std::string_view seeds) {
  return Add(sweep, seeds, SeedSet());
}

Extension ExtendSome(const Sweep& sweep, std::string_view seeds,
                     const std::vector<std::uint64_t>& combinations) {
  SeedSet some;
  for (const std::uint64_t one : combinations) {
    const auto number = static_cast<std::int64_t>(one);
    some.Add({number, number});
  }
  if (some.count() == 0) return {.sweep = std::nullopt, .seeds = "", .problem = "no combinations"};
  return Add(sweep, seeds, some);
}

Extension ExtendAgain(const Sweep& sweep, std::string_view seeds) {
  const std::size_t of = seeds.find(kOf);
  if (of == std::string_view::npos) return Extend(sweep, seeds);
  SeedSet some;
  std::string problem =
      ReadRanges(seeds.substr(of + kOf.size()), [&](SeedSet::Range range) { some.Add(range); });
  if (!problem.empty()) return {.sweep = std::nullopt, .seeds = "", .problem = std::move(problem)};
  return Add(sweep, seeds.substr(0, of), some);
}

namespace {

// Whether a rule excludes the combination's job for every seed.
bool IsExcluded(const SweepPlan& plan, const Combination& combination, const Job& job) {
  return std::any_of(plan.rules.begin(), plan.rules.end(), [&](const ExcludeRule& rule) {
    return !rule.seeds && rule.MatchesButSeed(job, combination.protocol->name);
  });
}

// The first thing to say about how the sweep compares encodings; empty: nothing.
std::string NoteOnComparison(const SweepPlan& plan) {
  const auto other_pe = [&](const Item& item) { return item.name != plan.pes.front().name; };
  if (std::none_of(plan.pes.begin(), plan.pes.end(), other_pe)) return "";
  std::set<std::string> labels;
  std::vector<catalog::ComparedJob> compared;
  for (std::uint64_t i = 0; i < plan.CountCombinations(); ++i) {
    const Combination combination = plan.CombinationAt(i);
    const Job job = plan.MakeJobOf(combination, 0);
    if (IsExcluded(plan, combination, job)) continue;
    const auto label = labels.insert(catalog::ProtocolLabel(job.pe, job.task, job.values)).first;
    const catalog::ComparedJob one = {*label, combination.pe->name, job.Real("train.beta1"),
                                      job.Real("train.beta2")};
    if (std::find(compared.begin(), compared.end(), one) != compared.end()) continue;
    compared.push_back(one);
    std::string note = catalog::NoteOnComparison(compared);
    if (!note.empty()) return note;
  }
  return "";
}

// Empty unless the job's test split has longer sequences than the training split.
std::string NoteOnLengths(const OwnEncoding& encoding, const OwnTask& data, const Job& job) {
  const OwnSplit& train = data.splits.front();
  const OwnSplit* test = data.Find(job.Choice("task.test"));
  if (test == nullptr || train.longest == 0 || test->longest <= train.longest) return "";
  return "the encoding " + encoding.name + " declares extrapolates: false, but the split " +
         test->name + " of the data " + data.name + " has sequences of up to " +
         std::to_string(test->longest) + " tokens, and its training split of up to " +
         std::to_string(train.longest);
}

// One note for each encoding that does not extrapolate and each split that needs it to.
std::vector<std::string> NotesOnLengths(const SweepPlan& plan) {
  std::vector<std::string> notes;
  for (std::uint64_t i = 0; i < plan.CountCombinations(); ++i) {
    const Combination combination = plan.CombinationAt(i);
    const auto& encoding = combination.pe->encoding;
    const auto& data = combination.task->data;
    if (encoding == nullptr || encoding->extrapolates.value_or(true) || data == nullptr) continue;
    const Job job = plan.MakeJobOf(combination, 0);
    if (IsExcluded(plan, combination, job)) continue;
    std::string note = NoteOnLengths(*encoding, *data, job);
    if (note.empty() || std::find(notes.begin(), notes.end(), note) != notes.end()) continue;
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace

std::vector<std::string> NotesOn(const Sweep& sweep) {
  const SweepPlan& plan = SweepParser::PlanOf(sweep);
  std::vector<std::string> notes = NotesOnLengths(plan);
  std::string note = NoteOnComparison(plan);
  if (!note.empty()) notes.insert(notes.begin(), std::move(note));
  return notes;
}

SweepResult ParseSweep(std::string_view document, const std::vector<Override>& overrides) {
  Violations violations;
  YamlResult yaml = ParseYaml(document, "document");
  for (Violation& violation : yaml.violations) violations.Add(std::move(violation));
  SweepReader reader(yaml.root.get(), overrides, &violations);
  SweepPlan plan = reader.Read();
  SweepChecker(plan, reader.unread_fields(), &violations).Check();
  SweepResult result;
  if (violations.empty()) result.sweep = SweepParser::Build(std::move(plan));
  result.violations = violations.TakeSorted();
  return result;
}

}  // namespace pelab::experiment
