#include "tests/sim/minima.h"

#include "absl/strings/str_cat.h"

namespace pelab::sim {
namespace {

using Counts = Ledger::Counts;

struct Minimum {
  const char* what;
  std::uint64_t Counts::*count;
  std::uint64_t in_a_thousand;
};

constexpr Minimum kMinima[] = {
    {"stored events", &Counts::events, 15'000},
    {"events that came twice", &Counts::duplicates, 150},
    {"events of ended attempts", &Counts::superseded, 15},
    {"jobs that succeeded", &Counts::successes, 2500},
    {"attempts given up", &Counts::lost, 250},
    {"starts of the coordinator", &Counts::starts, 1000},
    {"pauses, resumes and priorities", &Counts::controlled, 50},
    {"jobs tried again", &Counts::retried, 15},
    {"extensions", &Counts::extended, 25},
    {"drains", &Counts::drained, 100},
    {"attempts packed with others", &Counts::packed, 500},
    {"messages that lie", &Counts::lies, 2500},
    {"events for others", &Counts::foreign, 2500},
    {"attempts ended for a broken rule", &Counts::broken, 150},
    {"attempts ended for silence", &Counts::silent, 100},
    {"refused requests", &Counts::requests_refused, 1000},
    {"reports that a worker is gone", &Counts::gone, 1000},
    {"attempts that such a report ended", &Counts::fenced, 250},
    {"losses that were counted again", &Counts::losses, 250},
    {"hellos of old workers", &Counts::old_hellos, 2500},
    {"jobs with files given out", &Counts::with_files, 500},
    {"recorded epochs", &Counts::recorded, 1000},
    {"rounds that ended", &Counts::rounds, 150},
    {"claims put aside", &Counts::put_aside, 10},
    {"changes of sheets that came too late", &Counts::changes_stale, 10},
    {"sheets that were played once more", &Counts::sheets_played, 40},
};
constexpr std::uint64_t kFaultsInAThousand = 5000;
constexpr std::uint64_t kFew = 500;

}  // namespace

std::vector<std::string> TooRare(const HistoryResult& sum, std::uint64_t histories) {
  std::vector<std::string> sentences;
  const auto check = [&](const char* what, std::uint64_t found, std::uint64_t in_a_thousand) {
    const std::uint64_t wanted = histories < kFew ? 0 : histories * in_a_thousand / 1000;
    if (found >= wanted) return;
    sentences.push_back(absl::StrCat(found, " ", what, " in ", histories,
                                     " histories, which are meant to have at least ", wanted));
  };
  check("faults", sum.faults, kFaultsInAThousand);
  for (const Minimum& minimum : kMinima) {
    check(minimum.what, sum.counts.*minimum.count, minimum.in_a_thousand);
  }
  return sentences;
}

}  // namespace pelab::sim
