// Which jobs of another database are refused before the store sees them.
#include "server/service/import_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/utf8.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/key.h"
#include "tests/support/status_matchers.h"

namespace pelab::service {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ResultOf;

v1::ImportedJob Job() {
  const std::string spec = ToCanonicalJson(experiment::MakeJob("clean", "rope", "distance", 1, {}));
  v1::ImportedJob job;
  job.set_key(experiment::KeyOf(spec));
  job.set_spec_json(spec);
  job.set_pe_label("rope");
  job.set_protocol("clean");
  job.set_device_kind("any");
  return job;
}

v1::ImportedJob WithWorker(const std::string& id) {
  v1::ImportedJob job = Job();
  job.add_workers()->set_worker_id(id);
  return job;
}

TEST(ImportParts, ASoundJobIsTaken) {
  EXPECT_THAT(ToImportJob(Job()), IsOk());
  EXPECT_THAT(ToImportJob(WithWorker("0f8fad5b-d9cb-469f-a165-70867728950e")), IsOk());
}

// Otherwise half a character would be in the message.
TEST(ImportParts, AKeyThatIsNoneIsNamedWhole) {
  v1::ImportedJob job = Job();
  job.set_key("abcdefghijk\xc3\xa9\x1b[2J");
  EXPECT_THAT(
      ToImportJob(job),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("job \"abcdefghijk\xc3\xa9\\x1b[2J\" has a spec of another"),
                     ResultOf([](const std::string& text) { return IsUtf8(text); }, true))));
}

// Ids are cut where workers are listed.
TEST(ImportParts, IdsOfWorkersAreThoseThatAWorkerCanHave) {
  for (const std::string& id : {std::string(), std::string("a b"), std::string("w\xc3\xa9"),
                                std::string("\x1b"), std::string(129, 'a')}) {
    EXPECT_THAT(ToImportJob(WithWorker(id)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("has a worker whose id must be 1 to 128 printable")))
        << id;
  }
}

}  // namespace
}  // namespace pelab::service
