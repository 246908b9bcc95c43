// Problems for bias_activation.h with random data, and several of them combined as members.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/unit/worker/trainer/kernels/members_fixture.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/activation/bias_activation.h"

namespace pelab::trainer {

struct BiasActivationOptions {
  std::int64_t rows = 9;
  std::int64_t width = 40;
  bool gelu = false;
  bool dropout = true;
  // In sequences of `positions` rows, `skipped` more positions are left out but count in the
  // dropout's index.
  std::int64_t positions = 4, skipped = 0;
  bool in_place = false;
};

// A problem with the memory that it points to.
template <class Element>
struct BiasActivationCase {
  explicit BiasActivationCase(const BiasActivationOptions& o, unsigned seed = 0)
      : product(RandomElements<Element>(o.rows * o.width, 10 * seed + 1, 2)),
        to_out(RandomElements<Element>(o.rows * o.width, 10 * seed + 3)),
        out(NotNumbers<Element>(o.rows * o.width)),
        to_product(out),
        bias(RandomElements<float>(o.width, 10 * seed + 2)),
        partial(NotNumbers<float>(NormBlocks(o.rows) * o.width)) {
    p.rows = o.rows, p.width = o.width, p.gelu = o.gelu;
    p.product = product.data(), p.bias = bias.data(), p.out = out.data();
    if (o.dropout) {
      p.dropout = {0x1234567 + 99 * seed, 0x89abcdef + 77 * seed, 1U << 30, 4.0f / 3, 55};
      SkipPositions(o.positions, o.skipped, &p.dropout);
    }
    g = {to_out.data(), o.in_place ? to_out.data() : to_product.data(), partial.data()};
  }
  BiasActivationCase(const BiasActivationCase&) = delete;
  BiasActivationCase& operator=(const BiasActivationCase&) = delete;

  std::vector<Element> product, to_out, out, to_product;
  std::vector<float> bias, partial;
  BiasActivation<Element> p;
  BiasActivationGradients<Element> g;
};

// Problems that differ in everything but their options, and one problem with all of them as
// members.
template <class Element>
class BiasActivationMembers {
 public:
  using Case = BiasActivationCase<Element>;

  // `beyond`: see MemberParameters.
  BiasActivationMembers(const BiasActivationOptions& options, std::int64_t beyond)
      : alone(CasesOfMembers<Case>(options)),
        biases_({{alone[0]->bias}, {alone[1]->bias}, {alone[2]->bias}}, beyond) {
    p = alone[0]->p;
    p.members = {kMembers, biases_.stride()};
    for (const auto& one : alone) {
      Append(one->product, &product_);
      Append(one->to_out, &to_out);
      Append(one->out, &out);
      Append(one->to_product, &to_product);
      Append(one->partial, &partial);
      keys_.Add(one->p.dropout.key0, one->p.dropout.key1);
    }
    p.product = product_.data(), p.bias = biases_.First(0), p.out = out.data();
    if (options.dropout) {
      p.dropout.key0 = p.dropout.key1 = 0;
      p.dropout.keys = keys_.First(), p.dropout.member_keys = MemberKeys::kStride;
    }
    g = {to_out.data(), options.in_place ? to_out.data() : to_product.data(), partial.data()};
  }
  BiasActivationMembers(const BiasActivationMembers&) = delete;
  BiasActivationMembers& operator=(const BiasActivationMembers&) = delete;

  void ExpectAsAlone() const {
    ExpectSameParts(out, alone, "out", [](const Case& one) { return one.out; });
    ExpectSameParts(to_out, alone, "to out", [](const Case& one) { return one.to_out; });
    ExpectSameParts(to_product, alone, "to h", [](const Case& one) { return one.to_product; });
    ExpectSameParts(partial, alone, "partial", [](const Case& one) { return one.partial; });
  }

  const std::vector<std::unique_ptr<Case>> alone;
  std::vector<Element> to_out, out, to_product;
  std::vector<float> partial;
  BiasActivation<Element> p;
  BiasActivationGradients<Element> g;

 private:
  MemberParameters biases_;
  MemberKeys keys_;
  std::vector<Element> product_;
};

}  // namespace pelab::trainer
