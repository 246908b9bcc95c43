#include "core/db/read/spec_filter.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <string_view>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/db/connection.h"
#include "core/db/read/where.h"
#include "migrations/sqlite_message.h"

namespace pelab::db {
namespace {

constexpr std::string_view kNames[] = {"pe", "pe_label", "task", "protocol"};

}  // namespace

// The tables that compiled conditions read, in memory.
struct SpecFilter::Tables {
  SQLite::Database db{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
};

SpecFilter::SpecFilter(const std::vector<experiment::Cell>& cells)
    : tables_(std::make_unique<Tables>()) {
  SQLite::Database& db = tables_->db;
  db.exec(
      "CREATE TABLE v_jobs (job_id INTEGER PRIMARY KEY, configuration_id, pe, pe_label, task, "
      "protocol, spec_json);"
      "CREATE TABLE configurations (configuration_id INTEGER PRIMARY KEY, template)");
  SQLite::Transaction transaction(db);
  SQLite::Statement job(db, "INSERT INTO v_jobs VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6)");
  SQLite::Statement configuration(db, "INSERT INTO configurations VALUES (?, ?)");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const experiment::Cell& cell = cells[i];
    const auto id = static_cast<std::int64_t>(i);
    BindAll(job, {id, cell.job.pe, cell.pe_label, cell.task_label, cell.protocol_label,
                  cell.canonical_json});
    BindAll(configuration, {id, cell.canonical_json});
    job.exec();
    configuration.exec();
    job.reset();
    configuration.reset();
  }
  transaction.commit();
}

SpecFilter::~SpecFilter() = default;

bool SpecFilter::IsField(const std::string& name) {
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  const auto& fields = catalog::Fields();
  return std::any_of(fields.begin(), fields.end(), [&](const catalog::Field& field) {
    return field.name == name && !catalog::IsAnalysisField(field);
  });
}

absl::StatusOr<std::vector<std::size_t>> SpecFilter::Matching(const std::string& where) {
  PELAB_ASSIGN_OR_RETURN(const auto fields, FieldsOfWhere(where));
  PELAB_ASSIGN_OR_RETURN(const Expression condition, CompileWhere(where));
  for (const std::string& field : fields) {
    if (IsField(field)) continue;
    return absl::InvalidArgumentError(Concat("condition on ", field,
                                             ": a cell is chosen by fields of its spec, not by ",
                                             field == "seed" ? "its seed" : "results"));
  }
  try {
    SQLite::Statement query(tables_->db, Concat("SELECT job_id FROM v_jobs AS j WHERE ",
                                                condition.sql, " ORDER BY job_id"));
    BindAll(query, condition.binds);
    std::vector<std::size_t> found;
    while (query.executeStep()) {
      found.push_back(static_cast<std::size_t>(query.getColumn(0).getInt64()));
    }
    return found;
  } catch (const SQLite::Exception& error) {
    return absl::InvalidArgumentError(
        Concat("a condition that SQLite refuses: ", migrations::MessageOf(error)));
  }
}

}  // namespace pelab::db
