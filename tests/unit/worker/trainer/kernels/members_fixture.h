// Helpers for tests of members (worker/trainer/kernels/members.h): a kernel must give the same bits
// for each of several members as for that member alone.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace pelab::trainer {

inline constexpr std::int64_t kMembers = 3;

// A problem for each member. They differ in everything but their options.
template <class Case, class Options>
std::vector<std::unique_ptr<Case>> CasesOfMembers(const Options& options) {
  std::vector<std::unique_ptr<Case>> cases;
  for (unsigned m = 0; m < kMembers; ++m) cases.push_back(std::make_unique<Case>(options, m));
  return cases;
}

// Appends `part` to `whole`.
template <class Element>
void Append(const std::vector<Element>& part, std::vector<Element>* whole) {
  whole->insert(whole->end(), part.begin(), part.end());
}

// The part of one member, of kMembers equal parts.
template <class Element>
std::vector<Element> PartOf(const std::vector<Element>& whole, std::int64_t member) {
  EXPECT_EQ(whole.size() % kMembers, 0U);
  const auto count = static_cast<std::ptrdiff_t>(whole.size() / kMembers);
  return {whole.begin() + member * count, whole.begin() + (member + 1) * count};
}

template <class Element>
void ExpectSameBits(const std::vector<Element>& found, const std::vector<Element>& expected,
                    const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof found[i]), 0) << what << "[" << i << "]";
  }
}

// Expects that the part of each member in `whole` has the same bits as field(alone[member]).
template <class Alone, class Element, class Field>
void ExpectSameParts(const std::vector<Element>& whole, const std::vector<Alone>& alone,
                     const char* what, const Field& field) {
  for (std::int64_t member = 0; member < kMembers; ++member) {
    ExpectSameBits(PartOf(whole, member), field(*alone[member]),
                   what + (" of member " + std::to_string(member)));
  }
}

// The parameters of several members. A member's parameters are side by side, each at a multiple of
// four floats. The members follow one another, `beyond` floats further apart than needed. The gaps
// are NaN.
class MemberParameters {
 public:
  // `members`: the parameters of each member, in the same order; empty: there is no such parameter.
  MemberParameters(const std::vector<std::vector<std::vector<float>>>& members,
                   std::int64_t beyond) {
    std::int64_t end = 0;
    for (const std::vector<float>& parameter : members[0]) {
      starts_.push_back(parameter.empty() ? -1 : end);
      end += (static_cast<std::int64_t>(parameter.size()) + 3) / 4 * 4;
    }
    stride_ = end + beyond;
    data_.assign(stride_ * static_cast<std::int64_t>(members.size()),
                 std::numeric_limits<float>::quiet_NaN());
    for (std::size_t m = 0; m < members.size(); ++m) {
      for (std::size_t i = 0; i < starts_.size(); ++i) {
        std::copy(members[m][i].begin(), members[m][i].end(),
                  data_.begin() + static_cast<std::int64_t>(m) * stride_ + starts_[i]);
      }
    }
  }
  std::int64_t stride() const { return stride_; }
  // Parameter i of the first member; null if there is none.
  const float* First(std::size_t i) const {
    return starts_[i] < 0 ? nullptr : data_.data() + starts_[i];
  }

 private:
  std::vector<std::int64_t> starts_;
  std::int64_t stride_ = 0;
  std::vector<float> data_;
};

// Pairs of keys, `stride` words apart like the keys of a step's dropout places.
class MemberKeys {
 public:
  static constexpr std::int64_t kStride = 6;  // three places; this is the second

  void Add(std::uint32_t key0, std::uint32_t key1) {
    Append({~key0, ~key1, key0, key1, key0 + 1, key1 + 1}, &words_);
  }
  const std::uint32_t* First() const { return words_.data() + 2; }

 private:
  std::vector<std::uint32_t> words_;
};

}  // namespace pelab::trainer
