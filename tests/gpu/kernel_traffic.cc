// Prints the bytes that each CUDA kernel moves in a small problem, counted under emulation, and the
// FLOP that tensor cores do in it. The first line has the sizes of the problem, then a line a
// kernel:
//   kernel;element;read;written;read by blocks;written by blocks;tensor FLOP
// tests/gpu/traffic.py says what they should be.
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>

#include "tests/gpu/device_memory.h"
#include "tests/support/cuda_emulation.h"
#include "worker/trainer/kernels/activation/bias_activation_kernels.cuh"
#include "worker/trainer/kernels/adamw/adamw_kernels.cuh"
#include "worker/trainer/kernels/attention/attention_launch.cuh"
#include "worker/trainer/kernels/dropout/dropout_step_kernels.cuh"
#include "worker/trainer/kernels/loss/cross_entropy_kernels.cuh"
#include "worker/trainer/kernels/norm/block_sums_kernels.cuh"
#include "worker/trainer/kernels/norm/residual_norm_kernels.cuh"
#include "worker/trainer/kernels/norm/rms_norm_kernels.cuh"
#include "worker/trainer/kernels/rotary/rotary_heads_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr std::int64_t kBatch = 2, kPositions = 128, kHeads = 8, kWidth = 128, kInner = 512;
constexpr std::int64_t kRows = kBatch * kPositions, kClasses = 64, kParameters = 100'000;
constexpr std::size_t kBytes = std::size_t{4} << 20;

template <class Element>
const char* NameOf() {
  return std::is_same_v<Element, Bf16> ? "bf16" : "float32";
}

// Runs the kernels of one element type, each kernel with tensors of its own.
template <class Element>
class Kernels {
 public:
  void Norm();
  void Rms();
  void Rotary(bool shared);
  void Activation();
  // `rotary`: of the published MLA's heads; 0: none.
  enum class Kind { kPlain, kTensorCores, kStreamed };
  void Attention(const std::string& of, std::int64_t rotary, Kind kind);
  void AdamW();
  void Loss();

 private:
  template <class Kernel, class... Args>
  void Launch(const std::string& name, dim3 grid, dim3 block, std::size_t shared, Kernel kernel,
              Args... args) {
    memory_.Reset();
    cuda_emulation::TakeTensorFlop();
    cuda_emulation::Launch(grid, block, shared, kernel, args...);
    const gpu::Traffic& moved = memory_.traffic();
    std::cout << name << ";" << NameOf<Element>() << ";" << moved.read << ";" << moved.written
              << ";" << moved.read_by_blocks << ";" << moved.written_by_blocks << ";"
              << cuda_emulation::TakeTensorFlop() << "\n";
  }
  auto Launcher(const std::string& name) {
    return [this, name](dim3 grid, dim3 block, std::size_t shared, auto kernel, const auto&... x) {
      Launch(name, grid, block, shared, kernel, x...);
    };
  }
  Element* Rows(std::int64_t width) { return memory_.Array<Element>(kRows * width); }
  float* Floats(std::int64_t count) { return memory_.Array<float>(count); }
  // Dropout of a tenth, with its keys in memory as in a graph.
  DropoutStream Dropout() {
    DropoutStream stream;
    stream.threshold = 429496730;
    stream.kept = 1 / 0.9f;
    stream.keys = memory_.Array<std::uint32_t>(2);
    return stream;
  }
  HeadRows<Element> Heads(std::int64_t width) {
    return {Rows(kHeads * width), kPositions * kHeads * width, kHeads * width, width};
  }
  static HeadRows<const Element> Constant(const HeadRows<Element>& rows) {
    return {rows.data, rows.batch_stride, rows.row_stride, rows.head_stride};
  }
  FusedAttention<Element> Problem(std::int64_t rotary);
  FusedAttentionGradients<Element> Gradients(const FusedAttention<Element>& p);

  gpu::DeviceMemory memory_{kBytes};
};

template <class Element>
void Kernels<Element>::Norm() {
  ResidualNorm<Element> p;
  p.rows = kRows, p.width = kWidth;
  p.residual = Rows(kWidth), p.product = Rows(kWidth);
  p.bias = Floats(kWidth), p.gamma = Floats(kWidth), p.beta = Floats(kWidth);
  p.dropout = Dropout();
  p.sum = Rows(kWidth), p.normed = Rows(kWidth);
  p.mean = Floats(kRows), p.inverse_deviation = Floats(kRows);
  ResidualNormGradients<Element> g;
  g.sum = Rows(kWidth), g.normed = Rows(kWidth);
  g.residual = Rows(kWidth), g.product = Rows(kWidth);
  g.partial = Floats(NormBlocks(kRows) * 3 * kWidth);
  WithPieces<Element>(kWidth, Aligned(p), [&](auto vector, auto chunks) {
    Launch("norm forward", {Blocks(kRows, kNormWarps * kForwardRows)}, {kNormThreads}, 0,
           ResidualNormForwardKernel<Element, vector.value, chunks.value>, p);
    Launch("norm backward", {Blocks(kRows, kNormBlockRows)}, {kNormThreads},
           kNormWarps * kWidth * sizeof(float),
           ResidualNormBackwardKernel<Element, vector.value, chunks.value>, p, g);
  });
  const BlockSums<3> sums{
      g.partial, NormBlocks(kRows), kWidth, {Floats(kWidth), Floats(kWidth), Floats(kWidth)}};
  Launch("norm sums", {Blocks(kWidth, kWarpLanes), 3}, {kWarpLanes, kSumSlices}, 0,
         BlockSumsKernel<3>, sums);
}

