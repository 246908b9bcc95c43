#include "client/terminal/deposit_tables.h"

#include <optional>
#include <set>

#include "client/terminal/columns.h"
#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

constexpr char kMeansNothing[] =
    "-: the accuracy is not above chance, or no head's drop exceeds its error\n";

// "60.1±12.3"; "60.1" for one seed, "-" for none.
std::string MeanText(const stats::SeedSummary& summary, double factor, int decimals) {
  if (!summary.mean) return "-";
  std::string text = render::Fixed(*summary.mean * factor, decimals);
  if (summary.half_width) text += "±" + render::Fixed(*summary.half_width * factor, decimals);
  return text;
}

std::string TopText(const results::DepositGroup& group) {
  if (!group.top) return "-";
  const std::string place = Concat(group.layer ? "head " : "layer ", *group.top);
  if (group.top_head) return Concat(place, " head ", *group.top_head);
  return group.placed == 1 ? place : Concat(place, " (", group.top_seeds, "/", group.placed, ")");
}

std::string OfText(int count, int of) { return of == 0 ? "-" : Concat(count, "/", of); }

std::vector<std::string> RowText(const results::DepositGroup& g, bool with_layer) {
  std::vector<std::string> cells = g.cell->shown;
  if (with_layer) cells.push_back(!g.variant ? "-" : g.layer ? Concat(*g.layer) : "all");
  const std::string mark = g.seeds.complete() || g.seeds.n == 0 ? "" : "~";
  cells.push_back(g.max_drop.mean ? mark + MeanText(g.max_drop, 100, 1) : "-");
  cells.push_back(MeanText(g.top_share, 1, 2));
  cells.push_back(MeanText(g.gini, 1, 2));
  cells.push_back(MeanText(g.effective_heads, 1, 1));
  cells.push_back(OfText(g.deposit_seeds, g.judged));
  cells.push_back(TopText(g));
  cells.push_back(g.seeds.complete() ? Concat(g.seeds.n)
                                     : Concat(g.seeds.n, "/", g.cell->jobs.size(), ", ",
                                              results::MissingText(g.seeds)));
  return cells;
}

std::vector<render::Column> TableColumns(const results::CellTable& cells, bool with_layer) {
  std::vector<render::Column> columns = LeadingColumns(cells);
  if (with_layer) columns.push_back({"layer", Align::kRight});
  for (const char* name : {"max drop", "top share", "gini", "eff. heads", "deposit"})
    columns.push_back({name, Align::kRight});
  columns.push_back({"largest in", Align::kLeft, true});
  columns.push_back({"seeds", Align::kLeft, true});
  return columns;
}

}  // namespace

std::string DepositTableText(const results::CellTable& cells,
                             const std::vector<results::DepositGroup>& groups,
                             const render::Style& style) {
  std::set<results::Variant> variants;
  bool by_layer = false;
  bool incomplete = false;
  bool undefined = false;
  for (const results::DepositGroup& group : groups) {
    if (group.variant) variants.insert(*group.variant);
    by_layer = by_layer || group.layer.has_value();
    incomplete = incomplete || !group.seeds.complete();
    undefined = undefined || group.undefined > 0;
  }
  std::string text;
  for (const results::Variant& variant : variants) {
    render::Table table(TableColumns(cells, by_layer));
    for (const results::DepositGroup& group : groups) {
      if (group.variant && !(*group.variant == variant)) continue;
      table.AddRow(RowText(group, by_layer), group.seeds.complete() ? "" : "33");
    }
    text += Concat(render::Escape(results::Describe(variant)), ":\n", table.Render(style), "\n");
  }
  text += "max drop in points; ± the 95% interval over seeds; deposit: seeds that have one\n";
  if (undefined) text += kMeansNothing;
  if (incomplete) text += "~ not every seed of this cell has indices\n";
  return text;
}

}  // namespace pelab::client
