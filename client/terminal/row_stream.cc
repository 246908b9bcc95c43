#include "client/terminal/row_stream.h"

#include <string_view>
#include <utility>
#include <vector>

#include "client/terminal/errors.h"

namespace pelab::client {
namespace {

constexpr std::string_view kNoRows = "[]\n}\n";

RowStream::Form FormOf(const Context& context) {
  if (context.output() == Output::kCsv) return RowStream::Form::kCsv;
  return context.options.json_lines() ? RowStream::Form::kJsonLines : RowStream::Form::kJson;
}

}  // namespace

RowStream::RowStream(const Context& context, const render::Json& value,
                     const std::vector<std::string>& columns)
    : context_(context), form_(FormOf(context)), columns_(columns) {
  if (form_ == Form::kCsv) text_ = render::CsvHeader(columns_);
  if (form_ == Form::kJson) text_ = render::ToJson(value);
}

void RowStream::BeginRow() {
  if (form_ == Form::kJson) {
    if (!some_) text_.resize(text_.size() - kNoRows.size());
    text_ += some_ ? ",\n" : "[\n";
  }
  some_ = true;
}

void RowStream::Add(render::Json row) {
  BeginRow();
  if (form_ == Form::kJsonLines) {
    text_ += render::ToJson(row, /*one_line=*/true);
  } else if (form_ == Form::kCsv) {
    render::AppendCsv(columns_, row, text_);
  } else {
    constexpr std::string_view kBefore = "{\n  \"rows\": [\n", kAfter = "\n  ]\n}\n";
    render::Json value = {{"rows", render::Json::array()}};
    value["rows"].push_back(std::move(row));
    const std::string object = render::ToJson(value);
    text_ += object.substr(kBefore.size(), object.size() - kBefore.size() - kAfter.size());
  }
}

absl::Status RowStream::EndPage() {
  // No row yet: reading may still fail, and then the error is the whole value.
  if (form_ == Form::kJson && !some_) return absl::OkStatus();
  context_.out(text_);
  text_.clear();
  return OutputFailed() ? absl::AbortedError("standard output failed") : absl::OkStatus();
}

bool RowStream::OutputFailed() const { return context_.out_failed && context_.out_failed(); }

absl::StatusOr<int> RowStream::Finish(const absl::Status& status) {
  if (OutputFailed()) return kExitOk;  // main reports the failure
  if (form_ != Form::kJson || !some_) {
    if (!status.ok()) return status;
    context_.out(text_);
    return kExitOk;
  }
  context_.out(status.ok() ? "\n  ]\n}\n" : "\n  ],\n" + ErrorMember(status));
  return status.ok() ? kExitOk : ExitCodeOf(status);
}

}  // namespace pelab::client
