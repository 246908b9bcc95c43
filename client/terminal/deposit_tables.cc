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

constexpr char kUndefined[] =
    "undefined: the accuracy is less than 5 standard errors above chance, or no head's drop "
    "exceeds 3 of its own";

// Whether a seed of the group has no indices, or indices that are not defined.
bool IsPartial(const results::DepositGroup& group) {
  return !group.seeds.complete() || group.undefined > 0;
}

// "60.1±12.3"; "60.1" for one seed, "~60.1" if other seeds have no value, "-" for no seed.
std::string MeanText(const results::DepositGroup& group, const stats::SeedSummary& summary,
                     double factor, int decimals) {
  if (!summary.mean) return "-";
  std::string text =
      (IsPartial(group) ? "~" : "") + render::Fixed(*summary.mean * factor, decimals);
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

// "2" if all seeds have indices, otherwise "1/3, 1 missing, 1 undefined".
std::string SeedsText(const results::DepositGroup& group) {
  if (!IsPartial(group)) return Concat(group.seeds.n);
  std::vector<std::string> parts;
  if (!group.seeds.complete()) parts.push_back(results::MissingText(group.seeds));
  if (group.undefined > 0) parts.push_back(Concat(group.undefined, " undefined"));
  return Concat(group.seeds.n - group.undefined, "/", group.cell->jobs.size(), ", ",
                Join(parts, ", "));
}

std::vector<std::string> RowText(const results::DepositGroup& g, bool with_layer) {
  std::vector<std::string> cells = g.cell->shown;
  if (with_layer) cells.push_back(!g.variant ? "-" : g.layer ? Concat(*g.layer) : "all");
  cells.push_back(MeanText(g, g.max_drop, 100, 1));
  cells.push_back(MeanText(g, g.top_share, 1, 2));
  cells.push_back(MeanText(g, g.gini, 1, 2));
  cells.push_back(MeanText(g, g.effective_heads, 1, 1));
  cells.push_back(OfText(g.deposit_seeds, g.judged));
  cells.push_back(TopText(g));
  cells.push_back(SeedsText(g));
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
  bool partial = false;
  bool undefined = false;
  for (const results::DepositGroup& group : groups) {
    if (group.variant) variants.insert(*group.variant);
    by_layer = by_layer || group.layer.has_value();
    partial = partial || (IsPartial(group) && group.max_drop.mean);
    undefined = undefined || group.undefined > 0;
  }
  std::string text;
  for (const results::Variant& variant : variants) {
    render::Table table(TableColumns(cells, by_layer));
    for (const results::DepositGroup& group : groups) {
      if (group.variant && !(*group.variant == variant)) continue;
      table.AddRow(RowText(group, by_layer), IsPartial(group) ? "33" : "");
    }
    text += Concat(render::Escape(results::Describe(variant)), ":\n", table.Render(style), "\n");
  }
  text += "max drop in points; ± the 95% interval over seeds; deposit: seeds that have one\n";
  if (undefined) text += render::Wrap(kUndefined, style.width) + "\n";
  if (partial) text += "~ not every seed of this group has indices\n";
  return text;
}

}  // namespace pelab::client
