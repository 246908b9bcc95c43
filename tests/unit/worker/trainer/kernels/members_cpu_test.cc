// The CPU kernels with several members: each member gets the same bits as alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/kernels/activation/bias_activation_fixture.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_members_fixture.h"
#include "tests/unit/worker/trainer/kernels/norm/residual_norm_fixture.h"
#include "tests/unit/worker/trainer/kernels/norm/rms_norm_fixture.h"
#include "worker/trainer/kernels/attention/attention_cpu.h"

namespace pelab::trainer {
namespace {

void Sum(const float* partial, std::int64_t members, std::int64_t rows, std::int64_t columns,
         float* sums) {
  std::fill_n(sums, members * columns, 0.0f);
  for (std::int64_t i = 0; i < members * rows * columns; ++i) {
    sums[i / (rows * columns) * columns + i % columns] += partial[i];
  }
}

// Computes in calls of at most `at_once` heads, which may end in the middle of a member.
AttentionResults Computed(AttentionCase<float>* attention, std::int64_t at_once) {
  const auto ranges = [&](const FusedAttention<float>& p, const auto& run) {
    const std::int64_t all = p.batch * p.heads;
    for (std::int64_t begin = 0; begin < all; begin += at_once) {
      run(begin, std::min(all, begin + at_once));
    }
  };
  return attention->RunOn(
      [&](const auto& p) {
        ranges(p, [&](std::int64_t begin, std::int64_t end) { AttentionForward(p, begin, end); });
      },
      [&](const auto& p, const auto& g) {
        ranges(p,
               [&](std::int64_t begin, std::int64_t end) { AttentionBackward(p, g, begin, end); });
      },
      Sum);
}

void ExpectAttentionAsAlone(const AttentionOptions& options, unsigned seed, bool by_member,
                            std::int64_t beyond) {
  const std::int64_t each = options.batch * options.heads;
  for (const std::int64_t at_once : {std::int64_t{1}, each - 1, each + 1, kMembers * each}) {
    if (at_once == 0) continue;
    SCOPED_TRACE(options.Text() + (by_member ? " by_member" : "") + ", seed " +
                 std::to_string(seed) + ", at once " + std::to_string(at_once));
    AttentionMembers<float> members(options, seed, by_member, beyond);
    members.ExpectAsAlone([&](AttentionCase<float>* one) {
      return Computed(one, one == members.whole() ? at_once : each);
    });
  }
}

TEST(AttentionMembersCpu, HaveEveryOption) {
  const std::vector<void (*)(AttentionOptions*)> changes = {
      [](AttentionOptions*) {},
      [](AttentionOptions* o) { o->one_projection = true; },
      [](AttentionOptions* o) { o->padded_rows = true; },
      [](AttentionOptions* o) { o->biases = true; },
      [](AttentionOptions* o) { o->turned = o->turned_apart = o->rotations_by_head = true; },
      [](AttentionOptions* o) { o->causal = true; },
      [](AttentionOptions* o) { o->lengths = true; },
      [](AttentionOptions* o) { o->diagonal = AttentionOptions::kShared; },
      [](AttentionOptions* o) { o->diagonal = AttentionOptions::kByHead; },
      [](AttentionOptions* o) { o->slopes = true; },
      [](AttentionOptions* o) { o->term = AttentionOptions::kWhole; },
      [](AttentionOptions* o) { o->term = AttentionOptions::kRepeated; },
      [](AttentionOptions* o) { o->dropout = 0.3, o->first = 77; },
      [](AttentionOptions* o) { o->dropout = 0.3, o->skipped = 6; },
      [](AttentionOptions* o) { o->dropout = 0.2, o->keys_in_memory = true; },
  };
  for (const auto change : changes) {
    for (const bool by_member : {false, true}) {
      AttentionOptions options;
      options.keys = options.rows = 13;
      change(&options);
      ExpectAttentionAsAlone(options, 6, by_member, by_member ? 4 : 1);
    }
  }
}

TEST(AttentionMembersCpu, CombineOptions) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 60; ++seed) {
    AttentionOptions options = RandomAttentionOptions(&random);
    // the sums for biases are contiguous on the CPU
    if (options.one_projection) options.biases = false;
    const bool by_member = random() % 2 == 0;
    ExpectAttentionAsAlone(options, seed, by_member, random() % 2 == 0 ? 4 : 1);
    if (HasFailure()) break;
  }
}

