// Vectors by distance in the CPU attention, against the equivalent general term.
#include "worker/trainer/kernels/attention/attention_cpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace pelab::trainer {
namespace {

struct Sizes {
  std::int64_t batch, heads, rows, keys, width;
  bool causal;
};

class Problem {
 public:
  explicit Problem(const Sizes& sizes)
      : s(sizes),
        query(Random(s.rows, 1)),
        key(Random(s.keys, 2)),
        value(Random(s.keys, 3)),
        to_out(Random(s.rows, 4)),
        table(RandomFloats((2 * s.keys - 1) * s.width, 5)) {}

  struct Results {
    std::vector<float> out, query, key, value, table;
  };

  // Computes with the vectors, or with the logits that they add.
  Results Run(bool by_distance) {
    Results found;
    for (std::vector<float>* x : {&found.out, &found.query}) x->assign(query.size(), NAN);
    for (std::vector<float>* x : {&found.key, &found.value}) x->assign(key.size(), NAN);
    const std::vector<float> term = Term();
    std::vector<float> to_term(term.size(), NAN), log_sums(s.batch * s.heads * s.rows, NAN);
    std::vector<float> to_table(s.batch * table.size(), NAN);
    FusedAttention<float> p;
    p.batch = s.batch, p.heads = s.heads, p.rows = s.rows, p.keys = s.keys;
    p.width = p.value_width = s.width;
    p.scale = Scale();
    p.causal = s.causal;
    p.query = View<const float>(query, s.rows), p.key = View<const float>(key, s.keys);
    p.value = View<const float>(value, s.keys), p.out = View<float>(found.out, s.rows);
    p.log_sum_exp = log_sums.data();
    FusedAttentionGradients<float> g;
    g.out = View<const float>(to_out, s.rows), g.query = View<float>(found.query, s.rows);
    g.key = View<float>(found.key, s.keys), g.value = View<float>(found.value, s.keys);
    if (by_distance) {
      p.key_distance = table.data();
      g.key_distance = to_table.data();
    } else {
      p.term = {term.data(), s.heads * s.rows * s.keys, s.rows * s.keys, s.keys, 1};
      g.term = to_term.data();
    }
    AttentionForward(p, 0, s.batch * s.heads);
    AttentionBackward(p, g, 0, s.batch * s.heads);
    if (by_distance) {
      found.table = AddedUp(to_table);
    } else {
      ThroughTerm(to_term, &found);
    }
    return found;
  }

 private:
  float Scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(s.width))); }
  static std::vector<float> RandomFloats(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(count);
    for (float& value : x) value = normal(random);
    return x;
  }
  std::vector<float> Random(std::int64_t rows, unsigned seed) const {
    return RandomFloats(s.batch * rows * s.heads * s.width, seed);
  }
  template <class Element, class Data>
  HeadRows<Element> View(Data& data, std::int64_t rows) const {
    return {data.data(), rows * s.heads * s.width, s.heads * s.width, s.width};
  }
  // The offsets of the vector that row i uses for key j, and of the channels of a query.
  std::int64_t Vector(std::int64_t i, std::int64_t j) const {
    return (j - i + s.rows - 1) * s.width;
  }
  std::int64_t QueryAt(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return ((b * s.rows + i) * s.heads + h) * s.width;
  }
  template <typename Visit>
  void ForPairs(const Visit& visit) const {
    std::int64_t at = 0;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < s.heads; ++h) {
        for (std::int64_t i = 0; i < s.rows; ++i) {
          for (std::int64_t j = 0; j < s.keys; ++j) visit(at++, QueryAt(b, h, i), Vector(i, j));
        }
      }
    }
  }
  std::vector<float> Term() const {
    std::vector<float> term(s.batch * s.heads * s.rows * s.keys);
    ForPairs([&](std::int64_t at, std::int64_t q, std::int64_t a) {
      double sum = 0;
      for (std::int64_t c = 0; c < s.width; ++c) sum += double{query[q + c]} * table[a + c];
      term[at] = static_cast<float>(Scale() * sum);
    });
    return term;
  }
  // Rotations the logits' gradients into those of the queries and vectors.
  void ThroughTerm(const std::vector<float>& to_term, Results* found) const {
    found->table.assign(table.size(), 0);
    ForPairs([&](std::int64_t at, std::int64_t q, std::int64_t a) {
      for (std::int64_t c = 0; c < s.width; ++c) {
        found->query[q + c] += Scale() * to_term[at] * table[a + c];
        found->table[a + c] += Scale() * to_term[at] * query[q + c];
      }
    });
  }
  std::vector<float> AddedUp(const std::vector<float>& by_sequence) const {
    std::vector<float> sums(table.size(), 0);
    for (std::size_t i = 0; i < by_sequence.size(); ++i) sums[i % sums.size()] += by_sequence[i];
    return sums;
  }

  Sizes s;
  std::vector<float> query, key, value, to_out, table;
};

void ExpectNear(const std::vector<float>& got, const std::vector<float>& expected,
                const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  EXPECT_GT(size, 0) << what;
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size)) << what;
}

TEST(AttentionOnCpu, VectorsByDistanceAreTheTermThatTheyAmountTo) {
  for (const Sizes& sizes : {Sizes{2, 3, 19, 19, 6, true}, Sizes{2, 2, 19, 19, 16, false},
                             Sizes{1, 2, 5, 33, 20, true}, Sizes{3, 1, 1, 7, 8, false},
                             Sizes{1, 1, 64, 64, 16, true}, Sizes{1, 2, 17, 48, 3, false}}) {
    SCOPED_TRACE("T' " + std::to_string(sizes.rows) + ", T " + std::to_string(sizes.keys) + ", w " +
                 std::to_string(sizes.width) + (sizes.causal ? ", causal" : ""));
    Problem problem(sizes);
    const auto got = problem.Run(true), expected = problem.Run(false);
    ExpectNear(got.out, expected.out, "out");
    ExpectNear(got.query, expected.query, "dq");
    ExpectNear(got.key, expected.key, "dk");
    ExpectNear(got.value, expected.value, "dv");
    ExpectNear(got.table, expected.table, "da");
  }
}

}  // namespace
}  // namespace pelab::trainer
