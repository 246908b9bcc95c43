#include "core/trace/span.h"

#include <gtest/gtest.h>

#include "core/base/build_info.h"

namespace pelab::trace {
namespace {

// Written by hand from the examples of opentelemetry-proto and its rules for JSON: ids in
// hexadecimal digits, integers of 64 bits as texts, enumerations as numbers.
TEST(Span, IsALineOfOtlpJson) {
  Span span{.context = {"5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"},
            .parent_span_id = "eee19b7ec3c1b173",
            .name = "attempt",
            .kind = Kind::kServer,
            .start = absl::FromUnixNanos(1544712660000000000),
            .end = absl::FromUnixNanos(1544712661000000001),
            .attributes = {{"job", std::int64_t{3}}, {"rate", 0.5}, {"label", "a \"b\""}},
            .error = "lost"};
  const std::string head =
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":)"
      R"({"stringValue":"my.service"}}]},"scopeSpans":[{"scope":{"name":"pelab","version":")" +
      VersionText() + R"("},"spans":[)";
  EXPECT_EQ(ToOtlpLine(span, {{"service.name", "my.service"}}),
            head + R"({"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",)"
                   R"("parentSpanId":"eee19b7ec3c1b173","name":"attempt","kind":2,)"
                   R"("startTimeUnixNano":"1544712660000000000",)"
                   R"("endTimeUnixNano":"1544712661000000001","attributes":[)"
                   R"({"key":"job","value":{"intValue":"3"}},)"
                   R"({"key":"rate","value":{"doubleValue":0.5}},)"
                   R"({"key":"label","value":{"stringValue":"a \"b\""}}],)"
                   R"("status":{"code":2,"message":"lost"}}]}]}]})");
}

TEST(Span, TheFirstOfATraceHasNoParentAndSuccessNoStatus) {
  const std::string line = ToOtlpLine(
      {.context = {"5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"}, .name = "pelab run"},
      {});
  EXPECT_EQ(line.find("parentSpanId"), std::string::npos);
  EXPECT_NE(line.find(R"("status":{})"), std::string::npos);
}

TEST(Span, NoTextBreaksTheLine) {
  Span span;
  span.error = "a\nb \xff \x01";
  const std::string line = ToOtlpLine(span, {});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find("a\\nb \xEF\xBF\xBD \\u0001"), std::string::npos) << line;
}

// A clock that was set back makes no span that ends before it began.
TEST(Span, EndsNotBeforeItBegan) {
  Span span;
  span.start = absl::FromUnixNanos(2000);
  span.end = absl::FromUnixNanos(1000);
  EXPECT_NE(ToOtlpLine(span, {}).find(R"("endTimeUnixNano":"2000")"), std::string::npos);
}

}  // namespace
}  // namespace pelab::trace
