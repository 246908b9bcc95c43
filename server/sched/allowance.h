// The share of the slots, the limit of jobs and the budget of GPU time of one principal. A value.
#pragma once

namespace pelab::sched {

struct Allowance {
  // Among jobs of one priority, a principal with twice the share gets twice the slots. 0: as 1.
  double share = 1;
  int max_slots = 0;       // most jobs of its sweeps that run at a time; 0: no limit
  double gpu_seconds = 0;  // once used, none of its jobs starts any more; 0: no limit
  // GPU seconds that its ended attempts have used. Never decreases.
  double gpu_seconds_used = 0;
};

}  // namespace pelab::sched
