// The one writing connection: opening, migration and a cache of prepared statements. One thread at
// a time may use it. All methods except Open throw SQLite::Exception, which Store turns into a
// status.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/utf8.h"

namespace pelab::store {

// A cached statement with its parameters bound. The destructor resets it.
//
//   Query q = db.Run("SELECT state FROM jobs WHERE job_id = ?", job_id);
//   if (q.Step()) use(q.Text(0));
class Query {
 public:
  explicit Query(SQLite::Statement* statement) : statement_(statement) {}
  Query(Query&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Query& operator=(Query&&) = delete;
  ~Query();

  bool Step() { return statement_->executeStep(); }
  std::int64_t Int(int column) const { return statement_->getColumn(column).getInt64(); }
  double Real(int column) const { return statement_->getColumn(column).getDouble(); }
  // Texts become parts of messages, which must be UTF-8; a file may hold others.
  std::string Text(int column) const {
    return ValidUtf8(statement_->getColumn(column).getString());
  }
  bool IsNull(int column) const { return statement_->getColumn(column).isNull(); }

 private:
  SQLite::Statement* statement_;
};

struct Blob {
  const std::string& data;
};

// The value to bind: NULL if there is none.
template <typename T>
std::optional<T> If(bool has, const T& value) {
  return has ? std::optional<T>(value) : std::nullopt;
}

// Returns `sql` with COLUMNS replaced by the fields of a message ("epoch, train_loss, …"), and
// PARAMETERS by one `?` for each. A field has the name of its column, so the columns of an epoch or
// of a claim are listed in the protocol and in the schema only. The text is never freed, because
// its address is the key of a prepared statement: call this once for each text.
const char* SqlFor(const google::protobuf::Descriptor* message, const char* sql);

class Database {
 public:
  // Opens or creates `path` (":memory:" for tests) and migrates it to the newest schema in one
  // transaction. FAILED_PRECONDITION if it is not a pelab database, or is from a newer version (the
  // message names both versions); DATA_LOSS if the file is damaged; otherwise the error of SQLite
  // or the system. `vfs` names a registered SQLite VFS; empty: the default one.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        const std::string& vfs = "");

  // Binds `args` to the parameters in order; a message binds one parameter for each of its fields,
  // which must be numbers or texts. `sql` must live as long as the database: its address is the
  // cache's key.
  template <typename... Args>
  Query Run(const char* sql, const Args&... args) {
    SQLite::Statement& statement = Prepare(sql);
    [[maybe_unused]] int index = 0;
    ((index = BindNext(statement, index + 1, args)), ...);
    return Query(&statement);
  }
  // For statements that return no rows. Returns the number of rows changed.
  template <typename... Args>
  int Execute(const char* sql, const Args&... args) {
    Query query = Run(sql, args...);
    query.Step();
    return connection_.getChanges();
  }
  std::int64_t LastId() const { return connection_.getLastInsertRowid(); }

  // Runs a WAL checkpoint: copies the WAL's pages into the database file. With `truncate` it also
  // empties the WAL. Returns false if some pages remain, for instance because readers were in the
  // way.
  bool Checkpoint(bool truncate);

  // How much of the WAL is in use, as of this connection's last commit.
  std::int64_t WalBytes() const { return wal_pages_ * page_bytes_; }

  // Whether the file was renamed, removed or replaced since it was opened. SQLite would go on
  // writing into the old file, which nobody finds again. Costs one stat; does not throw.
  bool Moved();

  SQLite::Database& connection() { return connection_; }

 private:
  Database(const std::string& path, const std::string& vfs);
  void CountWalPages();
  SQLite::Statement& Prepare(const char* sql);

  // Binds `v` from the parameter `i` on. Returns the last parameter that was bound.
  template <typename T>
  static int BindNext(SQLite::Statement& s, int i, const T& v) {
    if constexpr (std::is_base_of_v<google::protobuf::Message, T>) {
      return BindFields(s, i, v);
    } else {
      Bind(s, i, v);
      return i;
    }
  }
  static int BindFields(SQLite::Statement& s, int i, const google::protobuf::Message& message);
  static void Bind(SQLite::Statement& s, int i, std::int64_t v) { s.bind(i, v); }
  static void Bind(SQLite::Statement& s, int i, std::uint64_t v) {
    s.bind(i, static_cast<std::int64_t>(v));
  }
  static void Bind(SQLite::Statement& s, int i, int v) { s.bind(i, v); }
  static void Bind(SQLite::Statement& s, int i, bool v) { s.bind(i, v ? 1 : 0); }
  static void Bind(SQLite::Statement& s, int i, double v) { s.bind(i, v); }
  static void Bind(SQLite::Statement& s, int i, const char* v) { s.bind(i, v); }
  static void Bind(SQLite::Statement& s, int i, const std::string& v) { s.bind(i, v); }
  static void Bind(SQLite::Statement& s, int i, std::string_view v) { s.bind(i, std::string(v)); }
  static void Bind(SQLite::Statement& s, int i, const Blob& v) {
    s.bind(i, v.data.data(), static_cast<int>(v.data.size()));
  }
  template <typename T>
  static void Bind(SQLite::Statement& s, int i, const std::optional<T>& v) {
    if (v) {
      Bind(s, i, *v);
    } else {
      s.bind(i);
    }
  }

  SQLite::Database connection_;
  std::int64_t wal_pages_ = 0;
  std::int64_t page_bytes_ = 0;
  std::unordered_map<const char*, std::unique_ptr<SQLite::Statement>> statements_;
};

// Maps an SQLite error to a status: RESOURCE_EXHAUSTED for a full disk or a failed write, DATA_LOSS
// for a damaged file, UNAVAILABLE for a busy one, and others by their meaning.
absl::Status ToStatus(const SQLite::Exception& error, absl::string_view what);

}  // namespace pelab::store
