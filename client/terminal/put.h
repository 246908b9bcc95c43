// Writes what a command answers in the form that --output asks for. As thread-safe as the context.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/options/options.h"
#include "core/render/json.h"

namespace pelab::client {

// An answer in all forms. A function is called only if its form is asked for.
struct Answer {
  std::function<render::Json()> json = nullptr;  // one value
  std::function<std::string()> text = nullptr;   // for people, whole lines
  // The name of the member of `json` that has the rows; jsonl and csv have a line for each. Empty:
  // the whole value is the only row.
  std::string rows = "";
  std::vector<std::string> columns = {};        // of the CSV; empty: all members of the first row
  std::function<render::Json()> csv = nullptr;  // the rows of the CSV if they are not `rows`
};

// Writes the answer and returns kExitOk.
int Put(const Context& context, const Answer& answer);

// Writes one row of names and values; as a table, `text`. `columns` as in Answer. Returns kExitOk.
int PutRow(const Context& context, const render::Json& row, const std::string& text,
           const std::vector<std::string>& columns = {});

}  // namespace pelab::client
