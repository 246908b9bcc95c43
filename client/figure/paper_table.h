// Tables for papers: LaTeX (booktabs) and Markdown. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

namespace pelab::client {

struct PaperTable {
  struct Column {
    std::string title;
    bool right = false;  // right-aligned, for numbers
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::vector<std::string> notes;              // printed below the table, for example the meaning
                                               // of its marks
};

// The text in LaTeX: special characters are escaped, "±" and "−" become math. Control characters
// are escaped as on a terminal.
std::string LatexText(const std::string& text);

// A table environment with a booktabs tabular; a comment names the package.
std::string ToLatex(const PaperTable& table);

// A GitHub Markdown table with aligned columns, the caption above it and the notes below.
std::string ToMarkdown(const PaperTable& table);

}  // namespace pelab::client
