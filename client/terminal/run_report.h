// The final report of `pelab run`.
#pragma once

#include "absl/status/status.h"
#include "client/options/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Prints the results over seeds, the accuracy curves, the ablation map with the strongest head, and
// the commands that show them again. With json one value; with csv the groups.
absl::Status ReportRun(const Context& context, DataSource& source, const v1::Sweep& sweep);

}  // namespace pelab::client
