// Curves, without v_curves: its NOT EXISTS asks for every epoch what can be asked once a job, and a
// sweep has millions of epochs. An attempt's accepted epochs are one range of `curves`, which is
// read by its primary key. The only query that knows a table which is not public; a test holds it
// to the view (docs/adr/0018).
#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/views/job_pages.h"
#include "core/views/queries.h"
#include "core/views/raw_statement.h"
#include "core/views/text.h"

namespace pelab::views {
namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// What an attempt adds to its job's accepted line: its epochs before `end`.
struct Stretch {
  std::int64_t attempt = 0;
  std::int64_t end = kNoEnd;
};

// As v_curves has it: NULL, which reads as 0, where nothing was counted.
double Accuracy(std::int64_t correct, std::int64_t total) {
  return total == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(total);
}

class CurvePage {
 public:
  CurvePage(SQLite::Database& db, int limit, v1::ListCurvesResponse& response)
      : limit_(limit),
        rows_(*response.mutable_rows()),
        response_(response),
        attempts_(
            db, "SELECT attempt_id, start_epoch FROM v_attempts WHERE job_id = ? ORDER BY number"),
        epochs_(db,
                "SELECT epoch, train_loss, train_correct, train_total, test_loss, test_correct, "
                "test_total, learning_rate, seconds FROM curves "
                "WHERE attempt_id = ? AND epoch > ? AND epoch < ? ORDER BY epoch LIMIT ?") {}

  // The job's accepted epochs after `after`. False, with the response's `next` set, where the page
  // has no room for all of them.
  bool Add(std::int64_t job, std::int64_t after) {
    const int before = rows_.size();
    for (const Stretch& stretch : StretchesOf(job))
      AddStored(job, stretch, after, limit_ - before + 1);
    const auto by_epoch = [](const v1::CurveRow* a, const v1::CurveRow* b) {
      return a->epoch() < b->epoch();
    };
    const auto first = rows_.pointer_begin() + before;
    if (!std::is_sorted(first, rows_.pointer_end(), by_epoch)) {
      std::stable_sort(first, rows_.pointer_end(), by_epoch);
    }
    if (rows_.size() <= limit_) return true;
    rows_.DeleteSubrange(limit_, rows_.size() - limit_);
    const v1::CurveRow& last = rows_.Get(limit_ - 1);
    response_.set_next(Concat(last.job_id(), ":", last.epoch()));
    return false;
  }

 private:
  // An attempt's epoch counts until a later attempt started at or before it.
  const std::vector<Stretch>& StretchesOf(std::int64_t job) {
    stretches_.clear();
    starts_.clear();
    attempts_.Reset();
    attempts_.Bind(1, job);
    while (attempts_.Step()) {
      stretches_.push_back({.attempt = attempts_.Integer(0)});
      starts_.push_back(attempts_.IsNull(1) ? kNoEnd : attempts_.Integer(1));
    }
    std::int64_t end = kNoEnd;
    for (std::size_t i = stretches_.size(); i-- > 0;) {
      stretches_[i].end = end;
      end = std::min(end, starts_[i]);
    }
    return stretches_;
  }

  void AddStored(std::int64_t job, const Stretch& stretch, std::int64_t after, int at_most) {
    epochs_.Reset();
    epochs_.Bind(1, stretch.attempt);
    epochs_.Bind(2, after);
    epochs_.Bind(3, stretch.end);
    epochs_.Bind(4, at_most);
    while (epochs_.Step()) {
      v1::CurveRow& row = *rows_.Add();
      row.set_job_id(job);
      row.set_epoch(static_cast<int>(epochs_.Integer(0)));
      row.set_train_loss(epochs_.Real(1));
      row.set_train_correct(epochs_.Integer(2));
      row.set_train_total(epochs_.Integer(3));
      row.set_train_accuracy(Accuracy(row.train_correct(), row.train_total()));
      row.set_test_loss(epochs_.Real(4));
      row.set_test_correct(epochs_.Integer(5));
      row.set_test_total(epochs_.Integer(6));
      row.set_test_accuracy(Accuracy(row.test_correct(), row.test_total()));
      row.set_learning_rate(epochs_.Real(7));
      row.set_seconds(epochs_.Real(8));
    }
  }

  const int limit_;
  google::protobuf::RepeatedPtrField<v1::CurveRow>& rows_;
  v1::ListCurvesResponse& response_;
  RawStatement attempts_;
  RawStatement epochs_;
  std::vector<Stretch> stretches_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

absl::StatusOr<v1::ListCurvesResponse> QueryCurves(SQLite::Database& db,
                                                   const v1::ListCurvesRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<PagePlace> place = ParsePlace(request.page().after(), "n");
  if (!place.ok()) return place.status();
  v1::ListCurvesResponse response;
  CurvePage page(db, *limit, response);
  const std::int64_t after = std::get<std::int64_t>(place->after.front());
  const absl::Status status = ForEachJob(db, request.filter(), place->job, [&](std::int64_t job) {
    return page.Add(job, job == place->job ? after : std::numeric_limits<std::int64_t>::min());
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace pelab::views
