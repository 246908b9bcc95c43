// The attention kernels for CUDA, emulated, with several members.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_launch_fixture.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_members_fixture.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"

namespace pelab::trainer::attention_members_cuda_test {
namespace {

using Options = AttentionOptions;

// The biases' members at multiples of four floats, and not.
constexpr std::int64_t kBeyond[] = {4, 1};

template <class Element>
void ExpectAsAlone(const Options& options, unsigned seed, bool by_member, std::int64_t beyond) {
  AttentionMembers<Element> members(options, seed, by_member, beyond);
  ASSERT_TRUE(AttentionFits(members.whole()->problem()));
  members.ExpectAsAlone([](AttentionCase<Element>* one) { return Emulated(one); });
}

void ExpectAsAlone(const Options& options, unsigned seed, bool by_member = true,
                   std::int64_t beyond = 4) {
  SCOPED_TRACE(options.Text() + (by_member ? " by_member" : "") + ", seed " + std::to_string(seed));
  {
    SCOPED_TRACE("float");
    ExpectAsAlone<float>(options, seed, by_member, beyond);
  }
  SCOPED_TRACE("bf16");
  ExpectAsAlone<Bf16>(options, seed, by_member, beyond);
}

void ExpectTensorAsAlone(const Options& options, unsigned seed, bool by_member = true,
                         std::int64_t beyond = 4) {
  SCOPED_TRACE(options.Text() + (by_member ? " by_member" : "") + ", seed " + std::to_string(seed));
  AttentionMembers<Bf16> members(options, seed, by_member, beyond);
  ASSERT_TRUE(AttentionUsesTensorCores(members.whole()->problem(), members.whole()->gradients()));
  members.ExpectAsAlone([](AttentionCase<Bf16>* one) { return EmulatedTensor(one); });
  AttentionMembers<Bf16> streamed(options, seed, by_member, beyond);
  streamed.ExpectAsAlone([](AttentionCase<Bf16>* one) { return EmulatedStreamed(one); });
}

// Each option alone, so that one error does not hide another; for both kinds of kernels. Each meets
// both values of `by_member` and of `beyond`.
TEST(AttentionMembersCuda, HaveEveryOption) {
  const std::vector<void (*)(Options*)> changes = {
      [](Options*) {},
      [](Options* o) { o->one_projection = o->biases = true; },
      [](Options* o) { o->biases = true; },
      [](Options* o) { o->turned = true; },
      [](Options* o) { o->turned = o->turned_apart = o->rotations_by_head = true; },
      [](Options* o) { o->causal = true; },
      [](Options* o) { o->lengths = true; },
      [](Options* o) { o->diagonal = Options::kShared; },
      [](Options* o) { o->diagonal = Options::kByHead; },
      [](Options* o) { o->slopes = true; },
      [](Options* o) { o->dropout = 0.3, o->first = 77; },
      [](Options* o) { o->dropout = 0.3, o->skipped = 6; },
      [](Options* o) { o->dropout = 0.2, o->keys_in_memory = true; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (const bool by_member : {false, true}) {
      Options options;
      options.keys = options.rows = 13;
      changes[i](&options);
      const std::int64_t beyond = kBeyond[(i + by_member) % 2];
      ExpectAsAlone(options, 6, by_member, beyond);
      ExpectTensorAsAlone(options, 6, by_member, beyond);
    }
  }
}

TEST(AttentionMembersCuda, HaveRowsAndTermsAnywhere) {
  for (const Options::Term term : {Options::kNoTerm, Options::kWhole, Options::kRepeated}) {
    for (const bool padded : {false, true}) {
      Options options;
      options.padded_rows = padded;
      options.term = term;
      options.biases = true;
      options.width = options.value_width = padded ? 10 : 16;
      ExpectAsAlone(options, 7, true, padded ? 1 : 4);
    }
  }
}

// Members of one sequence each. With one head each they share a block, with five they do not.
TEST(AttentionMembersCuda, TakeEveryLength) {
  for (const std::int64_t keys : {1, 8, 33, 64, 100, 128}) {
    for (const std::int64_t rows : {keys, (keys + 1) / 2}) {
      Options options;
      options.batch = 1;
      options.heads = keys < 40 ? 5 : 1;
      options.keys = keys;
      options.rows = rows;
      options.causal = options.biases = true;
      options.diagonal = Options::kByHead;
      options.dropout = 0.1;
      ExpectAsAlone(options, 4);
      ExpectTensorAsAlone(options, 4);
    }
  }
}

TEST(AttentionMembersCuda, CombineOptions) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Options options = RandomAttentionOptions(&random);
    const bool by_member = random() % 2 == 0;
    ExpectAsAlone(options, seed, by_member, kBeyond[random() % 2]);
    if (HasFailure()) break;
  }
}

TEST(AttentionMembersCuda, CombineOptionsOnTensorCores) {
  std::mt19937 random(9);
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Options options = RandomTensorOptions(&random);
    const bool by_member = random() % 2 == 0;
    ExpectTensorAsAlone(options, seed, by_member, kBeyond[random() % 2]);
    if (HasFailure()) break;
  }
}

// More rows than the summing block takes in one pass, and a number of columns that is not a
// multiple of its own.
TEST(AttentionMembersCuda, SumsOfManyRows) {
  for (const std::int64_t rows : {1, 31, 300, 777}) {
    constexpr std::int64_t kColumns = 45;
    std::vector<float> partial, expected;
    for (unsigned m = 0; m < kMembers; ++m) {
      const std::vector<float> own = RandomElements<float>(rows * kColumns, m);
      std::vector<float> sums(kColumns);
      Sum(own.data(), 1, rows, kColumns, sums.data());
      Append(own, &partial);
      Append(sums, &expected);
    }
    std::vector<float> sums(kMembers * kColumns);
    Sum(partial.data(), kMembers, rows, kColumns, sums.data());
    ExpectSameBits(sums, expected, "sums");
    std::vector<double> by_formula(kMembers * kColumns);
    for (std::int64_t i = 0; i < kMembers * rows * kColumns; ++i) {
      by_formula[i / (rows * kColumns) * kColumns + i % kColumns] += partial[i];
    }
    ExpectClose(sums, by_formula, "sums");
  }
}

}  // namespace
}  // namespace pelab::trainer::attention_members_cuda_test
