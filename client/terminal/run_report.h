// What `pelab run` shows at its end.
#pragma once

#include "absl/status/status.h"
#include "client/options.h"
#include "client/source/data_source.h"

namespace pelab::client {

// The results with seeds collapsed, the accuracy curves, the ablation map with the strongest head,
// and how to query them again. One JSON value, or CSV of the groups, where that is asked for.
absl::Status ReportRun(const Context& context, DataSource& source, const v1::Sweep& sweep);

}  // namespace pelab::client
