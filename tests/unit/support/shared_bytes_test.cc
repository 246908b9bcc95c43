#include "tests/support/shared_bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace pelab {
namespace {

// A string that does the same.
struct Both {
  SharedBytes bytes;
  std::string text;

  void Resize(std::size_t size) {
    bytes.resize(size);
    text.resize(size);
  }
  void Write(std::size_t offset, const std::string& data) {
    bytes.Write(offset, data.data(), data.size());
    if (text.size() < offset + data.size()) text.resize(offset + data.size());
    text.replace(offset, data.size(), data);
  }
};

TEST(SharedBytesTest, DoAsAStringDoesAndCopiesStayApart) {
  std::mt19937 random(3);
  const auto below = [&](std::size_t end) { return random() % end; };
  std::vector<Both> copies(3);
  for (int step = 0; step < 3000; ++step) {
    Both& one = copies[below(copies.size())];
    switch (below(4)) {
      case 0:
        one = copies[below(copies.size())];
        break;
      case 1:
        one.Resize(below(2) == 0 ? below(30'000) : 4096 * below(5));
        break;
      default:
        one.Write(below(20'000), std::string(below(9000), static_cast<char>('a' + step % 26)));
    }
    for (const Both& each : copies) ASSERT_EQ(each.bytes.ToString(), each.text) << step;
  }
}

TEST(SharedBytesTest, ReadsUpToTheEnd) {
  SharedBytes bytes;
  bytes.Write(4090, "0123456789", 10);
  std::string read(6, 'x');
  EXPECT_EQ(bytes.Read(4094, read.data(), 6), 6U);
  EXPECT_EQ(read, "456789");
  EXPECT_EQ(bytes.Read(4098, read.data(), 6), 2U);
  EXPECT_EQ(read, "896789");
  EXPECT_EQ(bytes.Read(4100, read.data(), 6), 0U);
  EXPECT_EQ(bytes.Read(9000, read.data(), 6), 0U);
  EXPECT_EQ(bytes.Read(4088, read.data(), 3), 3U);
  EXPECT_EQ(read, std::string("\0\0"
                              "0789",
                              6));
}

}  // namespace
}  // namespace pelab
