#include "client/terminal/grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::render {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kMostMarks = 6;  // marks in one cell; more seeds are shown as counts
constexpr int kLargestLabel = 32;

struct MarkKind {
  Grid::Mark mark;
  const char* glyph;
  const char* plain;  // without color
  const char* sgr;
  const char* name;
};
constexpr std::array<MarkKind, 5> kMarkKinds = {{
    {Grid::Mark::kSucceeded, "✓", "o", "32", "succeeded"},
    {Grid::Mark::kRunning, "▸", ">", "36", "running"},
    {Grid::Mark::kQueued, "·", ".", "2", "waiting"},
    {Grid::Mark::kFailed, "✕", "x", "31", "failed"},
    {Grid::Mark::kCancelled, "–", "-", "2", "cancelled"},
}};

std::string MarkText(const MarkKind& kind, const Style& style) {
  return style.color ? Paint(style, kind.sgr, kind.glyph) : kind.plain;
}

std::string Marks(const std::vector<Grid::Mark>& seeds, const Style& style) {
  std::string text;
  if (seeds.size() <= kMostMarks) {
    for (const Grid::Mark mark : seeds) {
      for (const MarkKind& kind : kMarkKinds) {
        if (kind.mark == mark) text += MarkText(kind, style);
      }
    }
    return text;
  }
  for (const MarkKind& kind : kMarkKinds) {
    const auto count = std::count(seeds.begin(), seeds.end(), kind.mark);
    if (count > 0) text += Concat(text.empty() ? "" : " ", count, MarkText(kind, style));
  }
  return text;
}

std::string Accuracy(const Grid::Cell& cell) {
  return cell.accuracy ? (cell.complete ? "" : "~") + Fixed(*cell.accuracy, 3) : "-";
}

// How much of each cell is shown.
enum class Detail { kAll, kNoCurve, kMarks };

struct Layout {
  Detail detail = Detail::kAll;
  int label = 0;
  std::vector<std::vector<std::string>> texts;              // by row and task
  std::vector<int> widths;                                  // by task
  std::vector<std::pair<std::size_t, std::size_t>> blocks;  // ranges of tasks: first, one past the
                                                            // last
};

