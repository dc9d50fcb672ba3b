#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/device/launch.h"
#include "cuda/operations.h"
#include "ops/activations/activation_formulas.h"
#include "ops/activations/dropout.h"

namespace crema::cuda {

namespace {

constexpr int kLinks = ElementwiseChain::kMostLinks;

// A warp takes a block of elements at a time. A thread of it draws kFours counters side by side, so it has four runs of
// four neighbouring elements, one of each word that a counter gives.
constexpr int kFours = 4, kOwn = 4 * kFours;
static_assert(kDropoutBlock == 32 * kOwn && kDropoutChunk == 16 * kOwn && kDropoutLanes == 16);

struct Link {
  Activation activation;
  bool drops, gradient_reads_output;
  float scale;
  uint32_t threshold;
  uint64_t seed, drawer;
};

struct Links {
  Link links[kLinks];
  int count, dropouts, recomputed;
  bool reads_output, reads_masks;
};

// For a backward pass: without streams.
Links Describe(const ElementwiseChain& chain, std::span<const RandomStream> streams) {
  Links described = {};
  for (const ChainLink& link : chain.links()) {
    Link& to = described.links[described.count++];
    to.activation = link.activation;
    to.gradient_reads_output = link.activation.gradient_reads_output();
    to.drops = link.is_dropout();
    if (!to.drops) continue;
    to.scale = link.dropout_scale();
    to.threshold = DropoutThreshold(link.dropout_ratio);
    if (!streams.empty()) {
      to.seed = streams[described.dropouts].seed();
      to.drawer = streams[described.dropouts].stream() >> 40;
    }
    ++described.dropouts;
  }
  described.recomputed = chain.recomputed();
  described.reads_output = !chain.gradient_reads_input();
  described.reads_masks = chain.reads_masks();
  return described;
}

// What a thread has of a block of elements.
struct Position {
  int64_t block;
  int quad, chunk;  // of 16 threads that share a chunk; which of the two chunks

