// Simulates the settling of claim sheets: how many decisions are false, whenever one looks, and how
// many seeds a decision takes (docs/benchmarks.md). Trains nothing; takes a minute.
//
//   evidence_bench [SHEETS]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/stats/seeds.h"
#include "tests/support/simulated_sheets.h"

namespace pelab::testing_support {
namespace {

struct Row {
  std::vector<double> at_worst, at_end, decided;
  void Add(const FalseDiscoveries& found) {
    at_worst.push_back(found.at_worst);
    at_end.push_back(found.at_end);
    decided.push_back(found.decided);
  }
  void Print(const char* rule) const {
    std::printf("%-34s %8.4f ± %.4f %11.4f %12.1f\n", rule, stats::Mean(at_worst),
                *stats::IntervalHalfWidth(at_worst), stats::Mean(at_end), stats::Mean(decided));
  }
};

void PrintFalseDiscoveries(int sheets) {
  Row settled, naive;
  for (int sheet = 0; sheet < sheets; ++sheet) {
    const SimulatedSheet simulated = SimulateSheet(static_cast<std::uint64_t>(sheet));
    settled.Add(simulated.settled);
    naive.Add(simulated.naive);
  }
  std::printf("%d sheets of %d claims, %d of them true nulls, of at most 40 seeds\n", sheets,
              kSimulatedClaims, kTrueNulls);
  std::printf("%-34s %17s %11s %12s\n", "mean false discovery proportion", "at the worst look",
              "at the end", "decided");
  settled.Print("e-values and e-BH, rate 0.05");
  naive.Print("95 % t interval at each look");
}

void PrintSeedsUntilDecided() {
  constexpr int kMost = 1000, kRepetitions = 2000;
  std::printf("\na claim alone on its sheet, looked at after every seed\n%8s %14s %24s\n",
              "P(D > 0)", "median seeds", "undecided at 40 seeds");
  for (const double success : {0.7, 0.8, 0.9, 0.95, 1.0}) {
    std::vector<int> seeds;
    int undecided = 0;
    for (std::uint64_t repetition = 0; repetition < kRepetitions; ++repetition) {
      seeds.push_back(SeedsUntilDecided(success, kMost, repetition));
      if (seeds.back() > 40) ++undecided;
    }
    std::printf("%8.2f %14.1f %22.1f %%\n", success, Median(seeds),
                100.0 * undecided / kRepetitions);
  }
}

}  // namespace
}  // namespace pelab::testing_support

int main(int argc, char** argv) {
  pelab::testing_support::PrintFalseDiscoveries(argc > 1 ? std::atoi(argv[1]) : 10000);
  pelab::testing_support::PrintSeedsUntilDecided();
}
