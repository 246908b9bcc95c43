// The tables of an export: their columns and the meaning of each. The export's README takes its
// text about them from here.
#pragma once

#include <string>
#include <vector>

namespace pelab::client {

struct ExportColumn {
  std::string name;
  std::string meaning;  // with its unit
};
struct ExportTable {
  std::string file;  // "curves.csv"
  std::string row;   // what a row is, and the order of rows
  std::vector<ExportColumn> columns;

  std::vector<std::string> Names() const;
};

// `fields` are extra columns for fields of the specs; `cells` are the columns that identify the
// groups.
ExportTable JobsTable(const std::vector<std::string>& fields);
ExportTable SummaryTable(const std::vector<std::string>& cells);
ExportTable CurvesTable();
ExportTable HeadAblationsTable();
ExportTable DepositsTable();
ExportTable AnalysesTable();
ExportTable AttemptsTable();

}  // namespace pelab::client
