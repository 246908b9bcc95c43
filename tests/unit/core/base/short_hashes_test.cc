#include "core/base/short_hashes.h"

#include <gtest/gtest.h>

#include <string>

namespace pelab {
namespace {

const std::string kA = "0123456789" + std::string(54, 'a');
const std::string kB = "fedcba9876" + std::string(54, 'b');

TEST(ShortHashesTest, EightDigitsAreEnoughForMost) {
  ShortHashes hashes;
  hashes.Add(kA);
  hashes.Add("task.file: " + kB + " and another");
  EXPECT_EQ(hashes.In(kA), "01234567");
  EXPECT_EQ(hashes.In("task.file: " + kA + " against " + kB + "."),
            "task.file: 01234567 against fedcba98.");
}

TEST(ShortHashesTest, AsManyMoreAsTellThemApart) {
  const std::string near = kA.substr(0, 11) + std::string(53, 'c');
  for (const bool first : {true, false}) {
    ShortHashes hashes;
    for (const std::string& hash : {first ? kA : near, kB, first ? near : kA, kA}) hashes.Add(hash);
    EXPECT_EQ(hashes.In(kA), "0123456789aa");
    EXPECT_EQ(hashes.In(near), "0123456789ac");
    EXPECT_EQ(hashes.In(kB), "fedcba9876bb");
  }
}

TEST(ShortHashesTest, OtherTextsStay) {
  ShortHashes hashes;
  std::string upper = kA;
  upper[20] = 'A';
  for (const std::string& text :
       {std::string(), std::string("rope(base=500)"), kA.substr(1), kA + "0", "x" + kA, upper,
        kA + "_", std::string("é") + "deadbeef"}) {
    hashes.Add(text);
    EXPECT_EQ(hashes.In(text), text);
  }
  EXPECT_EQ(hashes.In(kB), kB) << "it was not noted, so another may begin alike";
}

}  // namespace
}  // namespace pelab
