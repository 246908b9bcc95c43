// Tables for a paper: LaTeX (booktabs) and Markdown. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

namespace pelab::client {

struct PaperTable {
  struct Column {
    std::string title;
    bool right = false;  // figures
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::vector<std::string> notes;              // below it: what its marks mean
};

// Text as LaTeX shows it: its special characters escaped; "±" and "−" as mathematics. Control
// characters are escaped as on a terminal.
std::string LatexText(const std::string& text);

// A table environment with a tabular of booktabs; a comment names the package.
std::string ToLatex(const PaperTable& table);

// A table of GitHub's Markdown with aligned columns, its caption above and its notes below.
std::string ToMarkdown(const PaperTable& table);

}  // namespace pelab::client
