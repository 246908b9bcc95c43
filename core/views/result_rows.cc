// Curves and head ablations. A page goes job by job, each through its own index, so that its cost
// is that of its rows.
#include <cstdint>

#include "absl/strings/str_split.h"
#include "core/views/filter.h"
#include "core/views/queries.h"
#include "core/views/text.h"

namespace pelab::views {
namespace {

absl::Status BadPosition(const std::string& after) {
  return absl::InvalidArgumentError(
      Concat("page position \"", after, "\" is not one of an answer"));
}

v1::CurveRow ReadCurve(SQLite::Statement& query) {
  v1::CurveRow row;
  int i = 0;
  row.set_job_id(query.getColumn(i++).getInt64());
  row.set_epoch(query.getColumn(i++).getInt());
  row.set_train_loss(query.getColumn(i++).getDouble());
  row.set_train_accuracy(query.getColumn(i++).getDouble());
  row.set_test_loss(query.getColumn(i++).getDouble());
  row.set_test_accuracy(query.getColumn(i++).getDouble());
  row.set_learning_rate(query.getColumn(i++).getDouble());
  row.set_seconds(query.getColumn(i++).getDouble());
  row.set_train_correct(query.getColumn(i++).getInt64());
  row.set_train_total(query.getColumn(i++).getInt64());
  row.set_test_correct(query.getColumn(i++).getInt64());
  row.set_test_total(query.getColumn(i++).getInt64());
  return row;
}

v1::HeadAblationRow ReadHead(SQLite::Statement& query) {
  v1::HeadAblationRow row;
  int i = 0;
  row.set_job_id(query.getColumn(i++).getInt64());
  row.set_method(query.getColumn(i++).getString());
  row.set_hygiene(query.getColumn(i++).getString());
  row.set_split(query.getColumn(i++).getString());
  row.set_layer(query.getColumn(i++).getInt());
  row.set_head(query.getColumn(i++).getInt());
  row.set_correct(query.getColumn(i++).getInt64());
  row.set_total(query.getColumn(i++).getInt64());
  row.set_accuracy(query.getColumn(i++).getDouble());
  row.set_accuracy_drop(query.getColumn(i++).getDouble());
  row.set_intact_correct(query.getColumn(i++).getInt64());
  return row;
}

}  // namespace

absl::StatusOr<v1::ListCurvesResponse> QueryCurves(SQLite::Database& db,
                                                   const v1::ListCurvesRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t after_job = 0, after_epoch = -1;
  if (const std::string& after = request.page().after(); !after.empty()) {  // "job:epoch"
    const std::vector<std::string> parts = absl::StrSplit(after, ':');
    if (parts.size() != 2 || !ParseNumber(parts[0], &after_job) ||
        !ParseNumber(parts[1], &after_epoch)) {
      return BadPosition(after);
    }
  }
  v1::ListCurvesResponse response;
  SQLite::Statement query(
      db,
      "SELECT job_id, epoch, train_loss, train_accuracy, test_loss, test_accuracy, learning_rate, "
      "seconds, train_correct, train_total, test_correct, test_total FROM v_curves "
      "WHERE job_id = ? AND epoch > ? ORDER BY epoch");
  absl::Status status = ForEachJob(db, request.filter(), after_job, [&](std::int64_t job) {
    query.reset();
    query.bind(1, job);
    query.bind(2, job == after_job ? after_epoch : -1);
    while (query.executeStep()) {
      if (response.rows_size() == *limit) {
        const v1::CurveRow& last = response.rows(*limit - 1);
        response.set_next(Concat(last.job_id(), ":", last.epoch()));
        return false;
      }
      *response.add_rows() = ReadCurve(query);
    }
    return true;
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ListHeadAblationsResponse> QueryHeadAblations(
    SQLite::Database& db, const v1::ListHeadAblationsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  // "job:method:hygiene:split:layer:head"
  std::vector<std::string> after = {"0", "", "", "", "-1", "-1"};
  std::int64_t after_job = 0, after_layer = -1, after_head = -1;
  if (const std::string& text = request.page().after(); !text.empty()) {
    after = absl::StrSplit(text, ':');
    if (after.size() != 6 || !ParseNumber(after[0], &after_job) ||
        !ParseNumber(after[4], &after_layer) || !ParseNumber(after[5], &after_head)) {
      return BadPosition(text);
    }
  }
  v1::ListHeadAblationsResponse response;
  SQLite::Statement query(
      db,
      "SELECT job_id, coalesce(method, ''), coalesce(hygiene, ''), coalesce(split, ''), layer, "
      "head, "
      "correct, total, accuracy, accuracy_drop, intact_correct FROM v_head_ablation "
      "WHERE job_id = ?1 AND (?2 OR (coalesce(method, ''), coalesce(hygiene, ''), "
      "coalesce(split, ''), layer, head) > (?3, ?4, ?5, ?6, ?7)) ORDER BY 2, 3, 4, 5, 6");
  absl::Status status = ForEachJob(db, request.filter(), after_job, [&](std::int64_t job) {
    query.reset();
    query.bind(1, job);
    query.bind(2, job == after_job ? 0 : 1);
    for (int i = 1; i <= 3; ++i) query.bind(2 + i, after[i]);
    query.bind(6, after_layer);
    query.bind(7, after_head);
    while (query.executeStep()) {
      if (response.rows_size() == *limit) {
        const v1::HeadAblationRow& last = response.rows(*limit - 1);
        response.set_next(Concat(last.job_id(), ":", last.method(), ":", last.hygiene(), ":",
                                 last.split(), ":", last.layer(), ":", last.head()));
        return false;
      }
      *response.add_rows() = ReadHead(query);
    }
    return true;
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace pelab::views
