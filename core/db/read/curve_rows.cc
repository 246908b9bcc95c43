// Reads curves without the view v_curves. The view's NOT EXISTS tests every epoch, although one
// test per job suffices, and a sweep has millions of epochs. The accepted epochs of an attempt are
// one range of `curves`, which is read by its primary key. Epochs that still wait are in
// `staged_epochs`, which is searched once per page. These are the only queries of the Reader that
// know these tables; a test compares them with the view (docs/adr/0018).
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/db/raw_statement.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

std::string Shortest(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

constexpr std::int64_t kNoStart = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// The part of a job's accepted curve that one attempt contributes: the attempt's epochs before
// `end`.
struct Stretch {
  std::int64_t attempt = 0;
  std::int64_t end = kNoEnd;
};

// The same as in v_curves. If nothing was counted, the view has NULL, which reads as 0.
double Accuracy(std::int64_t correct, std::int64_t total) {
  return total == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(total);
}

constexpr char kColumns[] =
    "epoch, train_loss, train_correct, train_total, test_loss, test_correct, test_total, "
    "learning_rate, seconds, train_eval_correct, train_eval_total";

// Reads an epoch from a row that begins with kColumns.
void ReadEpoch(const RawStatement& epoch, v1::CurveRow& row) {
  row.set_epoch(static_cast<int>(epoch.Integer(0)));
  row.set_train_loss(epoch.Real(1));
  row.set_train_correct(epoch.Integer(2));
  row.set_train_total(epoch.Integer(3));
  row.set_train_accuracy(Accuracy(row.train_correct(), row.train_total()));
  row.set_test_loss(epoch.Real(4));
  row.set_test_correct(epoch.Integer(5));
  row.set_test_total(epoch.Integer(6));
  row.set_test_accuracy(Accuracy(row.test_correct(), row.test_total()));
  row.set_learning_rate(epoch.Real(7));
  row.set_seconds(epoch.Real(8));
  if (epoch.IsNull(10)) return;
  row.set_train_eval_correct(epoch.Integer(9));
  row.set_train_eval_total(epoch.Integer(10));
  row.set_train_eval_accuracy(Accuracy(row.train_eval_correct(), row.train_eval_total()));
}

// Epochs that have arrived but are not in their curve yet: none if nothing trains, otherwise up to
// about twenty thousand (server/store/epoch_staging.h).
class WaitingEpochs {
 public:
  explicit WaitingEpochs(Connection& db)
      : index_(db,
               "SELECT attempt_id, staged_id FROM staged_epochs WHERE attempt_id BETWEEN ? AND ? "
               "AND (staged_id > (SELECT until_id FROM epoch_move) "
               "OR attempt_id > (SELECT through_attempt FROM epoch_move))"),
        epoch_(db, Concat("SELECT ", kColumns,
                          " FROM staged_epochs WHERE staged_id = ? AND epoch > ? AND epoch < ?")) {}

  // Call before ForEach for these stretches. For the first job, often the only one, SQLite selects
  // only the range of that job's attempts. From the second job on, all waiting epochs are noted,
  // for every job of the page.
  void Find(const std::vector<Stretch>& stretches) {
    if (stretches.empty() || noted_ == Noted::kAll) return;
    if (noted_ == Noted::kNone) {
      const auto [first, last] = std::minmax_element(
          stretches.begin(), stretches.end(),
          [](const Stretch& a, const Stretch& b) { return a.attempt < b.attempt; });
      Note(first->attempt, last->attempt);
      noted_ = Noted::kFirstJob;
    } else {
      Note(kNoStart, kNoEnd);
      noted_ = Noted::kAll;
    }
  }

  // Calls `add(epoch)` for the stretch's epochs after `after`, in order of arrival, until it
  // returns false.
  template <typename Add>
  void ForEach(const Stretch& stretch, std::int64_t after, Add add) {
    auto place =
        std::lower_bound(waiting_.begin(), waiting_.end(), std::pair(stretch.attempt, kNoStart));
    for (; place != waiting_.end() && place->first == stretch.attempt; ++place) {
      epoch_.Reset();
      epoch_.Bind(1, place->second);
      epoch_.Bind(2, after);
      epoch_.Bind(3, stretch.end);
      if (epoch_.Step() && !add(epoch_)) return;
    }
  }

 private:
  enum class Noted { kNone, kFirstJob, kAll };

  void Note(std::int64_t first_attempt, std::int64_t last_attempt) {
    waiting_.clear();
    index_.Reset();
    index_.Bind(1, first_attempt);
    index_.Bind(2, last_attempt);
    while (index_.Step()) waiting_.emplace_back(index_.Integer(0), index_.Integer(1));
    std::sort(waiting_.begin(), waiting_.end());
  }

  RawStatement index_;
  RawStatement epoch_;
  Noted noted_ = Noted::kNone;
  std::vector<std::pair<std::int64_t, std::int64_t>> waiting_;  // attempt, staged_id
};

// An attempt's epochs count up to the start epoch of any later attempt.
class JobStretches {
 public:
  explicit JobStretches(Connection& db)
      : attempts_(
            db, "SELECT attempt_id, start_epoch FROM v_attempts WHERE job_id = ? ORDER BY number") {
  }

  // The result is valid until the next call.
  const std::vector<Stretch>& Of(std::int64_t job) {
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

 private:
  RawStatement attempts_;
  std::vector<Stretch> stretches_;
  std::vector<std::int64_t> starts_;
};

class CurvePage {
 public:
  CurvePage(Connection& db, int limit, v1::ListCurvesResponse& response)
      : limit_(limit),
        rows_(*response.mutable_rows()),
        response_(response),
        stretches_(db),
        epochs_(db, Concat("SELECT ", kColumns,
                           " FROM curves WHERE attempt_id = ? AND epoch > ? AND epoch < ? "
                           "ORDER BY epoch LIMIT ?")),
        waiting_(db) {}

  // Adds the job's accepted epochs after `after`. If the page has no room for all of them, returns
  // false and sets the response's `next`.
  bool Add(std::int64_t job, std::int64_t after) {
    const int before = rows_.size();
    const int room = limit_ - before + 1;  // one more than fits, to see whether more would come
    const std::vector<Stretch>& stretches = stretches_.Of(job);
    waiting_.Find(stretches);
    for (const Stretch& stretch : stretches) AddStretch(job, stretch, after, room);
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
  // Adds the first `room` epochs that are in their curve, and the first `room` that wait.
  void AddStretch(std::int64_t job, const Stretch& stretch, std::int64_t after, int room) {
    const auto add = [&](const RawStatement& epoch) {
      v1::CurveRow& row = *rows_.Add();
      row.set_job_id(job);
      ReadEpoch(epoch, row);
    };
    epochs_.Reset();
    epochs_.Bind(1, stretch.attempt);
    epochs_.Bind(2, after);
    epochs_.Bind(3, stretch.end);
    epochs_.Bind(4, std::int64_t{room});
    while (epochs_.Step()) add(epochs_);
    waiting_.ForEach(stretch, after, [&](const RawStatement& epoch) {
      add(epoch);
      return --room > 0;
    });
  }

  const int limit_;
  google::protobuf::RepeatedPtrField<v1::CurveRow>& rows_;
  v1::ListCurvesResponse& response_;
  JobStretches stretches_;
  RawStatement epochs_;
  WaitingEpochs waiting_;
};

// The first accepted epoch of a job with a test accuracy of at least `accuracy`.
class FirstReached {
 public:
  FirstReached(Connection& db, double accuracy)
      : accuracy_(accuracy),
        stretches_(db),
        first_(db,
               "SELECT epoch FROM curves WHERE attempt_id = ? AND epoch < ? AND "
               "CAST(test_correct AS REAL) / test_total >= ? ORDER BY epoch LIMIT 1"),
        waiting_(db) {
    first_.Bind(3, accuracy);
  }

  std::int64_t Of(std::int64_t job) {  // kNoEnd: never
    std::int64_t reached = kNoEnd;
    const std::vector<Stretch>& stretches = stretches_.Of(job);
    waiting_.Find(stretches);
    for (const Stretch& stretch : stretches) {
      first_.Reset();
      first_.Bind(1, stretch.attempt);
      first_.Bind(2, stretch.end);
      if (first_.Step()) reached = std::min(reached, first_.Integer(0));
      waiting_.ForEach(stretch, kNoStart, [&](const RawStatement& epoch) {
        if (epoch.Integer(6) > 0 && Accuracy(epoch.Integer(5), epoch.Integer(6)) >= accuracy_) {
          reached = std::min(reached, epoch.Integer(0));
        }
        return true;
      });
    }
    return reached;
  }

 private:
  const double accuracy_;
  JobStretches stretches_;
  RawStatement first_;
  WaitingEpochs waiting_;
};

}  // namespace

absl::StatusOr<v1::ListCurvesResponse> QueryCurves(Connection& db,
                                                   const v1::ListCurvesRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<PagePlace> place = ParsePlace(request.page().after(), "n");
  if (!place.ok()) return place.status();
  v1::ListCurvesResponse response;
  CurvePage page(db, *limit, response);
  const std::int64_t after = std::get<std::int64_t>(place->after.front());
  const absl::Status status = ForEachJob(db, request.filter(), place->job, [&](std::int64_t job) {
    return page.Add(job, job == place->job ? after : kNoStart);
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ListEpochsToResponse> QueryEpochsTo(Connection& db,
                                                       const v1::ListEpochsToRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<PagePlace> place = ParsePlace(request.page().after(), "");
  if (!place.ok()) return place.status();
  // The best accuracy rules out most jobs that never reached it, without reading their curves.
  v1::JobFilter filter = request.filter();
  if (!filter.where().empty()) filter.set_where(Concat("(", filter.where(), ") and "));
  filter.set_where(
      Concat(filter.where(), "best_test_accuracy >= ", Shortest(request.test_accuracy())));
  v1::ListEpochsToResponse response;
  FirstReached first(db, request.test_accuracy());
  const absl::Status status = ForEachJob(db, filter, place->job + 1, [&](std::int64_t job) {
    const std::int64_t epoch = first.Of(job);
    if (epoch == kNoEnd) return true;
    if (response.rows_size() == *limit) {
      response.set_next(Concat(response.rows(*limit - 1).job_id()));
      return false;
    }
    v1::EpochsToRow& row = *response.add_rows();
    row.set_job_id(job);
    row.set_epochs(static_cast<int>(epoch) + 1);
    return true;
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace pelab::db