// Pads the parts of a cell to the same width in every row, so that they align.
std::vector<std::string> ColumnTexts(const Grid& grid, std::size_t task, Detail detail,
                                     const Style& style) {
  int marks = 0;
  int accuracy = 0;
  for (const Grid::Row& row : grid.rows) {
    const auto& cell = row.cells[task];
    if (!cell) continue;
    marks = std::max(marks, DisplayWidth(Marks(cell->seeds, style)));
    accuracy = std::max(accuracy, DisplayWidth(Accuracy(*cell)));
  }
  std::vector<std::string> texts;
  for (const Grid::Row& row : grid.rows) {
    const auto& cell = row.cells[task];
    std::string text;
    if (cell) {
      text = PadRight(Marks(cell->seeds, style), marks);
      if (detail == Detail::kAll) text += " " + Sparkline(cell->curve, style);
      if (detail != Detail::kMarks) text += " " + PadLeft(Accuracy(*cell), accuracy);
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Layout LayOut(const Grid& grid, Detail detail, const Style& style) {
  Layout layout;
  layout.detail = detail;
  layout.label = DisplayWidth(Escape(grid.title));
  for (const Grid::Row& row : grid.rows) {
    layout.label = std::max(layout.label, DisplayWidth(Escape(row.label)));
  }
  layout.label = std::min({layout.label, kLargestLabel, style.width / 2});
  layout.texts.resize(grid.rows.size());
  int used = 0;
  for (std::size_t task = 0; task < grid.tasks.size(); ++task) {
    const std::vector<std::string> texts = ColumnTexts(grid, task, detail, style);
    int width = DisplayWidth(Escape(grid.tasks[task]));
    for (std::size_t row = 0; row < texts.size(); ++row) {
      width = std::max(width, DisplayWidth(texts[row]));
      layout.texts[row].push_back(texts[row]);
    }
    layout.widths.push_back(width);
    used += static_cast<int>(kGap) + width;
    if (layout.blocks.empty() || layout.label + used > style.width) {
      layout.blocks.emplace_back(task, task);
      used = static_cast<int>(kGap) + width;
    }
    layout.blocks.back().second = task + 1;
  }
  return layout;
}

std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Block(const Grid& grid, const Layout& layout, std::size_t block, std::size_t rows,
                  const Style& style) {
  const auto [first, last] = layout.blocks[block];
  const std::string gap(kGap, ' ');
  std::string title = PadRight(Truncate(Escape(grid.title), layout.label), layout.label);
  for (std::size_t task = first; task < last; ++task) {
    title +=
        gap + PadRight(TruncateMiddle(Escape(grid.tasks[task]), style.width - layout.label - 2),
                       layout.widths[task]);
  }
  title.erase(title.find_last_not_of(' ') + 1);
  std::string text = Paint(style, "1", title) + "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line =
        PadRight(TruncateMiddle(Escape(grid.rows[row].label), layout.label), layout.label);
    for (std::size_t task = first; task < last; ++task) {
      line += gap + PadRight(layout.texts[row][task], layout.widths[task]);
    }
    text += Trimmed(std::move(line));
  }
  return text;
}

bool IsThere(const Grid& grid, Grid::Mark mark) {
  for (const Grid::Row& row : grid.rows) {
    for (const auto& cell : row.cells) {
      if (cell && std::count(cell->seeds.begin(), cell->seeds.end(), mark) > 0) return true;
    }
  }
  return false;
}

// "✓ succeeded  ▸ running  test accuracy 0-1 by epoch", on as many lines as needed.
std::vector<std::string> Explanation(const Grid& grid, Detail detail, std::size_t rows,
                                     const Style& style) {
  std::vector<std::string> pieces;
  const std::size_t left_out = grid.rows.size() - rows;
  if (left_out > 0) pieces.push_back(Concat("and ", left_out, " more rows"));
  for (const MarkKind& kind : kMarkKinds) {
    if (IsThere(grid, kind.mark)) pieces.push_back(MarkText(kind, style) + " " + kind.name);
  }
  if (detail == Detail::kAll) pieces.emplace_back("test accuracy 0-1 by epoch");
  if (detail == Detail::kNoCurve) pieces.emplace_back("test accuracy");
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    const bool fits =
        !lines.empty() &&
        DisplayWidth(lines.back()) + static_cast<int>(kGap) + DisplayWidth(piece) <= style.width;
    if (fits) {
      lines.back() += std::string(kGap, ' ') + piece;
    } else {
      lines.push_back(piece);
    }
  }
  return lines;
}

}  // namespace

std::string Sparkline(const std::vector<double>& values, const Style& style) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kPlain = "_.:-=+*#";
  std::string text;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      text += ' ';
      continue;
    }
    const auto level = static_cast<std::size_t>(std::clamp(std::floor(value * 8), 0.0, 7.0));
    if (style.color) {
      text += kBars[level];
    } else {
      text += kPlain[level];
    }
  }
  return text;
}

std::string GridText(const Grid& grid, const Style& style, int max_lines) {
  if (grid.empty()) return "";
  std::size_t rows = grid.rows.size();
  Layout layout;
  const auto fits = [&] {
    const std::size_t lines =
        layout.blocks.size() * (rows + 1) + Explanation(grid, layout.detail, rows, style).size();
    return max_lines <= 0 || lines <= static_cast<std::size_t>(max_lines);
  };
  for (const Detail detail : {Detail::kAll, Detail::kNoCurve, Detail::kMarks}) {
    layout = LayOut(grid, detail, style);
    if (fits()) break;
  }
  while (rows > 1 && !fits()) --rows;
  std::string text;
  for (std::size_t block = 0; block < layout.blocks.size(); ++block) {
    text += Block(grid, layout, block, rows, style);
  }
  for (const std::string& line : Explanation(grid, layout.detail, rows, style)) text += line + "\n";
  return text;
}

}  // namespace pelab::render
