// Streams rows page by page as CSV, as JSON Lines, or as the last member of a JSON value. If
// reading fails midway, the rows already written stay, and the error follows them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "core/render/json.h"

namespace pelab::client {

// Not thread-safe.
class RowStream {
 public:
  enum class Form { kCsv, kJson, kJsonLines };

  // `value` is the JSON value around the rows; its last member is an empty array, where the rows
  // go. `columns` are the columns of the CSV.
  RowStream(const Context& context, const render::Json& value,
            const std::vector<std::string>& columns);

  Form form() const { return form_; }

  // `append(row, text)` appends one row in this form. A CSV or JSON Lines row includes its newline.
  // A JSON row is indented as render::ToJson indents an array element of a member, without a comma.
  template <typename Row, typename Append>
  void Add(const Row& row, Append append) {
    BeginRow();
    append(row, text_);
  }
  // Adds a row that is a JSON object.
  void Add(render::Json row);
  // Writes the rows added so far. ABORTED if standard output has failed, so the caller can stop
  // reading.
  absl::Status EndPage();

  // Ends the stream; `status` is the result of reading. Call EndPage after the last row first: JSON
  // rows that it has not written are lost. If JSON rows were already written, an error becomes the
  // last member of the value, "error", and determines the exit status.
  absl::StatusOr<int> Finish(const absl::Status& status);

 private:
  void BeginRow();
  bool OutputFailed() const;

  const Context& context_;
  const Form form_;
  const std::vector<std::string> columns_;
  std::string text_;   // not written yet
  bool some_ = false;  // at least one row was added
};

}  // namespace pelab::client
