// Head ablations, deposit indices and other analyses.
#include <cstdint>

#include "core/base/strings.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

// Reads the columns of a row in order, each once.
class Columns {
 public:
  explicit Columns(SQLite::Statement& query) : query_(query) {}

  std::int64_t Int() { return query_.getColumn(i_++).getInt64(); }
  std::string Text() { return query_.getColumn(i_++).getString(); }
  // Calls `set` unless the column is NULL.
  template <typename Set>
  void IfInt(const Set& set) {
    if (const SQLite::Column c = query_.getColumn(i_++); !c.isNull()) set(c.getInt64());
  }
  template <typename Set>
  void IfReal(const Set& set) {
    if (const SQLite::Column c = query_.getColumn(i_++); !c.isNull()) set(c.getDouble());
  }
  template <typename Set>
  void IfText(const Set& set) {
    if (const SQLite::Column c = query_.getColumn(i_++); !c.isNull()) set(c.getString());
  }

 private:
  SQLite::Statement& query_;
  int i_ = 0;
};

v1::HeadAblationRow ReadHead(SQLite::Statement& query) {
  v1::HeadAblationRow row;
  Columns next(query);
  row.set_job_id(next.Int());
  row.set_method(next.Text());
  row.set_hygiene(next.Text());
  row.set_split(next.Text());
  row.set_target(next.Text());
  row.set_analysis_id(next.Int());
  row.set_layer(static_cast<int>(next.Int()));
  row.set_head(static_cast<int>(next.Int()));
  next.IfInt([&](std::int64_t v) { row.set_correct(v); });
  row.set_total(next.Int());
  next.IfReal([&](double v) { row.set_accuracy(v); });
  next.IfReal([&](double v) { row.set_accuracy_drop(v); });
  row.set_intact_correct(next.Int());
  next.IfInt([&](std::int64_t v) { row.set_lost(v); });
  next.IfInt([&](std::int64_t v) { row.set_gained(v); });
  next.IfReal([&](double v) { row.set_drop_standard_error(v); });
  next.IfReal([&](double v) { row.set_normalised_drop(v); });
  next.IfReal([&](double v) { row.set_nll(v); });
  next.IfReal([&](double v) { row.set_nll_drop(v); });
  next.IfReal([&](double v) { row.set_nll_drop_standard_error(v); });
  next.IfReal([&](double v) { row.set_chance(v); });
  next.IfInt([&](std::int64_t v) { row.set_max_examples(v); });
  return row;
}

v1::DepositRow ReadDeposit(SQLite::Statement& query) {
  v1::DepositRow row;
  Columns next(query);
  row.set_job_id(next.Int());
  row.set_method(next.Text());
  row.set_hygiene(next.Text());
  row.set_split(next.Text());
  row.set_target(next.Text());
  row.set_analysis_id(next.Int());
  next.IfInt([&](std::int64_t v) { row.set_layer(static_cast<int>(v)); });
  next.IfReal([&](double v) { row.set_max_drop(v); });
  next.IfReal([&](double v) { row.set_top_share(v); });
  next.IfReal([&](double v) { row.set_top_ratio(v); });
  next.IfReal([&](double v) { row.set_gini(v); });
  next.IfReal([&](double v) { row.set_effective_heads(v); });
  next.IfInt([&](std::int64_t v) { row.set_top_layer(static_cast<int>(v)); });
  next.IfInt([&](std::int64_t v) { row.set_top_head(static_cast<int>(v)); });
  next.IfInt([&](std::int64_t v) { row.set_deposit(v != 0); });
  next.IfInt([&](std::int64_t v) { row.set_deposits(static_cast<int>(v)); });
  return row;
}

