#include "core/catalog/heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::catalog {
namespace {

TEST(HeadsDifferTest, OfEveryEncodingThoseWhoseHeadsHaveSlopesOrNames) {
  std::vector<std::string> differ;
  for (const Entry& pe : Pes()) {
    if (HeadsDiffer(pe.name)) differ.emplace_back(pe.name);
  }
  EXPECT_THAT(differ, testing::ElementsAre("alibi", "partial_rope"));
  EXPECT_FALSE(HeadsDiffer("nosuch"));
}

}  // namespace
}  // namespace pelab::catalog