  __device__ Position(int64_t of_block, int lane) : block(of_block), quad(lane % 16), chunk(lane / 16) {}
  // The first element of run w, counted in the tensor.
  __device__ int64_t At(int w) const {
    return block * kDropoutBlock + chunk * kDropoutChunk + w * kDropoutCounters + 4 * quad;
  }
  // The word of the mask of element k of each run, and its bit for run w.
  __device__ int Word(int k) const { return 4 * (quad % 4) + k; }
  __device__ int Bit(int w) const { return chunk * 16 + w * 4 + quad / 4; }
};

// One run, of n elements in all.
template <typename Number>
__device__ void LoadFour(const Number* from, int64_t n, bool aligned, int64_t at, float* values) {
  if (aligned && at + 4 <= n) {
    const auto four = *reinterpret_cast<const Lanes<4, Number>*>(from + at);
    for (int k = 0; k < 4; ++k) values[k] = four.values[k];
  } else {
    for (int k = 0; k < 4; ++k) values[k] = at + k < n ? static_cast<float>(from[at + k]) : 0.0f;
  }
}

template <typename Number>
__device__ void StoreFour(const float* values, int64_t n, bool aligned, int64_t at, Number* to) {
  if (aligned && at + 4 <= n) {
    Lanes<4, Number> four;
    for (int k = 0; k < 4; ++k) four.values[k] = Number(values[k]);
    *reinterpret_cast<Lanes<4, Number>*>(to + at) = four;
  } else {
    for (int k = 0; k < 4; ++k) {
      if (at + k < n) to[at + k] = Number(values[k]);
    }
  }
}

template <typename Number>
__device__ void Load(const Number* from, int64_t n, bool aligned, const Position& position, float* values) {
  for (int w = 0; w < 4; ++w) LoadFour(from, n, aligned, position.At(w), values + 4 * w);
}

template <typename Number>
__device__ void Store(const float* values, int64_t n, bool aligned, const Position& position, Number* to) {
  for (int w = 0; w < 4; ++w) StoreFour(values + 4 * w, n, aligned, position.At(w), to);
}

// The bits that say which of the thread's elements are kept: bit 4 * w + k for element k of run w.
__device__ uint32_t DrawKept(const Link& link, uint64_t pass, const Position& position) {
  const RandomStream stream(link.seed, StreamId(static_cast<uint32_t>(link.drawer), pass));
  const int64_t chunk = position.block * (kDropoutBlock / kDropoutChunk) + position.chunk;
  uint32_t kept = 0;
  for (int k = 0; k < 4; ++k) {
    const auto words = stream.Bits(static_cast<uint64_t>(chunk * kDropoutCounters + 4 * position.quad + k));
    for (int w = 0; w < 4; ++w) kept |= static_cast<uint32_t>(words[w] >= link.threshold) << (4 * w + k);
  }
  return kept;
}

// All threads of the warp must call.
__device__ void StoreMask(uint32_t kept, const Position& position, uint32_t* mask) {
  Lanes<4, uint32_t> words;
  for (int k = 0; k < 4; ++k) {
    uint32_t word = 0;
    for (int w = 0; w < 4; ++w) word |= (kept >> (4 * w + k) & 1u) << position.Bit(w);
    for (int other = 4; other <= 16; other *= 2) word |= __shfl_xor_sync(0xffffffffu, word, other);
    words.values[k] = word;
  }
  if (position.quad < 4 && position.chunk == 0) *reinterpret_cast<Lanes<4, uint32_t>*>(mask + position.Word(0)) = words;
}

__device__ uint32_t LoadKept(const uint32_t* mask, const Position& position) {
  const auto words = *reinterpret_cast<const Lanes<4, uint32_t>*>(mask + position.Word(0));
  uint32_t kept = 0;
  for (int k = 0; k < 4; ++k) {
    for (int w = 0; w < 4; ++w) kept |= (words.values[k] >> position.Bit(w) & 1u) << (4 * w + k);
  }
  return kept;
}

template <int kCount>
__device__ void Mask(float scale, uint32_t kept, const float* from, float* to) {
  for (int i = 0; i < kCount; ++i) to[i] = kept >> i & 1u ? from[i] * scale : 0.0f;
}

template <int kCount, typename Formula>
__device__ void Apply(const Formula& formula, const float* from, float* to) {
  for (int i = 0; i < kCount; ++i) to[i] = formula(from[i]);
}

template <int kCount, typename Formula>
__device__ void ApplyGradient(const Formula& formula, const float* known, float* gradient) {
  for (int i = 0; i < kCount; ++i) gradient[i] = formula(gradient[i], known[i]);
}

template <int kCount>
__device__ void Activate(const Activation& activation, const float* from, float* to) {
  WithLinkFormula(activation, [&](const auto& formula) { Apply<kCount>(formula, from, to); });
}

template <int kCount>
__device__ void ActivationGradient(const Activation& activation, const float* known, float* gradient) {
  WithLinkGradient(activation, [&](const auto& formula) { ApplyGradient<kCount>(formula, known, gradient); });
}

// y += the bias of its column.
__device__ void AddBias(const float* bias, int64_t columns, int64_t n, const Position& position, float* values) {
  for (int w = 0; w < 4; ++w) {
    const int64_t at = position.At(w);
    int64_t column = n >> 32 ? at % columns : static_cast<uint32_t>(at) % static_cast<uint32_t>(columns);
    for (int k = 0; k < 4; ++k) {
      values[4 * w + k] += bias[column];
      column = column + 1 == columns ? 0 : column + 1;
    }
  }
}

struct Bias {
  const float* values;  // null: none
  int64_t columns;
};

// Calls body(block) for every block of n elements, with all threads of a warp.
template <typename Body>
__device__ void ForEachBlock(int64_t n, const Body& body) {
  const int64_t blocks = (n + kDropoutBlock - 1) / kDropoutBlock, warps = int64_t{gridDim.x} * (blockDim.x / 32);
  for (int64_t i = int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32; i < blocks; i += warps) body(i);
}

template <typename Number>
__global__ void ForwardKernel(Links chain, const PassState* state, int64_t n, bool aligned, Bias bias, const Number* x,
                              Number* y, uint32_t* masks) {
  ForEachBlock(n, [&](int64_t block) {
    const Position position(block, static_cast<int>(threadIdx.x % 32));
    float values[kOwn];
    Load(x, n, aligned, position, values);
    if (bias.values) AddBias(bias.values, bias.columns, n, position, values);
    uint32_t* mask = masks ? masks + block * chain.dropouts * kDropoutLanes : nullptr;
    for (int i = 0; i < chain.count; ++i) {
      const Link& link = chain.links[i];
      if (!link.drops) {
        Activate<kOwn>(link.activation, values, values);
        continue;
      }
      const uint32_t kept = DrawKept(link, state->pass, position);
      Mask<kOwn>(link.scale, kept, values, values);
      if (mask) {
        StoreMask(kept, position, mask);
        mask += kDropoutLanes;
      }
    }
    Store(values, n, aligned, position, y);
  });
}

// Where no inner value is needed: from the output, or from nothing. Four blocks share a multiprocessor, as those of
// ForwardKernel do.
template <typename Number>
__global__ void __launch_bounds__(kThreads, 4) BackwardKernel(Links chain, int64_t n, bool aligned, const Number* known,
                                                              const uint32_t* masks, const Number* dy, Number* dx) {
  ForEachBlock(n, [&](int64_t block) {
    const Position position(block, static_cast<int>(threadIdx.x % 32));
    float values[kOwn], gradient[kOwn];
    if (known) Load(known, n, aligned, position, values);
    Load(dy, n, aligned, position, gradient);
    const uint32_t* mask = masks ? masks + (block + 1) * chain.dropouts * kDropoutLanes : nullptr;
    for (int i = chain.count - 1; i >= 0; --i) {
      const Link& link = chain.links[i];
      if (!link.drops) {
        ActivationGradient<kOwn>(link.activation, values, gradient);
        continue;
      }
      if (mask) mask -= kDropoutLanes;
      Mask<kOwn>(link.scale, mask ? LoadKept(mask, position) : ~0u, gradient, gradient);
    }
    Store(gradient, n, aligned, position, dx);
  });
}

// Inner values of four elements are computed again at a time, which fit registers where the links are unrolled.
template <int... kLink>
__device__ void GradientFromInput(const Links& chain, int64_t in_mask, const uint32_t* kept, const float* known,
                                  float* gradient, std::integer_sequence<int, kLink...>) {
  float inner[(sizeof...(kLink) + 1) * 4];  // the input and the outputs of the links
  for (int k = 0; k < 4; ++k) inner[k] = known[k];
  const auto forward = [&](auto index) {
    constexpr int i = index;
    if (i >= chain.recomputed) return;
    const Link& link = chain.links[i];
    if (link.drops) {
      Mask<4>(link.scale, kept[i] >> in_mask, inner + 4 * i, inner + 4 * (i + 1));
    } else {
      Activate<4>(link.activation, inner + 4 * i, inner + 4 * (i + 1));
    }
  };
  const auto backward = [&](auto index) {
    constexpr int i = index;
    if (i >= chain.count) return;
    const Link& link = chain.links[i];
    if (link.drops) {
      Mask<4>(link.scale, kept[i] >> in_mask, gradient, gradient);
    } else if (link.gradient_reads_output) {
      ActivationGradient<4>(link.activation, inner + 4 * (i + 1), gradient);
    } else {
      ActivationGradient<4>(link.activation, inner + 4 * i, gradient);
    }
  };
  (forward(std::integral_constant<int, kLink>()), ...);
  (backward(std::integral_constant<int, static_cast<int>(sizeof...(kLink)) - 1 - kLink>()), ...);
}

template <typename Number>
__global__ void BackwardFromInputKernel(Links chain, int64_t n, bool aligned, const Number* x, const uint32_t* masks,
                                        const Number* dy, Number* dx) {
  ForEachBlock(n, [&](int64_t block) {
    const Position position(block, static_cast<int>(threadIdx.x % 32));
    uint32_t kept[kLinks];
    const uint32_t* mask = masks ? masks + block * chain.dropouts * kDropoutLanes : nullptr;
    const auto load = [&](auto index) {
      constexpr int i = index;
      const bool masked = i < chain.count && chain.links[i].drops && mask;
      kept[i] = masked ? LoadKept(mask, position) : ~0u;
      if (masked) mask += kDropoutLanes;
    };
    [&]<int... kLink>(std::integer_sequence<int, kLink...>) { (load(std::integral_constant<int, kLink>()), ...); }
    (std::make_integer_sequence<int, kLinks>());
    for (int w = 0; w < 4; ++w) {
      float values[4], gradient[4];
      LoadFour(x, n, aligned, position.At(w), values);
      LoadFour(dy, n, aligned, position.At(w), gradient);
      GradientFromInput(chain, 4 * w, kept, values, gradient, std::make_integer_sequence<int, kLinks>());
      StoreFour(gradient, n, aligned, position.At(w), dx);
    }
  });
}

unsigned ChainBlocks(const Queue& queue, int64_t n) { return BlocksFor(queue, (n + kOwn - 1) / kOwn); }

}  // namespace

void CudaOperations::ChainForward(const ElementwiseChain& chain, std::span<const RandomStream> streams, const Tensor& x,
                                  const Tensor& y, uint32_t* masks) {
  const int64_t n = y.count();
  if (n == 0) return;
  const Links links = Describe(chain, streams);
  const bool aligned = IsPackAligned(x.raw()) && IsPackAligned(y.raw());
  if (!links.reads_masks) masks = nullptr;
  CREMA_CHECK(IsPackAligned(masks)) << "masks are not aligned";
  WithNumber(y.dtype(), [&]<typename Number>(Number* number) {
    Launch(queue(), ChainBlocks(queue(), n), kThreads, ForwardKernel<Number>, links, gpu_.state(), n, aligned,
           Bias{nullptr, 1}, As(x, number), As(y, number), masks);
  });
}

void CudaOperations::ChainForwardWithBias(const ElementwiseChain& chain, std::span<const RandomStream> streams,
                                          const float* bias, int64_t rows, int64_t columns, float* y, uint32_t* masks) {
  const int64_t n = rows * columns;
  if (n == 0) return;
  const Links links = Describe(chain, streams);
  if (!links.reads_masks) masks = nullptr;
  CREMA_CHECK(IsPackAligned(masks)) << "masks are not aligned";
  Launch(queue(), ChainBlocks(queue(), n), kThreads, ForwardKernel<float>, links, gpu_.state(), n, IsPackAligned(y),
         Bias{bias, columns}, y, y, masks);
}

void CudaOperations::ChainBackward(const ElementwiseChain& chain, const void* known, const uint32_t* masks,
                                   const Tensor& dy, const Tensor& dx) {
  const int64_t n = dx.count();
  if (n == 0) return;
  const Links links = Describe(chain, {});
  if (!links.reads_masks) masks = nullptr;
  if (!chain.gradient_reads_output() && !chain.gradient_reads_input()) known = nullptr;
  const bool aligned = IsPackAligned(known) && IsPackAligned(dy.raw()) && IsPackAligned(dx.raw());
  CREMA_CHECK(IsPackAligned(masks)) << "masks are not aligned";
  WithNumber(dx.dtype(), [&]<typename Number>(Number* number) {
    Launch(queue(), ChainBlocks(queue(), n), kThreads,
           links.reads_output ? BackwardKernel<Number> : BackwardFromInputKernel<Number>, links, n, aligned,
           static_cast<const Number*>(known), masks, As(dy, number), As(dx, number));
  });
}

}  // namespace crema::cuda
