#include "tests/sim/history.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/sim/bounds.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/hostile_client.h"
#include "tests/sim/ledger.h"
#include "tests/sim/liar.h"
#include "tests/sim/people.h"
#include "tests/sim/scaler.h"
#include "tests/sim/settlers.h"
#include "tests/sim/wire.h"
#include "tests/sim/worker.h"
#include "tests/sim/world.h"

namespace pelab::sim {
namespace {

constexpr absl::Duration kPatience = absl::Hours(2);  // virtual time after the last fault
constexpr std::uint64_t kMostWorkers = 4;
constexpr std::uint64_t kMostSlots = 2;  // of each worker
// This time after a lease the coordinator no longer counts a vanished worker as connected, and all
// workers are back.
constexpr absl::Duration kForgotten = absl::Seconds(80);
constexpr double kLiars = 0.3;     // the share of histories with a worker that lies
constexpr double kHostile = 0.4;   // and with a hostile client
constexpr double kScalers = 0.4;   // with reports that workers are gone
constexpr double kReleases = 0.5;  // with workers of two releases
// With a claim sheet that is settled, if no worker lies. Such a history takes three times as long.
constexpr double kSettlers = 0.14;
constexpr absl::Duration kLook = absl::Seconds(5);

using How = FaultyVfs::Fault::How;

class History {
 public:
  explicit History(const HistoryOptions& options)
      : world_(options.seed, options.print),
        has_liar_(world_.DiceFor("liar").Chance(kLiars)),
        bounds_(DrawBounds(world_, has_liar_)),
        ledger_(world_, bounds_),
        coordinator_(world_, ledger_, bounds_, options.seed, options.planted),
        people_(world_, coordinator_) {}

  HistoryResult Run() {
    MakeWorkers();
    DrawFaults();
    coordinator_.Run();
    for (const auto& worker : workers_) worker->Start();
    if (has_liar_) liar_.emplace(world_, ledger_, coordinator_, bounds_).Start();
    chaos_ends_ = world_.Monotonic() + world_.Between(absl::Seconds(40), absl::Seconds(150));
    for (std::uint64_t i = 1 + world_.Draw(3); i != 0; --i) people_.Submit();
    NextAsk();
    NextFault();
    if (world_.DiceFor("scaler").Chance(kScalers)) {
      scaler_.emplace(world_, coordinator_);
      NextReport();
    }
    if (releases_) NextUpgrade();
    MakeSettlers();
    if (world_.DiceFor("hostile").Chance(kHostile)) {
      hostile_.emplace(world_, ledger_, coordinator_, people_);
      NextHostileAsk();
    }
    world_.At(chaos_ends_, [this] { Heal(); });
    while (!over_ && !world_.violation() && world_.Step()) {
    }
    return {.violation = world_.violation(),
            .hash = world_.hash(),
            .faults = faults_,
            .counts = ledger_.counts(),
            .lasted = world_.Monotonic() - began_};
  }

 private:
  bool chaos() const { return world_.Monotonic() < chaos_ends_; }

  void MakeWorkers() {
    const std::uint64_t count = 1 + world_.Draw(kMostWorkers);
    const double failures = world_.Chance(0.4) ? world_.Unit() * 0.6 : 0;
    // A worker that fails too often is avoided for a while; the probe must not count that as an
    // error.
    probe_ = failures == 0 && world_.Chance(0.25);
    for (std::uint64_t i = 0; i < count; ++i) {
      workers_.push_back(std::make_unique<SimWorker>(
          world_, coordinator_,
          WorkerSettings{.id = absl::StrCat("worker-", i),
                         .slots = static_cast<int>(1 + world_.Draw(kMostSlots)),
                         .threads = static_cast<int>(1 + world_.Draw(2)),
                         .pack = Pack(),
                         .epoch = world_.Between(absl::Milliseconds(200), absl::Seconds(4)),
                         .failures = failures,
                         .old = releases_ && release_dice_.Chance(0.5)}));
    }
  }