template <class Element>
void Kernels<Element>::Rms() {
  RmsNorm<Element> p;
  p.rows = kRows, p.width = p.x_stride = kWidth;
  p.x = Rows(kWidth), p.gamma = Floats(kWidth);
  p.normed = Rows(kWidth), p.inverse_size = Floats(kRows);
  RmsNormGradients<Element> g;
  g.normed = Rows(kWidth), g.x = Rows(kWidth);
  g.partial = Floats(NormBlocks(kRows) * kWidth);
  WithPieces<Element>(kWidth, Aligned(p), [&](auto vector, auto chunks) {
    Launch("rms norm forward", {Blocks(kRows, kNormWarps * kForwardRows)}, {kNormThreads}, 0,
           RmsNormForwardKernel<Element, vector.value, chunks.value>, p);
    Launch("rms norm backward", {Blocks(kRows, kNormBlockRows)}, {kNormThreads},
           kNormWarps * kWidth * sizeof(float),
           RmsNormBackwardKernel<Element, vector.value, chunks.value>, p, g);
  });
}

// As MLA's keys (`shared`) or its queries: with a rotary part as wide as a head.
template <class Element>
void Kernels<Element>::Rotary(bool shared) {
  RotaryHeads<Element> p;
  p.rows = kRows, p.positions = kPositions;
  p.heads = kHeads, p.width = p.rotary_width = kWidth / kHeads, p.shared = shared;
  p.content = Rows(kWidth), p.content_stride = kWidth;
  p.rotary = Rows(p.RotaryHeadCount() * p.rotary_width);
  p.rotations = Floats(kPositions * p.rotary_width);
  p.out = Rows(kHeads * p.HeadWidth());
  const RotaryHeadsGradients<Element> g{Rows(kHeads * p.HeadWidth()), Rows(kWidth), kWidth,
                                        Rows(p.RotaryHeadCount() * p.rotary_width)};
  const std::string name = shared ? "rotary heads, shared" : "rotary heads";
  WithRotaryVector<Element>(Aligned(p, g), [&](auto vector) {
    Launch(name + " forward", {Blocks(kRows, kRotaryWarps)}, {kRotaryThreads}, 0,
           RotaryHeadsForwardKernel<Element, vector.value>, p);
    Launch(name + " backward", {Blocks(kRows, kRotaryWarps)}, {kRotaryThreads}, 0,
           RotaryHeadsBackwardKernel<Element, vector.value>, p, g);
  });
}

template <class Element>
void Kernels<Element>::Activation() {
  BiasActivation<Element> p;
  p.rows = kRows, p.width = kInner, p.gelu = true;
  p.product = Rows(kInner), p.bias = Floats(kInner), p.out = Rows(kInner);
  p.dropout = Dropout();
  BiasActivationGradients<Element> g;
  g.out = Rows(kInner), g.product = Rows(kInner);
  g.partial = Floats(NormBlocks(kRows) * kInner);
  WithActivationVector<Element>(Aligned(p), [&](auto vector) {
    const dim3 grid{Blocks(kInner, kActivationColumns<vector.value>),
                    Blocks(kRows, kNormBlockRows)};
    Launch("activation forward", grid, {kActivationThreads}, 0,
           BiasActivationForwardKernel<Element, vector.value>, p);
    Launch("activation backward", grid, {kActivationThreads}, 0,
           BiasActivationBackwardKernel<Element, vector.value>, p, g);
  });
}

// With biases, dropout and the statistics, as in training; only a problem without `rotary` is
// rotated here, because MLA's queries and keys are rotated before they come to the kernel.
template <class Element>
FusedAttention<Element> Kernels<Element>::Problem(std::int64_t rotary) {
  const std::int64_t values = kWidth / kHeads;
  FusedAttention<Element> p;
  p.batch = kBatch, p.heads = kHeads, p.rows = p.keys = kPositions;
  p.width = values + rotary, p.value_width = values;
  p.scale = 0.25f;
  p.query = Constant(Heads(p.width)), p.key = Constant(Heads(p.width));
  p.value = Constant(Heads(values));
  if (rotary == 0) {
    p.query_bias = Floats(kHeads * p.width), p.key_bias = Floats(kHeads * p.width);
    p.value_bias = Floats(kHeads * values);
    p.query_rotations = p.key_rotations = Floats(kPositions * p.width);
  }
  p.dropout = Dropout();
  p.out = Heads(values);
  p.log_sum_exp = Floats(kRows * kHeads);
  const std::int64_t words = AttentionKeptWords(p);
  if (words > 0) p.kept = memory_.Array<std::uint32_t>(words);
  return p;
}

