#include "core/results/shortcuts.h"

#include <cstddef>
#include <set>
#include <vector>

#include "core/base/strings.h"
#include "core/experiment/canonical_json.h"
#include "core/render/text.h"

namespace pelab::results {
namespace {

constexpr std::size_t kMostConfigurations = 1000;  // that are read for one line
constexpr std::size_t kShown = 4;

std::string TextOf(const Limits& limits) {
  const auto percent = [](double share, int places) {
    return Concat(render::Fixed(100 * share, places), " %");
  };
  std::string text = percent(limits.shortcut.accuracy, 1);
  if (limits.ceiling)
    text += Concat(" of at most ", percent(*limits.ceiling, *limits.ceiling < 1 ? 1 : 0));
  return Concat(text, " (", std::string(limits.shortcut.rule), ")");
}

}  // namespace

std::optional<Limits> LimitsOf(const JobList& jobs, const v1::JobRow& row) {
  const std::string spec = row.spec_json().empty() ? jobs.SpecOf(row) : row.spec_json();
  const experiment::CanonicalResult read = experiment::FromCanonicalJson(spec);
  if (!read.job) return std::nullopt;
  return Limits{experiment::BestShortcut(*read.job), experiment::BestAccuracy(*read.job)};
}

std::string ShortcutsText(const JobList& jobs) {
  if (jobs.templates().size() > kMostConfigurations) return "";
  std::set<std::int64_t> seen;
  std::vector<std::string> texts;
  std::set<std::string> known;
  for (const v1::JobRow& row : jobs) {
    if (!seen.insert(row.configuration_id()).second) continue;
    const auto limits = LimitsOf(jobs, row);
    if (!limits) continue;
    std::string text = Concat(row.task(), " ", row.protocol(), " ", TextOf(*limits));
    if (known.insert(text).second) texts.push_back(std::move(text));
  }
  if (texts.empty()) return "";
  const std::size_t more = texts.size() > kShown ? texts.size() - kShown : 0;
  texts.resize(texts.size() - more);
  return Concat("without doing the task: ", Join(texts, ", "),
                more > 0 ? Concat(", and ", more, " more") : "");
}

}  // namespace pelab::results
