// Rows as JSON objects and CSV: every column of the documented views under its own name, numbers
// exactly as stored, and null for absent values. The names and their order are those of the fields
// of the row messages (results.proto, admin.proto). Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/render/json.h"
#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::results {

// One row of any kind. States are lower case; a field with JSON text becomes its value.
render::Json ToJson(const google::protobuf::Message& row);
render::Json ToJson(const v1::JobRow& row, const std::string& spec_json);
render::Json ToJson(const v1::WorkerRow& row);  // without what a coordinator adds to it
render::Json ToJson(const v1::Sweep& sweep);
render::Json ToJson(const v1::JobCounts& counts);

// The columns of a kind of row in CSV: those of v1::JobRow, CurveRow, HeadAblationRow, DepositRow,
// AnalysisRow, ArtifactRow, WorkerRow, AuditRow and Sweep. The first call makes them, because the
// descriptors behind them would cost each start of a program a millisecond.
template <typename Row>
const std::vector<std::string>& ColumnsOf();

// The line of a job in CSV, as render::AppendCsv makes it of the JSON object. A spec is stored in
// the form in which JSON is written (RFC 8785), so it goes there without being parsed.
void AppendJobCsv(const v1::JobRow& row, const std::string& spec_json, std::string& out);

// A curve's rows as text, fast enough for millions of them. AppendCsv appends the line that
// render::AppendCsv makes with ColumnsOf<v1::CurveRow>(). AppendJson appends what render::ToJson
// writes for one element of a list that is an object's member, without a comma.
void AppendCsv(const v1::CurveRow& row, std::string& out);
void AppendJson(const v1::CurveRow& row, std::string& out);
// The same object on a line of its own.
void AppendJsonLine(const v1::CurveRow& row, std::string& out);

template <typename Rows>
render::Json ToJsonArray(const Rows& rows) {
  render::Json array = render::Json::array();
  for (const auto& row : rows) array.push_back(ToJson(row));
  return array;
}
render::Json ToJsonArray(const JobList& jobs);

}  // namespace pelab::results
