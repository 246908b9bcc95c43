#include "core/views/where.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/views/reader.h"
#include "core/views/text.h"
#include "tests/unit/core/views/database_for_test.h"

namespace pelab::views {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WhereTest : public ::testing::Test {
 protected:
  // 1: rope distance 0, 2: rope distance 1, 3: nope distance 0, 4: alibi distance 7
  WhereTest() {
    Add("a1", "rope", 0, "0.0001");
    Add("b1", "rope", 1, "0.0003");
    Add("c1", "nope", 0, "0.0001");
    Add("d1", "alibi", 7, "0.001");
  }
  void Add(const std::string& key, const std::string& pe, std::int64_t seed,
           const std::string& lr) {
    file_.AddJob({.key = key,
                  .pe = pe,
                  .seed = seed,
                  .spec_json = Concat(R"({"pe":{"name":")", pe, R"("},"seed":)", seed,
                                      R"(,"task":{"name":"distance"},"train":{"lr":)", lr, "}}")});
  }
  absl::StatusOr<std::vector<std::int64_t>> Select(const std::string& where) {
    auto reader = Reader::Open(file_.path());
    if (!reader.ok()) return reader.status();
    v1::ListJobsRequest request;
    request.mutable_filter()->set_where(where);
    auto response = (*reader)->ListJobs(request);
    if (!response.ok()) return response.status();
    std::vector<std::int64_t> ids;
    for (const auto& job : response->jobs()) ids.push_back(job.job_id());
    return ids;
  }
  std::vector<std::int64_t> Found(const std::string& where) {
    auto ids = Select(where);
    EXPECT_TRUE(ids.ok()) << where << ": " << ids.status();
    return ids.value_or(std::vector<std::int64_t>{-1});
  }
  std::string Error(const std::string& where) {
    auto ids = Select(where);
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument) << where;
    return std::string(ids.status().message());
  }

  DatabaseForTest file_;
};

// SQLite reads JSON up to 2,000 deep and refuses the whole query beyond.
TEST_F(WhereTest, ASpecThatCannotBeReadHasNoFields) {
  file_.AddJob(
      {.key = "e1",
       .pe = "rope",
       .seed = 2,
       .spec_json = R"({"seed":2,"x":)" + std::string(3000, '[') + std::string(3000, ']') + "}"});
  EXPECT_THAT(Found("train.lr = 0.0003"), ElementsAre(2));
  EXPECT_THAT(Found("pe = rope and seed = 2"), ElementsAre(5));
  EXPECT_THAT(Found("task.data_seed = 7 or (pe = rope and seed = 1)"), ElementsAre(2));
}

TEST_F(WhereTest, AndBindsTighterThanOr) {
  EXPECT_THAT(Found("pe=nope or pe=rope and seed=1"), ElementsAre(2, 3));
  EXPECT_THAT(Found("(pe=nope or pe=rope) and seed=1"), ElementsAre(2));
  EXPECT_THAT(Found("pe=rope,seed=1"), ElementsAre(2)) << "a comma is an and";
  EXPECT_THAT(Found("pe=rope , seed=1 or pe=alibi"), ElementsAre(2, 4));
  EXPECT_THAT(Found("pe=rope AND seed=1 OR pe=alibi"), ElementsAre(2, 4));
}

TEST_F(WhereTest, NotBindsTightest) {
  EXPECT_THAT(Found("not pe=rope and seed=0"), ElementsAre(3));
  EXPECT_THAT(Found("not (pe=rope and seed=0)"), ElementsAre(2, 3, 4));
  EXPECT_THAT(Found("not not pe=nope"), ElementsAre(3));
  EXPECT_THAT(Found("not train.lr>=3e-4"), ElementsAre(1, 3));
  EXPECT_THAT(Found("not test_accuracy>0.5"), ElementsAre(1, 2, 3, 4)) << "none has one";
}

TEST_F(WhereTest, ListsAndRanges) {
  EXPECT_THAT(Found("pe in (nope, alibi)"), ElementsAre(3, 4));
  EXPECT_THAT(Found("pe NOT IN (nope, alibi)"), ElementsAre(1, 2));
  EXPECT_THAT(Found("seed in (1..6,7)"), ElementsAre(2, 4));
  EXPECT_THAT(Found("train.lr in (1e-4, 0.001)"), ElementsAre(1, 3, 4));
  EXPECT_THAT(Found("pe in ('nope')"), ElementsAre(3));
}

TEST_F(WhereTest, TextsAndSpaces) {
  EXPECT_THAT(Found("  "), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Found(" pe = 'rope' "), ElementsAre(1, 2));
  EXPECT_THAT(Found("pe=\"ro\"\"pe\""), IsEmpty());
  EXPECT_THAT(Found("pe~*ope and pe_label=rope(base=500, scale=2)"), IsEmpty());
  EXPECT_THAT(Found("(pe=rope)and(seed=0)"), ElementsAre(1));
}

TEST_F(WhereTest, ErrorsSayWhereAndWhatMayBeThere) {
  EXPECT_THAT(Error("pe"), HasSubstr("column 3: expected after \"pe\" one of ="));
  EXPECT_THAT(Error("pe=rope,"), HasSubstr("column 9: expected FIELD=VALUE"));
  EXPECT_THAT(Error("pe=rope,"), HasSubstr("not the end"));
  EXPECT_THAT(Error("=rope"), HasSubstr("column 1: expected FIELD=VALUE"));
  EXPECT_THAT(Error("pe=rope seed=0"), HasSubstr("column 9: expected \"and\""));
  EXPECT_THAT(Error("(pe=rope"), HasSubstr("or \")\", not the end"));
  EXPECT_THAT(Error("pe="), HasSubstr("column 4: expected a value"));
  EXPECT_THAT(Error("pe='rope"), HasSubstr("column 4: the quote is not closed"));
  EXPECT_THAT(Error("pe in rope"), HasSubstr("column 7: expected \"(\""));
  EXPECT_THAT(Error("seed=0 and per=rope"), HasSubstr("column 12: unknown field \"per\""));
  EXPECT_THAT(Error("epochs_to(many) < 3"), HasSubstr("column 11: expected a number"));
  EXPECT_THAT(Error(std::string(200, '(')), HasSubstr("more than 50 levels"));
  EXPECT_THAT(Error(std::string(20000, ' ') + "pe=rope"), HasSubstr("at most 10000"));
}

}  // namespace
}  // namespace pelab::views
