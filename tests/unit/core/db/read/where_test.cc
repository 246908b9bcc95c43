#include "core/db/read/where.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>

#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/db/connection.h"
#include "core/db/read/reader.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
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

// SQLite reads JSON up to a depth of 2,000 and refuses the whole query beyond that.
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

TEST_F(WhereTest, OwnStandsForEveryOwnTask) {
  for (const char* task : {"own:toy", "own:toy(test=long)", "own:other"}) {
    file_.AddJob({.key = task, .pe = "own", .task = task, .spec_json = "{}"});
  }
  EXPECT_THAT(Found("task=own"), ElementsAre(5, 6, 7));
  EXPECT_THAT(Found("task!=own"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Found("not task=own"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Found("task=own:toy"), ElementsAre(5));
  EXPECT_THAT(Found("task in (own)"), ElementsAre(5, 6, 7));
  EXPECT_THAT(Found("task in (own, distance) and seed=0"), ElementsAre(1, 3, 5, 6, 7));
  EXPECT_THAT(Found("task not in (distance, own)"), IsEmpty());
  EXPECT_THAT(Found("task in (own:toy, own:other)"), ElementsAre(5, 7));
  EXPECT_THAT(Found("pe=own and task=own"), ElementsAre(5, 6, 7));
  EXPECT_THAT(Found("task ~ own"), IsEmpty()) << "a pattern is for the whole label";
}

TEST_F(WhereTest, TheValuesThatConditionsWant) {
  const auto values = [](const std::string& where) {
    std::vector<std::string> texts;
    const auto wanted = ValuesOfWhere(where);
    for (const WantedValue& one : *wanted) texts.push_back(WhereOne(one));
    return texts;
  };
  EXPECT_THAT(values(""), IsEmpty());
  EXPECT_THAT(
      values("pe=rope and (seed<3 or not task in (a, 'it''s')) and seed in (0..4, 7)"),
      ElementsAre("pe = 'rope'", "seed < '3'", "task = 'a'", "task = 'it''s'", "seed = '7'"));
  EXPECT_THAT(values("seed==1, seed>=2, seed<=3, seed>4"),
              ElementsAre("seed = '1'", "seed >= '2'", "seed <= '3'", "seed > '4'"));
  EXPECT_THAT(values("pe!=rope and pe~r* and epochs_to(0.9)=3 and epochs_to(0.9)<3"), IsEmpty());
  EXPECT_FALSE(ValuesOfWhere("pe=").ok());
}

TEST_F(WhereTest, TextsAndSpaces) {
  EXPECT_THAT(Found("  "), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Found(" pe = 'rope' "), ElementsAre(1, 2));
  EXPECT_THAT(Found("pe=\"ro\"\"pe\""), IsEmpty());
  EXPECT_THAT(Found("pe~*ope and pe_label=rope(base=500, scale=2)"), IsEmpty());
  EXPECT_THAT(Found("(pe=rope)and(seed=0)"), ElementsAre(1));
  EXPECT_THAT(Found("pe=rope seed=0"), ElementsAre(1));
  EXPECT_THAT(Found("pe == rope and seed==0"), ElementsAre(1));
  EXPECT_THAT(Found("pe=rope (seed=0) not task=counting or pe=nope"), ElementsAre(1, 3));
}

TEST_F(WhereTest, ErrorsSayWhereAndWhatMayBeThere) {
  EXPECT_THAT(Error("pe"), HasSubstr("column 3: expected after \"pe\" one of ="));
  EXPECT_THAT(Error("pe=rope,"), HasSubstr("column 9: expected FIELD=VALUE"));
  EXPECT_THAT(Error("pe=rope,"), HasSubstr("not the end"));
  EXPECT_THAT(Error("=rope"), HasSubstr("column 1: expected FIELD=VALUE"));
  EXPECT_THAT(Error("pe=rope =0"), HasSubstr("column 9: expected \"and\""));
  EXPECT_THAT(Error("pe=rope adn seed=0"), HasSubstr("column 13: expected after \"adn\" one of ="));
  EXPECT_THAT(Error("(pe=rope"), HasSubstr("or \")\", not the end"));
  EXPECT_THAT(Error("pe="), HasSubstr("column 4: expected a value"));
  EXPECT_THAT(Error("pe='rope"), HasSubstr("column 4: the quote is not closed"));
  EXPECT_THAT(Error("pe in rope"), HasSubstr("column 7: expected \"(\""));
  EXPECT_THAT(Error("seed=0 and per=rope"), HasSubstr("column 12: unknown field \"per\""));
  EXPECT_THAT(Error("lr=0.003"), HasSubstr("did you mean train.lr?"));
  EXPECT_THAT(Error("frobnicate=1"), HasSubstr("and the fields that `pelab catalog field` lists"));
  EXPECT_THAT(Error("epochs_to(many) < 3"), HasSubstr("column 11: expected a number"));
  EXPECT_THAT(Error(std::string(200, '(')), HasSubstr("more than 50 levels"));
  EXPECT_THAT(Error(std::string(70000, ' ') + "pe=rope"), HasSubstr("at most 64000"));
  for (const char* comparison : {"pe ~ ", "pe !~ ", "model.activation ~ "}) {
    EXPECT_THAT(Error(comparison + std::string(50'001, 'a')),
                HasSubstr("the pattern has 50001 bytes; at most 1000 are allowed"));
  }
  EXPECT_THAT(Found("pe ~ " + std::string(999, 'a') + "*"), IsEmpty());
}

// Otherwise the message, which quotes it, could be neither sent nor written as JSON.
TEST_F(WhereTest, WhatIsNotUtf8IsRefused) {
  for (const char* where : {"pe = \xff", "\xc3", "seed = \"\xe2\x80\"", "gini > \xed\xa0\x80"}) {
    const auto compiled = CompileWhere(where);
    EXPECT_THAT(std::string(compiled.status().message()), HasSubstr("is not UTF-8 text"));
    EXPECT_TRUE(IsUtf8(compiled.status().ToString())) << compiled.status();
    EXPECT_FALSE(FieldsOfWhere(where).ok());
  }
  EXPECT_THAT(Found("pe = \xc3\xa9"), IsEmpty());
}

TEST_F(WhereTest, AnErrorCutsBetweenCharacters) {
  for (int letters = 36; letters < 42; ++letters) {
    const std::string word = std::string(letters, '%') + "\xe2\x82\xac\xe2\x82\xac";
    const std::string error = Error(word + " = 1");
    EXPECT_TRUE(IsUtf8(error)) << error;
    EXPECT_THAT(error, HasSubstr(Concat("not \"", std::string(36, '%'))));
  }
}

// "seed=5 or seed=6 or …", with `count` numbers from 5 on.
std::string Repeated(const std::string& condition, const std::string& word, int count) {
  std::string text;
  for (int i = 5; i < 5 + count; ++i) {
    text += Concat(text.empty() ? "" : Concat(" ", word, " "), condition, i);
  }
  return text;
}

TEST_F(WhereTest, ListsOfAThousand) {
  std::string seeds = "5";
  for (int seed = 6; seed < 1005; ++seed) seeds += Concat(", ", seed);
  EXPECT_THAT(Found(Concat("seed in (", seeds, ")")), ElementsAre(4));
  EXPECT_THAT(Found(Concat("seed not in (", seeds, ")")), ElementsAre(1, 2, 3));
  std::string rates = "3e-4", names = "alibi", epochs = "1";
  for (int i = 1; i < 1000; ++i) rates += Concat(", ", i), names += Concat(", pe", i);
  for (int i = 2; i < 200; ++i) epochs += Concat(", ", i);
  EXPECT_THAT(Found(Concat("train.lr in (", rates, ")")), ElementsAre(2));
  EXPECT_THAT(Found(Concat("pe in (", names, ")")), ElementsAre(4));
  EXPECT_THAT(Found(Concat("epochs_to(0.5) in (", epochs, ")")), IsEmpty());
}

TEST_F(WhereTest, AThousandConditions) {
  for (const int count : {88, 1000}) {
    EXPECT_THAT(Found(Repeated("seed=", "or", count)), ElementsAre(4)) << count;
    EXPECT_THAT(Found(Repeated("seed!=", "and", count)), ElementsAre(1, 2, 3)) << count;
    EXPECT_THAT(Found(Repeated("epochs_to(0.5)<=", "or", count)), IsEmpty()) << count;
    EXPECT_THAT(Found(Repeated("model.layers=", "or", count)), IsEmpty()) << count;
    EXPECT_THAT(Found(Repeated("gini>", "or", count)), IsEmpty()) << count;
    EXPECT_THAT(Found(Concat("not (", Repeated("seed=", "or", count), ")")), ElementsAre(1, 2, 3))
        << count;
  }
}

// Conditions of any shape within the bounds are answered, by every list.
TEST_F(WhereTest, AlmostFiftyLevels) {  // epochs_to adds one level
  const auto nested = [](const std::string& before, const std::string& after, int levels,
                         const std::string& innermost) {
    std::string text = innermost;
    for (int i = 0; i < levels; ++i) text = Concat(before, text, after);
    return text;
  };
  // All are true for seed 7 only.
  const std::string many = Repeated("seed=", "or", 800);
  const std::vector<std::string> conditions = {
      nested("(", ")", 48, "seed=7"),
      nested("not ", "", 48, "seed=7"),
      nested("seed=7 or (", ")", 48, "seed=7"),
      nested("(", ") or seed=7", 48, "seed=7"),
      nested("seed=7 or (seed=7 and (", "))", 24, "seed=7"),
      nested("seed=7 and not (seed!=7 or not (", "))", 12, many),
      nested("seed=7 or (pe=alibi and (", "))", 24, many),
      nested("train.lr=0.001 or (train.lr=0.001 and (", "))", 24, "train.lr=0.001"),
  };
  for (const std::string& where : conditions) {
    EXPECT_THAT(Found(where), ElementsAre(4)) << where;
    auto reader = Reader::Open(file_.path());
    ASSERT_TRUE(reader.ok());
    v1::JobFilter filter;
    filter.set_where(where);
    const auto asked = [&](auto list, auto request) {
      *request.mutable_filter() = filter;
      return ((**reader).*list)(request).status();
    };
    EXPECT_TRUE(asked(&Reader::ListCurves, v1::ListCurvesRequest()).ok()) << where;
    v1::ListEpochsToRequest epochs_to;
    epochs_to.set_test_accuracy(0.5);
    EXPECT_TRUE(asked(&Reader::ListEpochsTo, epochs_to).ok()) << where;
    EXPECT_TRUE(asked(&Reader::ListHeadAblations, v1::ListHeadAblationsRequest()).ok()) << where;
    EXPECT_TRUE(asked(&Reader::ListDeposits, v1::ListDepositsRequest()).ok()) << where;
    EXPECT_TRUE(asked(&Reader::ListAnalyses, v1::ListAnalysesRequest()).ok()) << where;
    EXPECT_TRUE(asked(&Reader::ListAttempts, v1::ListAttemptsRequest()).ok()) << where;
  }
}

TEST_F(WhereTest, MoreThanAThousandConditionsAreRefused) {
  EXPECT_THAT(Error(Repeated("seed=", "or", 1001)),
              HasSubstr("a condition of 1001 comparisons and listed values; at most 1000"));
  std::string seeds = "0";
  for (int seed = 1; seed < 3000; ++seed) seeds += Concat(",", seed);
  EXPECT_THAT(Error(Concat("pe=rope and seed in (", seeds, ")")), HasSubstr("of 3001"));
}

// If a condition within the bounds is still too much for SQLite, the error is the condition's.
TEST_F(WhereTest, WhatSqliteRefusesToParseIsNoLostDatabase) {
  auto connection = Connection::Open(file_.path());
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto asked = [&](const std::string& sql) {
    return (*connection)->Read([&](SQLite::Database& db) {
      SQLite::Statement query(db, sql);
      return absl::OkStatus();
    });
  };
  const absl::Status deep =
      asked(Concat("SELECT ", std::string(200, '('), "1", std::string(200, ')')));
  // From SQLite 3.46 on the parser's stack grows.
  if (sqlite3_libversion_number() < 3'046'000) {
    EXPECT_EQ(deep.code(), absl::StatusCode::kInvalidArgument) << deep;
    EXPECT_THAT(std::string(deep.message()), HasSubstr("too large for SQLite"));
  }
  std::string chain = "SELECT 1";
  for (int i = 0; i < 2000; ++i) chain += " OR 1";
  const absl::Status long_chain = asked(chain);
  EXPECT_EQ(long_chain.code(), absl::StatusCode::kInvalidArgument) << long_chain;
  EXPECT_THAT(std::string(long_chain.message()), HasSubstr("too large for SQLite"));
  const absl::Status pattern = (*connection)->Read([](SQLite::Database& db) {
    SQLite::Statement query(db, "SELECT 'a' GLOB hex(zeroblob(30000))");
    query.executeStep();
    return absl::OkStatus();
  });
  EXPECT_EQ(pattern.code(), absl::StatusCode::kInvalidArgument) << pattern;
  const absl::Status wrong = asked("SELECT nosuch");
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal) << wrong;
}

}  // namespace
}  // namespace pelab::db
