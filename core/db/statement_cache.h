// The prepared statements of one connection, kept for the next query with the same text. To prepare
// a query of v_jobs takes SQLite about 150 us, ten times as long as to read one job with it.
// Internal to core/db. Not thread-safe.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>

namespace pelab::db {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class StatementCache {
 public:
  static constexpr std::size_t kMost = 48;            // statements; the oldest go first
  static constexpr std::size_t kLongestText = 16384;  // bytes; a longer query comes but once

  // A statement of this text that nobody uses, reset and without values; null if there is none.
  StatementPtr Take(const std::string& sql) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const Kept& kept) { return kept.first == sql; });
    if (found == kept_.end()) return nullptr;
    StatementPtr statement = std::move(found->second);
    kept_.erase(found);
    return statement;
  }

  void GiveBack(std::string sql, StatementPtr statement) {
    if (sql.size() > kLongestText) return;
    sqlite3_reset(statement.get());  // repeats the error of the last step, which was reported
    sqlite3_clear_bindings(statement.get());
    kept_.emplace_front(std::move(sql), std::move(statement));
    if (kept_.size() > kMost) kept_.pop_back();
  }

  std::size_t size() const { return kept_.size(); }

 private:
  using Kept = std::pair<std::string, StatementPtr>;
  std::list<Kept> kept_;  // the last used first
};

}  // namespace pelab::db
