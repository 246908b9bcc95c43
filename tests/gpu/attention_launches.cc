// Prints, for each CUDA attention kernel, the threads of a block and the dynamic shared memory that
// its launcher asks for: T = 128 (64 for the kernels of up to 64 keys, 256 for those that stream),
// without biases. One line a kernel: name;threads;bytes. For tests/gpu/resources.py.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

#include "tests/support/cuda_emulation.h"
#include "worker/trainer/kernels/attention/attention.h"
#include "worker/trainer/kernels/attention/attention_launch.cuh"

namespace pelab::trainer {
namespace {

struct Widths {
  std::int64_t queries, values;
};

template <class Element>
FusedAttention<Element> Problem(const Widths& widths, std::int64_t keys) {
  FusedAttention<Element> problem;
  problem.batch = 512;
  problem.heads = 16;
  problem.rows = problem.keys = keys;
  problem.width = widths.queries;
  problem.value_width = widths.values;
  problem.causal = true;
  return problem;
}

// A launch that prints what it is asked for. `kernel`: with the template arguments.
auto Printing(const std::string& kernel) {
  return [kernel](dim3, dim3 block, std::size_t shared, const auto&...) {
    std::cout << kernel << ";" << block.x * block.y * block.z << ";" << shared << "\n";
  };
}

std::string Numbers(const Widths& widths) {
  return std::to_string(widths.queries) + ", " + std::to_string(widths.values);
}

template <class Element>
void PrintPlain(const std::string& element, const Widths& widths) {
  const auto problem = Problem<Element>(widths, 128);
  const std::string arguments = "<" + element + ", " + Numbers(widths) + ">";
  LaunchPlainAttentionForward(problem, Printing("AttentionForwardKernel" + arguments));
  LaunchPlainAttentionBackward(problem, FusedAttentionGradients<Element>(),
                               Printing("AttentionBackwardKernel" + arguments));
}

void PrintTensor(const Widths& widths, std::int64_t keys) {
  const auto problem = Problem<Bf16>(widths, keys);
  const std::string arguments = "<" + Numbers(widths) + ", " + std::to_string(keys) + ">";
  LaunchTensorAttentionForward(problem, Printing("TensorAttentionForwardKernel" + arguments));
  LaunchTensorAttentionBackward(problem, FusedAttentionGradients<Bf16>(),
                                Printing("TensorAttentionBackwardKernel" + arguments));
}

void PrintStreamed(const Widths& widths) {
  const auto problem = Problem<Bf16>(widths, 256);
  const std::string arguments = "<" + Numbers(widths) + ">";
  LaunchStreamedAttentionForward(problem, Printing("StreamedAttentionForwardKernel" + arguments));
  LaunchStreamedAttentionBackward(problem, FusedAttentionGradients<Bf16>(),
                                  Printing("StreamedAttentionBackwardKernel" + arguments));
}

}  // namespace
}  // namespace pelab::trainer

int main() {
  using namespace pelab::trainer;  // NOLINT(google-build-using-namespace): a program of one file
  for (const Widths& widths : {Widths{8, 8}, {16, 16}, {32, 16}, {32, 32}, {64, 64}, {128, 64}}) {
    PrintPlain<float>("float", widths);
    PrintPlain<Bf16>("Bf16", widths);
  }
  for (const Widths& widths : {Widths{16, 16}, {32, 16}, {32, 32}, {64, 64}}) {
    PrintTensor(widths, 64);
    PrintTensor(widths, 128);
    PrintStreamed(widths);
  }
  return 0;
}
