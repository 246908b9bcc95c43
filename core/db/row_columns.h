// The columns of a row message, such as v1::JobRow: a query selects them, and fills the message
// from its results by the message's descriptor. So no other code has to list the columns. A field
// has the name of its column; only a time's field ends in "_at_ms" where its column ends in "_at".
// Internal to core/db; call inside Connection::Read.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <set>
#include <string>
#include <vector>

#include "core/db/raw_statement.h"

namespace pelab::db {

// Immutable, so thread-safe.
class RowColumns {
 public:
  // The fields of `row` in their order, except repeated fields, messages and the fields in
  // `without`.
  explicit RowColumns(const google::protobuf::Descriptor* row,
                      const std::set<std::string>& without = {});

  // "job_id, name, created_at", to be selected first.
  const std::string& sql() const { return sql_; }
  int size() const { return static_cast<int>(fields_.size()); }

  // Fills the fields of an empty `row` from the current row of `query`. A NULL leaves its field
  // unset. States are text in lower case. Returns the bytes of text that it read.
  std::size_t Read(const RawStatement& query, google::protobuf::Message& row) const;

 private:
  std::vector<const google::protobuf::FieldDescriptor*> fields_;
  std::string sql_;
};

// All columns of a kind of row.
template <typename Row>
const RowColumns& ColumnsOf() {
  static const auto& columns = *new RowColumns(Row::descriptor());
  return columns;
}

}  // namespace pelab::db
