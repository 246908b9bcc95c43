#include "client/terminal/row_stream.h"

#include <gtest/gtest.h>

#include "core/results/rows.h"

namespace pelab::client {
namespace {

using render::Json;

const std::vector<std::string> kColumns = {"a", "b"};
const std::vector<Json> kRows = {
    {{"a", 1}, {"b", "x,y"}}, {{"a", nullptr}, {"b", "\"\n"}}, {{"a", 0.1}, {"b", {{"c", 2}}}}};

class RowStreamTest : public testing::Test {
 protected:
  RowStreamTest() {
    context_.out = [this](const std::string& text) { out_ += text; };
    context_.err = [](const std::string&) {};
  }
  // Writes two pages, then finishes with `status`.
  absl::StatusOr<int> Put(const std::string& output, const absl::Status& status,
                          std::size_t rows = kRows.size()) {
    context_.options.output_name = output;
    RowStream stream(context_, {{"first", 1}, {"rows", Json::array()}}, kColumns);
    for (std::size_t i = 0; i < rows; ++i) {
      stream.Add(kRows[i]);
      if (i == 1) {
        EXPECT_TRUE(stream.EndPage().ok());
      }
    }
    EXPECT_TRUE(stream.EndPage().ok());
    return stream.Finish(status);
  }

  Context context_;
  std::string out_;
};

TEST_F(RowStreamTest, TheSameTextAsAtOnce) {
  EXPECT_EQ(*Put("json", absl::OkStatus()), kExitOk);
  EXPECT_EQ(out_, render::ToJson({{"first", 1}, {"rows", kRows}}));
  out_.clear();
  EXPECT_EQ(*Put("csv", absl::OkStatus()), kExitOk);
  EXPECT_EQ(out_, render::ToCsv(kColumns, kRows));
  out_.clear();
  EXPECT_EQ(*Put("jsonl", absl::OkStatus()), kExitOk);
  std::string lines;
  for (const Json& row : kRows) lines += render::ToJson(row, /*one_line=*/true);
  EXPECT_EQ(out_, lines);
}

TEST_F(RowStreamTest, NoRows) {
  EXPECT_EQ(*Put("json", absl::OkStatus(), 0), kExitOk);
  EXPECT_EQ(out_, render::ToJson({{"first", 1}, {"rows", Json::array()}}));
  out_.clear();
  EXPECT_EQ(*Put("csv", absl::OkStatus(), 0), kExitOk);
  EXPECT_EQ(out_, "a,b\r\n");
  out_.clear();
  EXPECT_EQ(*Put("jsonl", absl::OkStatus(), 0), kExitOk);
  EXPECT_EQ(out_, "");
}

TEST_F(RowStreamTest, AnErrorAfterRowsKeepsTheValueWhole) {
  const absl::Status broken = absl::InternalError("the disk went away");
  const absl::StatusOr<int> code = Put("json", broken, 2);
  ASSERT_TRUE(code.ok()) << "it is said in the value";
  EXPECT_EQ(*code, kExitFailed);
  const Json value = Json::parse(out_);
  EXPECT_EQ(value["rows"].size(), 2U);
  EXPECT_EQ(value["error"]["message"], "the disk went away");
  out_.clear();
  EXPECT_EQ(Put("json", broken, 0).status(), broken);
  EXPECT_EQ(out_, "") << "the error alone";
  EXPECT_EQ(Put("csv", broken, 2).status(), broken);
  EXPECT_EQ(out_, render::ToCsv(kColumns, {kRows[0], kRows[1]}));
}

TEST_F(RowStreamTest, ReadingStopsWhenNobodyGetsTheRows) {
  for (const char* output : {"json", "csv", "jsonl"}) {
    context_.options.output_name = output;
    context_.out_failed = [] { return true; };
    RowStream stream(context_, {{"rows", Json::array()}}, kColumns);
    stream.Add(kRows[0]);
    const absl::Status stopped = stream.EndPage();
    EXPECT_EQ(stopped.code(), absl::StatusCode::kAborted) << output;
    EXPECT_EQ(*stream.Finish(stopped), kExitOk) << "main knows why, and says it";
  }
}

TEST_F(RowStreamTest, ARowByItsOwnTextIsTheSame) {
  v1::CurveRow row;
  row.set_job_id(3);
  row.set_test_accuracy(0.25);
  for (const char* output : {"json", "csv", "jsonl"}) {
    context_.options.output_name = output;
    const auto put = [&](auto add) {
      out_.clear();
      RowStream stream(context_, {{"curves", Json::array()}}, results::ColumnsOf<v1::CurveRow>());
      add(stream);
      EXPECT_TRUE(stream.EndPage().ok());
      EXPECT_TRUE(stream.Finish(absl::OkStatus()).ok());
      return out_;
    };
    void (*const append)(const v1::CurveRow&, std::string&) =
        std::string(output) == "csv"    ? results::AppendCsv
        : std::string(output) == "json" ? results::AppendJson
                                        : results::AppendJsonLine;
    EXPECT_EQ(put([&](RowStream& stream) { stream.Add(row, append); }),
              put([&](RowStream& stream) { stream.Add(results::ToJson(row)); }));
  }
}

}  // namespace
}  // namespace pelab::client
