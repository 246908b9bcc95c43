#include "core/db/read/sweep_figures.h"

#include <utility>

#include "core/base/status.h"
#include "core/db/connection.h"
#include "core/db/raw_statement.h"

namespace pelab::db {
namespace {

constexpr const char* kJobStateColumns[] = {"queued",    "assigned", "running",
                                            "succeeded", "failed",   "cancelled"};
constexpr const char* kSweepStateNames[] = {"expanding", "active", "finished", "cancelled"};

// Adds the six columns of job counts that begin at `first`.
void AddJobColumns(const RawStatement& row, int first, SweepFigures::ByState& jobs) {
  for (const char* const state : kJobStateColumns) jobs[state] += row.Integer(first++);
}

SweepFigures QuerySweepFigures(Connection& db, std::size_t most_live) {
  SweepFigures figures;
  for (const char* const state : kSweepStateNames) figures.sweeps[state] = 0;
  RawStatement all(db,
                   "SELECT state, count(*), sum(queued), sum(assigned), sum(running), "
                   "sum(succeeded), sum(failed), sum(cancelled) FROM v_sweeps GROUP BY state");
  for (const char* const state : kJobStateColumns) figures.jobs[state] = 0;
  while (all.Step()) {
    figures.sweeps[all.Text(0)] = all.Integer(1);
    AddJobColumns(all, 2, figures.jobs);
  }
  if (most_live == 0) return figures;
  RawStatement live(db,
                    "SELECT sweep_id, name, queued, assigned, running, succeeded, failed, "
                    "cancelled FROM v_sweeps WHERE state IN ('expanding', 'active') "
                    "ORDER BY sweep_id DESC LIMIT ?");
  live.Bind(1, static_cast<std::int64_t>(most_live));
  while (live.Step()) {
    SweepFigures::Live& sweep = figures.live.emplace_back();
    sweep.sweep_id = live.Integer(0);
    sweep.name = live.Text(1);
    AddJobColumns(live, 2, sweep.jobs);
  }
  return figures;
}

}  // namespace

SweepFiguresReader::SweepFiguresReader(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
SweepFiguresReader::~SweepFiguresReader() = default;

absl::StatusOr<std::unique_ptr<SweepFiguresReader>> SweepFiguresReader::Open(
    const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection, Connection::Open(path));
  return std::unique_ptr<SweepFiguresReader>(new SweepFiguresReader(std::move(connection)));
}

absl::StatusOr<SweepFigures> SweepFiguresReader::Read(std::size_t most_live) {
  return connection_->Read([&](Connection& db) -> absl::StatusOr<SweepFigures> {
    return QuerySweepFigures(db, most_live);
  });
}

}  // namespace pelab::db
