// The tables of an export: which columns they have, and what these mean. What the README says of
// them is made from here.
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
  std::string row;   // what a row is, and how rows are ordered
  std::vector<ExportColumn> columns;

  std::vector<std::string> Names() const;
};

// `fields` of the specs are further columns, `cells` those that tell the groups apart.
ExportTable JobsTable(const std::vector<std::string>& fields);
ExportTable SummaryTable(const std::vector<std::string>& cells);
ExportTable CurvesTable();
ExportTable HeadAblationsTable();
ExportTable DepositsTable();
ExportTable AnalysesTable();
ExportTable AttemptsTable();

}  // namespace pelab::client
