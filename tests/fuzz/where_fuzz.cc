// Any text as a condition of --where: it is refused with a sentence, or SQLite runs what it was
// compiled to.
#include "core/db/read/reader.h"
#include "core/db/read/where.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/quiet.h"
#include "tests/fuzz/small_database.h"

namespace pelab::where_fuzz {
namespace {

using fuzz::Require;

db::Reader& TheReader() {
  static const fuzz::SmallDatabase database;
  static const auto reader = *db::Reader::Open(database.path());
  return *reader;
}

}  // namespace

PELAB_FUZZ_TARGET(where) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto compiled = db::CompileWhere(text);
  const auto fields = db::FieldsOfWhere(text);
  if (!compiled.ok()) {
    Require(absl::IsInvalidArgument(compiled.status()), "a bad condition is a bad argument",
            compiled.status().ToString());
    fuzz::RequireSentence(compiled.status().message());
  }
  // A field may have a name that no column has.
  Require(!compiled.ok() || fields.ok(), "what compiles has fields");
  v1::ListJobsRequest request;
  if (!IsUtf8(text)) return 0;  // no message could hold it
  request.mutable_filter()->set_where(text);
  const auto jobs = TheReader().ListJobs(request);
  Require(!jobs.ok() || compiled.ok(), "what runs has compiled");
  Require(jobs.ok() || absl::IsInvalidArgument(jobs.status()), "a bad condition is a bad argument",
          jobs.status().ToString());
  v1::ListCurvesRequest curves;
  *curves.mutable_filter() = request.filter();
  Require(TheReader().ListCurves(curves).ok() == jobs.ok(), "every list takes the condition");
  return 0;
}

}  // namespace pelab::where_fuzz
