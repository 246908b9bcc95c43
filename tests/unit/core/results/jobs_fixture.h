// Job rows like those of the views.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/strings.h"
#include "pelab/v1/results.pb.h"

namespace pelab {

inline constexpr auto kDone = v1::JOB_STATE_SUCCEEDED;

inline v1::JobRow MakeJob(std::int64_t id, const std::string& pe, std::int64_t seed,
                          v1::JobState state, int correct, const std::string& lr = "0.001",
                          std::int64_t data_seed = -1) {
  v1::JobRow job;
  job.set_job_id(id);
  job.set_key(std::string(64, static_cast<char>('a' + id % 6)));
  job.set_pe(pe);
  job.set_pe_label(pe);
  job.set_task("distance");
  job.set_protocol("clean");
  job.set_seed(seed);
  job.set_state(state);
  job.set_epochs(2);
  job.set_spec_json(Concat(R"({"format":1,"pe":{"name":")", pe, R"("},"seed":)", seed,
                           R"(,"task":{"data_seed":)", data_seed < 0 ? seed : data_seed,
                           R"(,"name":"distance"},"train":{"lr":)", lr, "}}"));
  if (state != v1::JOB_STATE_QUEUED) {
    job.set_test_correct(correct);
    job.set_test_total(1000);
    job.set_test_accuracy(correct / 1000.0);
  }
  return job;
}

}  // namespace pelab
