#include "core/results/cell_jobs.h"

#include <cstddef>
#include <utility>

namespace pelab::results {

JobList JobsOf(const std::vector<experiment::Cell>& cells) {
  std::vector<v1::JobRow> jobs(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    jobs[i].set_pe(cells[i].job.pe);
    jobs[i].set_pe_label(cells[i].pe_label);
    jobs[i].set_task(cells[i].task_label);
    jobs[i].set_protocol(cells[i].protocol_label);
    jobs[i].set_seed(cells[i].job.seed);
    jobs[i].set_spec_json(cells[i].canonical_json);
  }
  return JobList(std::move(jobs));
}

}  // namespace pelab::results