  int Pack() {
    const int drawn = world_.Chance(0.5) ? static_cast<int>(2 + world_.Draw(4)) : 1;
    return bounds_.pack.value_or(drawn);
  }

  void MakeSettlers() {
    Dice dice = world_.DiceFor("settlers");
    // A lie of a worker may be a result: then nobody knows what a sheet must come to.
    if (has_liar_ || !dice.Chance(kSettlers)) return;
    const std::string& document = dice.OneOf(Sheets());
    const int count = dice.Chance(0.6) ? 2 : 1;
    for (int i = 0; i < count; ++i) {
      settlers_.push_back(std::make_unique<Settler>(world_, coordinator_, people_, document, i));
      settlers_.back()->Start();
    }
  }
  bool Settled() const {
    return std::all_of(settlers_.begin(), settlers_.end(),
                       [](const auto& settler) { return settler->done(); });
  }

  void NextHostileAsk() {
    world_.After(hostile_dice_.Between(absl::ZeroDuration(), absl::Seconds(15)), [this] {
      if (!chaos()) return;
      hostile_->Ask();
      NextHostileAsk();
    });
  }

  // Somebody upgrades a worker, or goes back by a release.
  void NextUpgrade() {
    world_.After(release_dice_.Between(absl::Seconds(2), absl::Seconds(40)), [this] {
      if (!chaos()) return;
      SimWorker& worker = *workers_[release_dice_.Draw(workers_.size())];
      worker.ChangeRelease();
      switch (release_dice_.Draw(4)) {
        case 0:
          worker.Kill(release_dice_.Between(absl::Milliseconds(10), absl::Seconds(5)));
          break;
        case 1:
          worker.LosePower(release_dice_.Between(absl::Seconds(1), absl::Seconds(30)));
          break;
        default:
          worker.Stop();
          break;
      }
      NextUpgrade();
    });
  }

  // A worker is gone with its host or will be back, and the report comes before that, meanwhile or
  // after it; or nothing has happened to the worker.
  void NextReport() {
    world_.After(scaler_dice_.Between(absl::ZeroDuration(), absl::Seconds(25)), [this] {
      if (!chaos()) return;
      SimWorker& worker = *workers_[scaler_dice_.Draw(workers_.size())];
      const absl::Duration outage = scaler_dice_.Between(absl::Milliseconds(10), absl::Seconds(30));
      const absl::Duration delay = scaler_dice_.Between(absl::ZeroDuration(), absl::Seconds(20));
      switch (scaler_dice_.Draw(6)) {
        case 0:
          scaler_->ReportNobody();
          break;
        case 1:
          worker.LoseHost(outage);
          scaler_->Report(worker.id(), delay);
          break;
        case 2:
          worker.Kill(outage);
          scaler_->Report(worker.id(), delay);
          break;
        case 3:
          scaler_->Report(worker.id(), absl::ZeroDuration());
          Undo(delay / 10, [&worker, outage] { worker.LosePower(outage); });
          break;
        default:
          scaler_->Report(worker.id(), absl::ZeroDuration());
          break;
      }
      NextReport();
    });
  }

  void NextAsk() {
    if (!chaos()) return;
    world_.After(world_.Between(absl::ZeroDuration(), absl::Seconds(30)), [this] {
      if (!chaos()) return;
      const std::uint64_t what = world_.Draw(14);
      if (what < 4) people_.Submit();
      if (what >= 4 && what < 7) people_.Cancel();
      if (what >= 7 && what < 9) people_.Analyze();
      if (what >= 9 && what < 13) people_.Control();
      if (what == 13) people_.Drain(AnyWorker().id());
      NextAsk();
    });
  }

  // Faults -------------------------------------------------------------------------------------

  // Each history has only some kinds of faults, so that the effect of one kind shows without the
  // others.
  void DrawFaults() {
    for (const auto& fault : AllFaults()) {
      if (world_.Chance(0.4)) enabled_.push_back(fault);
    }
    between_ = world_.Between(absl::Seconds(1), absl::Seconds(15));
  }