// The problem of one member with its own keys, as callers with several members make it.
template <class Problem>
Problem Own(const Problem& all, std::int64_t member) {
  Problem own = MemberOf(all, member);
  own.members = {};
  own.dropout = WithKeys(own.dropout);
  return own;
}

TEST(ResidualNormMembersCpu, AreAsAlone) {
  for (int bits = 0; bits < 64; ++bits) {
    SCOPED_TRACE(bits);
    ResidualNormOptions options;
    options.rows = bits % 3 == 0 ? kNormBlockRows + 5 : 3;
    options.width = bits % 5 == 0 ? 48 : 16;
    options.residual = bits & 1, options.bias = bits & 2, options.norm = bits & 4,
    options.dropout = bits & 8, options.in_place = bits & 16;
    options.residual_rows = (bits & 32) != 0 ? 2 : 0;
    ResidualNormMembers<float> members(options, bits % 2 == 0 ? 4 : 1);
    const std::int64_t blocks = NormBlocks(options.rows);
    for (std::int64_t m = 0; m < kMembers; ++m) {
      ResidualNormForward(Own(members.p, m), 0, blocks);
      ResidualNormBackward(Own(members.p, m), MemberOf(members.g, members.p, m), 0, blocks);
      const auto& one = *members.alone[m];
      ResidualNormForward(one.p, 0, blocks);
      ResidualNormBackward(one.p, one.g, 0, blocks);
    }
    members.ExpectAsAlone();
  }
}

TEST(RmsNormMembersCpu, AreAsAlone) {
  for (const std::int64_t rows : {std::int64_t{3}, 2 * kNormBlockRows + 5}) {
    for (const std::int64_t after : {0, 32}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << after << " other columns");
      RmsNormMembers<float> members({.rows = rows, .width = 32, .after = after}, rows % 2 + 1);
      const std::int64_t blocks = NormBlocks(rows);
      for (std::int64_t m = 0; m < kMembers; ++m) {
        RmsNorm<float> own = MemberOf(members.p, m);
        own.members = {};
        RmsNormForward(own, 0, blocks);
        RmsNormBackward(own, MemberOf(members.g, members.p, m), 0, blocks);
        const auto& one = *members.alone[m];
        RmsNormForward(one.p, 0, blocks);
        RmsNormBackward(one.p, one.g, 0, blocks);
      }
      members.ExpectAsAlone();
    }
  }
}

TEST(BiasActivationMembersCpu, AreAsAlone) {
  for (int bits = 0; bits < 16; ++bits) {
    SCOPED_TRACE(bits);
    const BiasActivationOptions options = {.rows = (bits & 8) != 0 ? 2 * kNormBlockRows + 3 : 3,
                                           .width = 48,
                                           .gelu = (bits & 1) != 0,
                                           .dropout = (bits & 2) != 0,
                                           .in_place = (bits & 4) != 0};
    BiasActivationMembers<float> members(options, bits % 3 == 0 ? 4 : 1);
    const std::int64_t blocks = NormBlocks(options.rows);
    for (std::int64_t m = 0; m < kMembers; ++m) {
      BiasActivationForward(Own(members.p, m), 0, blocks);
      BiasActivationBackward(Own(members.p, m), MemberOf(members.g, members.p, m), 0, blocks);
      const auto& one = *members.alone[m];
      BiasActivationForward(one.p, 0, blocks);
      BiasActivationBackward(one.p, one.g, 0, blocks);
    }
    members.ExpectAsAlone();
  }
}

}  // namespace
}  // namespace pelab::trainer
