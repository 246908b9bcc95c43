#include "core/db/read/expression.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/strings.h"

namespace pelab::db {
namespace {

// SQLite parses `a OR b OR c` with constant stack depth, but into a tree as deep as there are
// terms. Trees may be at most 1,000 deep, so long lists become lists of lists.
constexpr std::size_t kInARow = 32;
constexpr std::string_view kNegation = "NOT ";

Expression Joined(std::vector<Expression> parts, std::string_view word) {
  if (parts.size() == 1) return std::move(parts.front());
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Expression& a, const Expression& b) { return a.nesting > b.nesting; });
  Expression out;
  out.sql = "(";
  for (Expression& part : parts) {
    const bool first = &part == &parts.front();
    if (!first) out.sql += Concat(" ", word, " ");
    out.sql += part.sql;
    std::move(part.binds.begin(), part.binds.end(), std::back_inserter(out.binds));
    // Before the first part the stack holds "(". Before any other part it holds "(", the earlier
    // parts, and AND or OR.
    out.nesting = std::max(out.nesting, part.nesting + (first ? 1 : 3));
  }
  out.sql += ")";
  return out;
}

Expression Combined(std::vector<Expression> parts, std::string_view word) {
  while (parts.size() > kInARow) {
    std::vector<Expression> rows;
    for (std::size_t at = 0; at < parts.size(); at += kInARow) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = begin + static_cast<std::ptrdiff_t>(std::min(kInARow, parts.size() - at));
      rows.push_back(Joined({std::make_move_iterator(begin), std::make_move_iterator(end)}, word));
    }
    parts = std::move(rows);
  }
  return Joined(std::move(parts), word);
}

}  // namespace

Expression AnyOf(std::vector<Expression> parts) { return Combined(std::move(parts), "OR"); }

Expression AllOf(std::vector<Expression> parts) { return Combined(std::move(parts), "AND"); }

Expression Not(Expression expression) {
  if (expression.sql.starts_with(kNegation)) {  // not not x
    expression.sql.erase(0, kNegation.size());
    expression.nesting -= 1;
  } else {
    expression.sql.insert(0, kNegation);
    expression.nesting += 1;
  }
  return expression;
}

}  // namespace pelab::db