  void NextFault() {
    if (enabled_.empty()) return;
    world_.After(between_ * (0.1 + 1.8 * world_.Unit()), [this] {
      if (!chaos()) return;
      faults_ += 1;
      world_.OneOf(enabled_)();
      NextFault();
    });
  }

  // Mostly short, sometimes longer than a lease.
  absl::Duration Outage() {
    return world_.Chance(0.3) ? world_.Between(absl::Seconds(15), absl::Seconds(50))
                              : world_.Between(absl::Milliseconds(50), absl::Seconds(8));
  }
  SimWorker& AnyWorker() { return *workers_[world_.Draw(workers_.size())]; }

  // Ends a fault after that time, or begins another one, unless all faults have ended by then.
  void Undo(absl::Duration after, std::function<void()> undo) {
    world_.After(after, [this, undo = std::move(undo)] {
      if (chaos()) undo();
    });
  }

  void Cut(bool up, bool down, absl::Duration time) {
    SimWorker& worker = AnyWorker();
    worker.link().up_cut = up;
    worker.link().down_cut = down;
    world_.Note("cut ", up, down);
    Undo(time, [&worker] {
      worker.link().up_cut = worker.link().down_cut = false;
      worker.LinkChanged();
    });
  }

  void BreakDisk(How how, std::uint64_t times, unsigned kinds) {
    const std::uint64_t at = coordinator_.disk().operations(kinds) + 1 + world_.Draw(30);
    world_.Note("disk fault ", static_cast<int>(how), " at ", at, " times ", times);
    coordinator_.disk().Set({.at = at, .times = times, .kinds = kinds, .how = how});
    Undo(Outage(), [this] { coordinator_.disk().ClearFault(); });
  }

  std::vector<std::function<void()>> AllFaults() {
    return {
        [this] { coordinator_.Kill(Outage()); },
        [this] { coordinator_.LosePower(world_.Unit(), Outage()); },
        [this] { coordinator_.Stop(Outage()); },
        [this] { BreakDisk(How::kCrash, 1, FaultyVfs::kAny); },
        [this] { BreakDisk(How::kPowerLoss, 1, FaultyVfs::kAny); },
        [this] { BreakDisk(How::kIoError, 1 + world_.Draw(5), FaultyVfs::kAny); },
        [this] { BreakDisk(How::kIoError, 1 + world_.Draw(3), FaultyVfs::kSync); },
        [this] { BreakDisk(How::kFull, 1'000'000, FaultyVfs::kWrite); },
        [this] { BreakDisk(How::kShort, 1 + world_.Draw(5), FaultyVfs::kWrite); },
        [this] { SlowDisk(); },
        [this] { coordinator_.Stall(absl::Seconds(3) * world_.Unit()); },
        [this] { AnyWorker().Kill(Outage()); },
        [this] { AnyWorker().LosePower(Outage()); },
        [this] { AnyWorker().LoseHost(Outage()); },
        [this] { AnyWorker().Stop(); },
        [this] { AnyWorker().BreakConnection(); },
        [this] { Cut(true, true, Outage()); },
        [this] { Cut(true, false, Outage()); },
        [this] { Cut(false, true, Outage()); },
        [this] {
          Cut(true, false, bounds_.lease + world_.Between(absl::Seconds(1), absl::Seconds(30)));
        },
        [this] { SlowLink(); },
        [this] { AnyWorker().link().duplicates = world_.Unit() * 0.5; },
        [this] { JumpClock(); },
    };
  }

