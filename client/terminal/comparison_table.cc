#include "client/terminal/comparison_table.h"

#include <optional>
#include <vector>

#include "client/terminal/metric_text.h"
#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

std::vector<std::string> RowText(const results::Comparison& comparison,
                                 const results::PairGroup& group) {
  const int decimals = DecimalsOf(comparison.metric);
  std::vector<std::string> cells = group.shown;
  cells.push_back(render::Fixed(group.a.mean, decimals));
  cells.push_back(render::Fixed(group.b.mean, decimals));
  const std::optional<double>& mean = group.difference.mean;
  cells.push_back(mean ? Concat(*mean >= 0 ? "+" : "", render::Fixed(mean, decimals)) : "-");
  cells.push_back(IntervalText(group.difference, decimals));
  cells.push_back(group.test ? render::Probability(group.test->p) : "-");
  cells.push_back(Concat(group.difference.n, "/", group.pairs.size()));
  return cells;
}

// A table with one row for each pair of trained models that were scored on the same examples; empty
// if there is no such pair.
std::string ExamplesText(const results::Comparison& comparison, const std::string& name_a,
                         const std::string& name_b, const render::Style& style) {
  std::vector<render::Column> columns;
  for (const std::string& name : comparison.columns) columns.push_back(render::LabelColumn(name));
  columns.push_back({"seed", Align::kRight});
  columns.push_back(render::LabelColumn("only " + name_a, Align::kRight));
  columns.push_back(render::LabelColumn("only " + name_b, Align::kRight));
  columns.push_back({"p", Align::kRight});
  render::Table table(columns);
  bool any = false;
  for (const results::PairGroup& group : comparison.groups) {
    for (const results::Pair& pair : group.pairs) {
      if (!pair.examples) continue;
      any = true;
      std::vector<std::string> cells = group.shown;
      cells.push_back(Concat(pair.a.seed()));
      cells.push_back(Concat(pair.examples->only_a));
      cells.push_back(Concat(pair.examples->only_b));
      cells.push_back(render::Probability(pair.examples->p()));
      table.AddRow(cells);
    }
  }
  if (!any) return "";
  return Concat("\n", table.Render(style),
                render::Wrap("test examples that only one of the two trained models of a seed has "
                             "right; p: McNemar's exact test, about these two models and not "
                             "about others of their kind",
                             style.width),
                "\n");
}

std::string Partnerless(std::size_t jobs, const std::string& side) {
  return jobs == 0 ? "" : Concat("no partner for ", jobs, " jobs of ", render::Escape(side), "\n");
}

}  // namespace

std::string ComparisonText(const results::Comparison& comparison, const std::string& name_a,
                           const std::string& name_b, const render::Style& style) {
  std::string text;
  if (comparison.groups.empty()) {
    text = "no pairs: no two jobs have the same seed and differ only in the compared fields\n";
  } else {
    std::vector<render::Column> columns;
    for (const std::string& name : comparison.columns) {
      columns.push_back(render::LabelColumn(name));
    }
    columns.push_back(render::LabelColumn(name_a, Align::kRight));
    columns.push_back(render::LabelColumn(name_b, Align::kRight));
    for (const char* name : {"difference", "95% interval", "p", "pairs"}) {
      columns.push_back({name, Align::kRight});
    }
    render::Table table(columns);
    for (const results::PairGroup& group : comparison.groups) {
      table.AddRow(RowText(comparison, group), group.difference.complete() ? "" : "33");
    }
    text = table.Render(style);
    const std::string note =
        Concat(render::Escape(comparison.metric.name), ", pairs by seed; interval: ",
               comparison.interval == stats::IntervalKind::kStudentT
                   ? "Student's t"
                   : "percentile bootstrap of the mean, too narrow for few seeds",
               "; p: paired t test, two-sided");
    text += render::Wrap(note, style.width) + "\n";
  }
  for (const std::string& other : results::ShownConfounders(comparison)) {
    text += Concat("the sides also differ in ", render::Escape(other), "\n");
  }
  if (std::string diverged = results::DivergedText(comparison, name_a, name_b); !diverged.empty()) {
    text += render::Wrap(render::Escape(diverged), style.width) + "\n";
  }
  int not_reached = 0;
  for (const results::PairGroup& group : comparison.groups) {
    not_reached += group.difference.censored;
  }
  if (not_reached > 0) {
    text += Concat("not reached on one side or both of ", not_reached,
                   " pairs: there is no mean difference\n");
  }
  return text + Partnerless(comparison.unpaired_a, name_a) +
         Partnerless(comparison.unpaired_b, name_b) +
         ExamplesText(comparison, name_a, name_b, style);
}

}  // namespace pelab::client