v1::AnalysisRow ReadAnalysis(SQLite::Statement& query) {
  v1::AnalysisRow row;
  Columns next(query);
  row.set_job_id(next.Int());
  row.set_name(next.Text());
  row.set_version(static_cast<int>(next.Int()));
  row.set_parameters_json(next.Text());
  next.IfInt([&](std::int64_t v) { row.set_total(v); });
  next.IfInt([&](std::int64_t v) { row.set_intact_correct(v); });
  next.IfReal([&](double v) { row.set_seconds(v); });
  next.IfText([&](std::string v) { row.set_result_json(std::move(v)); });
  row.set_created_at_ms(next.Int());
  row.set_analysis_id(next.Int());
  return row;
}

// "method:hygiene:split:target:analysis", the order of matrices and their indices within a job.
template <typename Row>
std::string MatrixPlace(const Row& row) {
  return Concat(row.method(), ":", row.hygiene(), ":", row.split(), ":", row.target(), ":",
                row.analysis_id());
}

}  // namespace

absl::StatusOr<v1::ListHeadAblationsResponse> QueryHeadAblations(
    SQLite::Database& db, const v1::ListHeadAblationsRequest& request) {
  return PageOfJobs<v1::ListHeadAblationsResponse>(
      db, request,
      "SELECT job_id, coalesce(method, ''), coalesce(hygiene, ''), coalesce(split, ''), target, "
      "analysis_id, layer, head, correct, total, accuracy, accuracy_drop, intact_correct, lost, "
      "gained, drop_standard_error, normalised_drop, nll, nll_drop, nll_drop_standard_error, "
      "chance, max_examples FROM v_head_ablation WHERE job_id = ?1 AND (?2 OR (coalesce(method, "
      "''), "
      "coalesce(hygiene, ''), coalesce(split, ''), target, analysis_id, layer, head) > "
      "(?3, ?4, ?5, ?6, ?7, ?8, ?9)) ORDER BY 2, 3, 4, 5, 6, 7, 8",
      "ttttnnn", ReadHead, [](const v1::HeadAblationRow& row) {
        return Concat(MatrixPlace(row), ":", row.layer(), ":", row.head());
      });
}

absl::StatusOr<v1::ListDepositsResponse> QueryDeposits(SQLite::Database& db,
                                                       const v1::ListDepositsRequest& request) {
  return PageOfJobs<v1::ListDepositsResponse>(
      db, request,
      "SELECT job_id, coalesce(method, ''), coalesce(hygiene, ''), coalesce(split, ''), target, "
      "analysis_id, layer, max_drop, top_share, top_ratio, gini, effective_heads, top_layer, "
      "top_head, deposit, deposits FROM v_deposits WHERE job_id = ?1 AND (?2 OR "
      "(coalesce(method, ''), coalesce(hygiene, ''), coalesce(split, ''), target, analysis_id, "
      "coalesce(layer, -1)) > (?3, ?4, ?5, ?6, ?7, ?8)) AND (NOT ?9 OR layer IS NULL) "
      "ORDER BY 2, 3, 4, 5, 6, coalesce(layer, -1)",
      "ttttnn", ReadDeposit,
      [](const v1::DepositRow& row) {
        return Concat(MatrixPlace(row), ":", row.has_layer() ? row.layer() : -1);
      },
      {std::int64_t{request.whole_models()}});
}

absl::StatusOr<v1::ListAnalysesResponse> QueryAnalyses(SQLite::Database& db,
                                                       const v1::ListAnalysesRequest& request) {
  std::size_t bytes = 0;
  return PageOfJobs<v1::ListAnalysesResponse>(
      db, request,
      "SELECT job_id, name, version, parameters_json, total, intact_correct, seconds, "
      "result_json, created_at, analysis_id FROM v_analyses WHERE job_id = ?1 "
      "AND (?2 OR analysis_id > ?3) AND (?4 = '' OR name = ?4) ORDER BY analysis_id",
      "n",
      [&](SQLite::Statement& query) {
        v1::AnalysisRow row = ReadAnalysis(query);
        bytes += row.result_json().size();
        return row;
      },
      [](const v1::AnalysisRow& row) { return Concat(row.analysis_id()); }, {request.name()},
      [&] { return bytes >= kMaxTextBytes; });
}

}  // namespace pelab::db
