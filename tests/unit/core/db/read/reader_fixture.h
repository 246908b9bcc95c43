// A database file with a reader of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/db/read/reader.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {

inline std::vector<std::int64_t> Ids(const v1::ListJobsResponse& response) {
  std::vector<std::int64_t> ids;
  for (const auto& job : response.jobs()) ids.push_back(job.job_id());
  return ids;
}

class ReaderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Reader> Open() {
    auto reader = Reader::Open(file_.path());
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }
  v1::ListJobsResponse Jobs(const v1::JobFilter& filter = {}, const std::string& after = "",
                            int limit = 0) {
    v1::ListJobsRequest request;
    *request.mutable_filter() = filter;
    request.mutable_page()->set_after(after);
    request.mutable_page()->set_limit(limit);
    auto response = Open()->ListJobs(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(v1::ListJobsResponse());
  }

  DatabaseForTest file_;
};

}  // namespace pelab::db
