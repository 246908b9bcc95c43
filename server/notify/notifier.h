// Tells an HTTP server about the ends of sweeps, the first failed job of each, workers in
// quarantine, and spent budgets of claim sheets and principals (--notify). The threads on which
// these events happen only note them; a thread of its own reads the database and delivers. So no
// writer and no scheduler waits for a receiver. Notifications that wait are lost when the
// coordinator ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/db/read/reader_pool.h"
#include "core/rpc/secrets.h"
#include "server/notify/address.h"
#include "server/notify/http_post.h"
#include "server/notify/messages.h"
#include "server/notify/outbox.h"
#include "server/store/store.h"

namespace pelab::notify {

struct NotifySettings {
  Address address;
  std::string secret_file;  // empty: notifications are not signed
};

// Thread-safe.
class Notifier {
 public:
  // How many notifications were delivered, given up after their last try, and dropped because too
  // many waited.
  struct Figures {
    std::uint64_t delivered = 0;
    std::uint64_t failed = 0;
    std::uint64_t dropped = 0;
  };

  // `clock` must outlive the object. INVALID_ARGUMENT if https is not possible with this build;
  // otherwise the errors of TokenFile::Open.
  static absl::StatusOr<std::shared_ptr<Notifier>> Make(const NotifySettings& settings,
                                                        const std::string& database,
                                                        const Clock& clock);
  ~Notifier();  // like Stop

  // Starts the thread. Call it while nothing is written yet: sweeps that have failed jobs now get
  // no notification of their first one. The errors are those of the reader.
  absl::Status Start();
  // Ends the thread. BeginStop only asks it to end.
  void BeginStop();
  void Stop();

  // On the writer thread, after a commit: these sweeps have finished or were cancelled in it
  // (StoreOptions::ended). Committed follows for the same commit.
  void SweepsEnded(const std::vector<std::int64_t>& sweep_ids);
  // On the writer thread: WriterOptions::on_commit.
  void Committed(const absl::StatusOr<std::vector<store::ApplyResult>>& results);
  void Quarantined(Quarantine quarantine);
  void BudgetSpent(SpentBudget budget);
  void GpuSecondsSpent(SpentGpuSeconds spent);

  Figures figures() const;

 private:
  // Events that no message describes yet.
  struct News {
    std::vector<std::int64_t> failed_jobs;
    std::vector<std::int64_t> ended_sweeps;
    std::vector<Quarantine> quarantines;
    std::vector<SpentBudget> budgets;
    std::vector<SpentGpuSeconds> gpu_budgets;
    std::size_t size() const {
      return failed_jobs.size() + ended_sweeps.size() + quarantines.size() + budgets.size() +
             gpu_budgets.size();
    }
  };

  Notifier(const NotifySettings& settings, std::shared_ptr<rpc::TokenFile> secret,
           const std::string& database, const Clock& clock);
  void Run();
  // Waits for news, or until `wait` has passed. False: the object is stopping.
  bool Take(absl::Duration wait, News& news);
  absl::Status Describe(const News& news);
  absl::Status DescribeBudget(const SpentBudget& budget, db::Reader& reader);
  absl::Status DescribeFailure(std::int64_t job_id, const News& news, db::Reader& reader);
  void Add(Message message);
  void Deliver();
  bool HasRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string host_;
  const Clock& clock_;
  db::ReaderPool readers_;
  HttpPost post_;
  Outbox outbox_;                // used by the thread only
  std::set<std::int64_t> told_;  // live sweeps whose first failure is known; by the thread only
  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> dropped_{0};
  Mutex mutex_;
  std::vector<std::int64_t> ending_ ABSL_GUARDED_BY(mutex_);  // of the commit that is under way
  News news_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::notify