template <class Element>
FusedAttentionGradients<Element> Kernels<Element>::Gradients(const FusedAttention<Element>& p) {
  FusedAttentionGradients<Element> g;
  g.out = Constant(Heads(p.value_width));
  g.query = Heads(p.width), g.key = Heads(p.width), g.value = Heads(p.value_width);
  if (p.query_bias != nullptr) {
    g.query_bias = Floats(kBatch * kHeads * p.width);
    g.key_bias = Floats(kBatch * kHeads * p.width);
    g.value_bias = Floats(kBatch * kHeads * p.value_width);
  }
  return g;
}

template <class Element>
void Kernels<Element>::Attention(const std::string& of, std::int64_t rotary, Kind kind) {
  const FusedAttention<Element> p = Problem(rotary);
  const FusedAttentionGradients<Element> g = Gradients(p);
  if constexpr (std::is_same_v<Element, Bf16>) {
    if (kind == Kind::kTensorCores) {
      LaunchTensorAttentionForward(p, Launcher(of + ", tensor cores forward"));
      return LaunchTensorAttentionBackward(p, g, Launcher(of + ", tensor cores backward"));
    }
    if (kind == Kind::kStreamed) {
      LaunchStreamedAttentionForward(p, Launcher(of + ", streamed forward"));
      return LaunchStreamedAttentionBackward(p, g, Launcher(of + ", streamed backward"));
    }
  }
  LaunchPlainAttentionForward(p, Launcher(of + " forward"));
  LaunchPlainAttentionBackward(p, g, Launcher(of + " backward"));
}

template <class Element>
void Kernels<Element>::AdamW() {
  AdamWPass pass;
  pass.count = kParameters;
  pass.parameters = Floats(kParameters), pass.gradient = Floats(kParameters);
  pass.first = Floats(kParameters), pass.second = Floats(kParameters);
  if constexpr (std::is_same_v<Element, Bf16>) pass.rounded = memory_.Array<Bf16>(kParameters);
  pass.rates = memory_.Array<AdamWRates>(3);
  pass.step = memory_.Array<std::int64_t>(1);
  SetAdamW({}, &pass);
  Launch("AdamW", {Blocks(kParameters, 4 * kAdamWThreads)}, {kAdamWThreads}, 0, AdamWKernel<4>,
         pass);
}

template <class Element>
void Kernels<Element>::Loss() {
  CrossEntropy<Element> p;
  p.rows = kRows, p.classes = kClasses;
  p.logits = Rows(kClasses), p.gradient = Rows(kClasses);
  p.labels = memory_.Array<std::int64_t>(kRows);
  p.batch = memory_.Array<std::int64_t>(1);
  p.loss = Floats(kRows), p.correct = memory_.Array<std::uint8_t>(kRows);
  p.sums = memory_.Array<ClassificationSums>(1);
  Launch("loss", {Blocks(kRows, kEntropyWarps)}, {kEntropyThreads}, 0, CrossEntropyKernel<Element>,
         p);
  Launch("loss sums", {1}, {kTallyThreads}, 0, TallyKernel<Element>, p);
}

template <class Element>
void PrintAll() {
  // Each with a memory of its own.
  Kernels<Element>().Norm();
  Kernels<Element>().Rms();
  for (const bool shared : {false, true}) Kernels<Element>().Rotary(shared);
  Kernels<Element>().Activation();
  using Kind = typename Kernels<Element>::Kind;
  for (const Kind kind : {Kind::kPlain, Kind::kTensorCores, Kind::kStreamed}) {
    if (kind != Kind::kPlain && !std::is_same_v<Element, Bf16>) continue;
    Kernels<Element>().Attention("rope", 0, kind);
    Kernels<Element>().Attention("mla", kWidth / kHeads, kind);
  }
  Kernels<Element>().AdamW();
  Kernels<Element>().Loss();
}

}  // namespace
}  // namespace pelab::trainer

int main() {
  {
    using namespace pelab::trainer;  // NOLINT(google-build-using-namespace): for one statement
    std::cout << "batch=" << kBatch << ";positions=" << kPositions << ";heads=" << kHeads
              << ";width=" << kWidth << ";inner=" << kInner << ";classes=" << kClasses
              << ";parameters=" << kParameters << ";block_rows=" << kNormBlockRows << "\n";
  }
  pelab::trainer::PrintAll<float>();
  pelab::trainer::PrintAll<pelab::trainer::Bf16>();
  return 0;
}
