// Several attention problems combined as the members of one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/kernels/attention/attention_fixture.h"
#include "tests/unit/worker/trainer/kernels/members_fixture.h"

namespace pelab::trainer {

// Problems that differ in everything that members may differ in, and one problem with all of them
// as members. The members share what an encoding gives to all of them: rotations, slopes, a
// repeated term, and the diagonal unless it is `by_member`.
template <class Element>
class AttentionMembers {
 public:
  using Case = AttentionCase<Element>;

  // `options`: those of each problem. `beyond`: see MemberParameters.
  AttentionMembers(const AttentionOptions& options, unsigned seed, bool by_member,
                   std::int64_t beyond)
      : alone(Alone(options, seed, by_member)),
        biases_(BiasesOf(alone), beyond),
        whole_(Times(options), seed) {
    std::int64_t first = 0;  // the member's first sequence
    for (const auto& one : alone) {
      CopyRows(one->query_, first, &whole_.query_);
      CopyRows(one->key_, first, &whole_.key_);
      CopyRows(one->value_, first, &whole_.value_);
      CopyRows(one->out_gradient_, first, &whole_.out_gradient_);
      Append(one->lengths_, &lengths_);
      // Shared data is stored once.
      const bool own_diagonal = by_member || first == 0;
      Append(own_diagonal ? one->diagonal_ : NotNumbers(one->diagonal_.size()), &diagonals_);
      const bool own_term = options.term == AttentionOptions::kWhole || first == 0;
      Append(own_term ? one->term_ : NotNumbers(one->term_.size()), &terms_);
      keys_.Add(one->keys_[0], one->keys_[1]);
      first += options.batch;
    }
    FusedAttention<Element>& p = whole_.problem_;
    p.members = {kMembers, biases_.stride()};
    p.query_bias = biases_.First(0), p.key_bias = biases_.First(1);
    p.value_bias = biases_.First(2);
    p.query_rotations = alone[0]->problem_.query_rotations,
    p.key_rotations = alone[0]->problem_.key_rotations;
    if (options.lengths) p.lengths = lengths_.data();
    if (p.diagonal != nullptr) p.diagonal = diagonals_.data();
    p.diagonal_by_member = by_member;
    p.slopes = alone[0]->problem_.slopes;
    if (p.term.data != nullptr) p.term.data = terms_.data();
    if (options.dropout > 0) {
      p.dropout.key0 = p.dropout.key1 = 0;
      p.dropout.keys = keys_.First(), p.dropout.member_keys = MemberKeys::kStride;
    }
  }
  AttentionMembers(const AttentionMembers&) = delete;
  AttentionMembers& operator=(const AttentionMembers&) = delete;

  Case* whole() { return &whole_; }

  // Expects that run(&case) gives the same bits for the whole as for each problem alone.
  template <class Run>
  void ExpectAsAlone(const Run& run) {
    const AttentionResults all = run(&whole_);
    for (std::int64_t m = 0; m < kMembers; ++m) {
      SCOPED_TRACE("member " + std::to_string(m));
      const AttentionResults own = run(alone[m].get());
      ExpectSameBits(PartOf(all.out, m), own.out, "out");
      ExpectSameBits(PartOf(all.log_sum_exp, m), own.log_sum_exp, "log-sum-exp");
      ExpectSameBits(PartOf(all.query, m), own.query, "dq");
      ExpectSameBits(PartOf(all.key, m), own.key, "dk");
      ExpectSameBits(PartOf(all.value, m), own.value, "dv");
      ExpectSameBits(PartOf(all.query_bias, m), own.query_bias, "query bias");
      ExpectSameBits(PartOf(all.key_bias, m), own.key_bias, "key bias");
      ExpectSameBits(PartOf(all.value_bias, m), own.value_bias, "value bias");
      ExpectSameBits(PartOf(all.diagonal, m), own.diagonal, "diagonal");
      ExpectSameBits(PartOf(all.term, m), own.term, "term");
      ASSERT_EQ(all.partials.size(), own.partials.size());
      for (std::size_t i = 0; i < own.partials.size(); ++i) {
        ExpectSameBits(PartOf(all.partials[i], m), own.partials[i], "partials");
      }
    }
  }

  const std::vector<std::unique_ptr<Case>> alone;

 private:
  using Cases = std::vector<std::unique_ptr<Case>>;

  static std::vector<float> NotNumbers(std::size_t count) {
    return std::vector<float>(count, std::numeric_limits<float>::quiet_NaN());
  }
  static AttentionOptions Times(AttentionOptions options) {
    options.batch *= kMembers;
    return options;
  }
  static Cases Alone(const AttentionOptions& options, unsigned seed, bool by_member) {
    Cases cases;
    for (unsigned m = 0; m < kMembers; ++m) {
      cases.push_back(std::make_unique<Case>(options, seed + 1000 * m));
      const auto share = [](const std::vector<float>& from, std::vector<float>* to) {
        std::copy(from.begin(), from.end(), to->begin());  // the vector keeps its address
      };
      share(cases[0]->query_rotations_, &cases[m]->query_rotations_);
      share(cases[0]->key_rotations_, &cases[m]->key_rotations_);
      share(cases[0]->slopes_, &cases[m]->slopes_);
      if (!by_member) share(cases[0]->diagonal_, &cases[m]->diagonal_);
      if (options.term == AttentionOptions::kRepeated) share(cases[0]->term_, &cases[m]->term_);
    }
    return cases;
  }
  static std::vector<std::vector<std::vector<float>>> BiasesOf(const Cases& cases) {
    std::vector<std::vector<std::vector<float>>> biases;
    for (const auto& one : cases) {
      biases.push_back({one->query_bias_, one->key_bias_, one->value_bias_});
    }
    return biases;
  }
  static void CopyRows(const HeadTensor<Element>& from, std::int64_t first,
                       HeadTensor<Element>* to) {
    const auto batch = static_cast<std::int64_t>(from.data.size()) / from.batch_stride;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t row = 0; row < from.rows; ++row) {
        for (std::int64_t h = 0; h < from.heads; ++h) {
          for (std::int64_t c = 0; c < from.columns; ++c) {
            to->data[to->At(first + b, row, h, c)] = from.data[from.At(b, row, h, c)];
          }
        }
      }
    }
  }

  MemberParameters biases_;
  MemberKeys keys_;
  std::vector<std::int64_t> lengths_;
  std::vector<float> diagonals_, terms_;
  Case whole_;
};

}  // namespace pelab::trainer
