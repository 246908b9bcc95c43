// Rows that go out page by page, as CSV, as JSON Lines or as the last member of a JSON value: where
// reading breaks off, what is out stays, and the error follows.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/options.h"
#include "core/render/json.h"

namespace pelab::client {

// Not thread-safe.
class RowStream {
 public:
  enum class Form { kCsv, kJson, kJsonLines };

  // `value` is the JSON value with an empty array as its last member, where the rows go; `columns`
  // are those of the CSV.
  RowStream(const Context& context, const render::Json& value,
            const std::vector<std::string>& columns);

  Form form() const { return form_; }

  // `append(row, text)` adds a row in this form: as CSV and JSON Lines with the newline at its end,
  // as JSON what render::ToJson makes of an element of an object's member, without a comma.
  template <typename Row, typename Append>
  void Add(const Row& row, Append append) {
    BeginRow();
    append(row, text_);
  }
  // A row as an object.
  void Add(const render::Json& row);
  // Puts out what was added. ABORTED where nobody gets it any more: reading on is of no use.
  absl::Status EndPage();

  // What reading ended with. An error that comes when JSON rows are out becomes a last member of the
  // value, "error", and the command's exit status.
  absl::StatusOr<int> Finish(const absl::Status& status);

 private:
  void BeginRow();
  bool OutputFailed() const;

  const Context& context_;
  const Form form_;
  const std::vector<std::string> columns_;
  std::string text_;   // that is not out yet
  bool some_ = false;  // rows have come
};

}  // namespace pelab::client
