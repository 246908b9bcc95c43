#include "core/base/trace_context.h"

#include <gtest/gtest.h>

namespace pelab {
namespace {

// The example of the specification, section 3.2.
constexpr char kExample[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, ReadsTheExampleOfTheSpecification) {
  const auto read = ParseTraceparent(kExample);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(read->span_id, "b7ad6b7169203331");
  EXPECT_EQ(Traceparent(*read), kExample);
}

TEST(TraceContext, ALaterVersionMayHaveMore) {
  EXPECT_TRUE(ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what"));
  EXPECT_TRUE(ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
}

TEST(TraceContext, RefusesWhatIsNone) {
  for (const char* text : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                           "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
                           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "0G-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
                           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}) {
    EXPECT_FALSE(ParseTraceparent(text)) << text;
  }
}

TEST(TraceContext, NewOnesAreValidAndDiffer) {
  const TraceContext first = NewTrace();
  const TraceContext second = NewTrace();
  EXPECT_EQ(ParseTraceparent(Traceparent(first)), first);
  EXPECT_NE(first.trace_id, second.trace_id);
  const TraceContext child = ChildOf(first);
  EXPECT_EQ(ParseTraceparent(Traceparent(child)), child);
  EXPECT_EQ(child.trace_id, first.trace_id);
  EXPECT_NE(child.span_id, first.span_id);
}

}  // namespace
}  // namespace pelab
