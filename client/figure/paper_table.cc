#include "client/figure/paper_table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr std::pair<std::string_view, std::string_view> kLatex[] = {{"\\", "\\textbackslash{}"},
                                                                    {"&", "\\&"},
                                                                    {"%", "\\%"},
                                                                    {"$", "\\$"},
                                                                    {"#", "\\#"},
                                                                    {"_", "\\_"},
                                                                    {"{", "\\{"},
                                                                    {"}", "\\}"},
                                                                    {"~", "\\textasciitilde{}"},
                                                                    {"^", "\\textasciicircum{}"},
                                                                    {"<", "\\textless{}"},
                                                                    {">", "\\textgreater{}"},
                                                                    {"±", "$\\pm$"},
                                                                    {"−", "$-$"},
                                                                    {"×", "$\\times$"},
                                                                    {"…", "\\ldots{}"}};

std::string LatexRow(const std::vector<std::string>& cells) {
  std::vector<std::string> texts;
  for (const std::string& cell : cells) {
    const bool negative = cell.size() > 1 && cell[0] == '-' &&
                          cell.find_first_not_of("0123456789.", 1) == std::string::npos;
    texts.push_back(negative ? Concat("$-$", LatexText(cell.substr(1))) : LatexText(cell));
  }
  return Concat("    ", Join(texts, " & "), " \\\\\n");
}

// Escapes Markdown's special characters. A "|" that is not escaped would end the cell.
std::string MarkdownText(const std::string& text) {
  std::string out;
  for (const char c : render::Escape(text)) {
    if (std::string_view("\\`*_{}[]<>|#~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string MarkdownRow(const std::vector<std::string>& cells, const std::vector<int>& widths,
                        const std::vector<PaperTable::Column>& columns) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += Concat(" ",
                   columns[i].right ? render::PadLeft(cells[i], widths[i])
                                    : render::PadRight(cells[i], widths[i]),
                   " |");
  }
  return line + "\n";
}

std::vector<std::string> Titles(const PaperTable& table) {
  std::vector<std::string> titles;
  for (const PaperTable::Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

std::string LatexText(const std::string& text) {
  const std::string shown = render::Escape(text);
  std::string out;
  for (std::size_t i = 0; i < shown.size();) {
    const std::string_view rest = std::string_view(shown).substr(i);
    const auto found = std::find_if(std::begin(kLatex), std::end(kLatex), [&](const auto& entry) {
      return rest.starts_with(entry.first);
    });
    if (found == std::end(kLatex)) {
      out += shown[i++];
    } else {
      out += found->second;
      i += found->first.size();
    }
  }
  return out;
}

std::string ToLatex(const PaperTable& table) {
  std::string format;
  for (const PaperTable::Column& column : table.columns) format += column.right ? 'r' : 'l';
  std::string text =
      Concat("% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n", "  \\caption{",
             LatexText(table.caption), "}\n", "  \\begin{tabular}{", format, "}\n    \\toprule\n",
             LatexRow(Titles(table)), "    \\midrule\n");
  for (const std::vector<std::string>& row : table.rows) text += LatexRow(row);
  text += "    \\bottomrule\n  \\end{tabular}\n";
  for (const std::string& note : table.notes) {
    text += Concat("  \\par\\footnotesize ", LatexText(note), "\n");
  }
  return text + "\\end{table}\n";
}

std::string ToMarkdown(const PaperTable& table) {
  std::vector<std::vector<std::string>> lines = {Titles(table)};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<int> widths(table.columns.size(), 3);
  for (std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = MarkdownText(line[i]);
      widths[i] = std::max(widths[i], render::DisplayWidth(line[i]));
    }
  }
  std::string text = table.caption.empty() ? "" : Concat(MarkdownText(table.caption), "\n\n");
  text += MarkdownRow(lines.front(), widths, table.columns) + "|";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto dashes = static_cast<std::size_t>(widths[i]);
    text += Concat(" ", std::string(dashes - (table.columns[i].right ? 1 : 0), '-'),
                   table.columns[i].right ? ":" : "", " |");
  }
  text += "\n";
  for (std::size_t row = 1; row < lines.size(); ++row) {
    text += MarkdownRow(lines[row], widths, table.columns);
  }
  for (const std::string& note : table.notes) text += Concat("\n", MarkdownText(note), "\n");
  return text;
}

}  // namespace pelab::client
