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

}  // namespace

std::optional<experiment::Shortcut> ShortcutOf(const JobList& jobs, const v1::JobRow& row) {
  const std::string spec = row.spec_json().empty() ? jobs.SpecOf(row) : row.spec_json();
  const experiment::CanonicalResult read = experiment::FromCanonicalJson(spec);
  if (!read.job) return std::nullopt;
  return experiment::BestShortcut(*read.job);
}

std::string ShortcutsText(const JobList& jobs) {
  if (jobs.templates().size() > kMostConfigurations) return "";
  std::set<std::int64_t> seen;
  std::vector<std::string> texts;
  std::set<std::string> known;
  for (const v1::JobRow& row : jobs) {
    if (!seen.insert(row.configuration_id()).second) continue;
    const auto shortcut = ShortcutOf(jobs, row);
    if (!shortcut) continue;
    std::string text =
        Concat(row.task(), " ", row.protocol(), " ", render::Fixed(100 * shortcut->accuracy, 1),
               " % (", std::string(shortcut->rule), ")");
    if (known.insert(text).second) texts.push_back(std::move(text));
  }
  if (texts.empty()) return "";
  const std::size_t more = texts.size() > kShown ? texts.size() - kShown : 0;
  texts.resize(texts.size() - more);
  return Concat("without doing the task: ", Join(texts, ", "),
                more > 0 ? Concat(", and ", more, " more") : "");
}

}  // namespace pelab::results