  void SlowDisk() {
    coordinator_.SetCommitTime(world_.Between(absl::Milliseconds(50), absl::Seconds(12)));
    Undo(Outage(), [this] { coordinator_.SetCommitTime(absl::Milliseconds(1)); });
  }
  void SlowLink() {
    SimWorker& worker = AnyWorker();
    worker.link().delay = world_.Between(absl::Milliseconds(50), absl::Seconds(3));
    Undo(Outage(), [&worker] { worker.link().delay = absl::Milliseconds(2); });
  }
  void JumpClock() {
    const absl::Duration jump = absl::Hours(48) * (2 * world_.Unit() - 1);
    world_.Note("the wall clock jumps to ", absl::FormatDuration(jump));
    world_.SetWallJump(jump);
  }

  // The end --------------------------------------------------------------------------------------

  void Heal() {
    world_.Note("no more faults");
    coordinator_.disk().ClearFault();
    coordinator_.SetCommitTime(absl::Milliseconds(1));
    for (const auto& worker : workers_) {
      worker->link() = Link();
      worker->LinkChanged();
    }
    if (scaler_) scaler_->Calm();
    for (const auto& settler : settlers_) settler->Calm();
    // Jobs that need files would wait for ever without a new worker.
    if (workers_.front()->old()) {
      workers_.front()->ChangeRelease();
      workers_.front()->Stop();
    }
    std::vector<std::string> ids;
    for (const auto& worker : workers_) ids.push_back(worker->id());
    people_.LetGo(ids);
    // The probe counts the slots of the others.
    if (liar_) liar_->Calm(/*leaves=*/probe_ || world_.DiceFor("liar's end").Chance(0.6));
    Look();
  }

  void Look() {
    if (people_.Answered() && Settled() && coordinator_.Quiet()) {
      const bool soon = world_.Monotonic() < chaos_ends_ + bounds_.lease + kForgotten;
      if (probe_ && (soon || coordinator_.SomeInQuarantine())) {
        return world_.After(kLook, [this] { Look(); });
      }
      if (std::exchange(probe_, false)) {
        probed_ = coordinator_.Attempts();
        people_.SubmitProbe();
        world_.After(kLook, [this] { Look(); });
        return;
      }
      if (probed_) CheckProbe();
      coordinator_.CheckEnd();
      world_.Note("the end");
      over_ = true;
      return;
    }
    if (world_.Monotonic() > chaos_ends_ + kPatience) {
      world_.Violate(absl::StrCat("it does not come to its end: ", coordinator_.Stuck(),
                                  Settled() ? "" : "; a sheet is not settled"));
      return;
    }
    world_.After(kLook, [this] { Look(); });
  }

  // The probe submitted enough jobs for every slot of every worker while nothing else was left to
  // do. Each slot must have got one; otherwise the coordinator has forgotten that it is free.
  void CheckProbe() {
    std::size_t slots = 0;
    for (const auto& worker : workers_) slots += worker->slots();
    const std::size_t used = coordinator_.SlotsUsedAfter(*probed_);
    if (used != slots) world_.Violate(absl::StrCat(used, " of ", slots, " slots get a job"));
  }

  World world_;
  const bool has_liar_;
  const Bounds bounds_;
  const bool releases_ = world_.DiceFor("releases").Chance(kReleases);
  Ledger ledger_;
  Coordinator coordinator_;
  People people_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::optional<Liar> liar_;
  std::optional<HostileClient> hostile_;
  std::optional<Scaler> scaler_;
  std::vector<std::unique_ptr<Settler>> settlers_;
  Dice hostile_dice_ = world_.DiceFor("hostile moments");
  Dice scaler_dice_ = world_.DiceFor("scaler's moments");
  Dice release_dice_ = world_.DiceFor("moments of upgrades");
  std::vector<std::function<void()>> enabled_;
  absl::Duration between_;
  const absl::Duration began_ = world_.Monotonic();
  absl::Duration chaos_ends_;
  std::uint64_t faults_ = 0;
  bool over_ = false;
  bool probe_ = false;
  std::optional<std::int64_t> probed_;  // the number of attempts before the probe
};

}  // namespace

HistoryResult RunHistory(const HistoryOptions& options) { return History(options).Run(); }

}  // namespace pelab::sim
