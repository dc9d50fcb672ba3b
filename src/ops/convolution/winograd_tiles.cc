#include "ops/convolution/winograd_tiles.h"

#include "ops/arrays/packs.h"
#include "ops/arrays/vector_lanes.h"
#include "ops/convolution/winograd.h"

namespace crema {

namespace {

// load(i, &x) and store(i, x) for the elements of the given and of the made square, row by row.
template <typename Formula, typename Floats, typename Load, typename Store>
CREMA_INLINE void Transform(const Load& load, const Store& store) {
  constexpr int kIn = Formula::kIn, kOut = Formula::kOut;
  Floats middle[kOut][kIn];
#pragma GCC unroll 6
  for (int column = 0; column < kIn; ++column) {
    Floats given[kIn], made[kOut];
#pragma GCC unroll 6
    for (int row = 0; row < kIn; ++row) load(row * kIn + column, given[row]);
    Formula::Run(given, made);
#pragma GCC unroll 6
    for (int row = 0; row < kOut; ++row) middle[row][column] = made[row];
  }
#pragma GCC unroll 6
  for (int row = 0; row < kOut; ++row) {
    Floats made[kOut];
    Formula::Run(middle[row], made);
#pragma GCC unroll 6
    for (int column = 0; column < kOut; ++column) store(row * kOut + column, made[column]);
  }
}

// Calls Body::Run<lanes>(c, arguments...) so that the channels from each c on cover all of them once. A body never
// crosses a multiple of 16.
template <int kLanes, typename Body, typename... Arguments>
CREMA_INLINE void CoverChannels(int64_t channels, const Arguments&... arguments) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) Body::template Run<kLanes>(c, arguments...);
  if constexpr (kLanes > 4) {
    for (; c + 4 <= channels; c += 4) Body::template Run<4>(c, arguments...);
  }
  for (; c < channels; ++c) Body::template Run<1>(c, arguments...);
}

CREMA_INLINE int64_t Offset(const WinogradPoints& points, int64_t c) { return c / 16 * points.chunks + c % 16; }

template <typename Formula>
struct ToPoints {
  template <int kLanes>
  static CREMA_INLINE void Run(int64_t c, const float* const* pixels, const WinogradPoints& to) {
    using Floats = typename Pack<kLanes>::Floats;
    float* const first = to.data + Offset(to, c);
    const int64_t step = to.points;
    Transform<Formula, Floats>([pixels, c](int i, Floats& x) CREMA_INLINE_LAMBDA { LoadPack(pixels[i] + c, &x); },
                               [first, step](int i, const Floats& x)
                                   CREMA_INLINE_LAMBDA { StorePack(x, first + i * step); });
  }
};

template <typename Formula>
struct ToTaps {
  template <int kLanes>
  static CREMA_INLINE void Run(int64_t c, const WinogradPoints& from, float* const* taps) {
    using Floats = typename Pack<kLanes>::Floats;
    const float* const first = from.data + Offset(from, c);
    const int64_t step = from.points;
    Transform<Formula, Floats>([first, step](int i, Floats& x) CREMA_INLINE_LAMBDA { LoadPack(first + i * step, &x); },
                               [taps, c](int i, const Floats& x) CREMA_INLINE_LAMBDA { StorePack(x, taps[i] + c); });
  }
};

template <typename Formula>
struct ToOutputs {
  template <int kLanes>
  static CREMA_INLINE void Run(int64_t c, const WinogradPoints& from, const WinogradEpilogue& epilogue,
                               float* const* pixels) {
    using Floats = typename Pack<kLanes>::Floats;
    const float* const first = from.data + Offset(from, c);
    const int64_t step = from.points;
    Floats bias = {};
    if (epilogue.bias) LoadPack(epilogue.bias + c, &bias);
    const bool add = epilogue.add;
    const float slope = epilogue.slope;
    Transform<Formula, Floats>([first, step](int i, Floats& x) CREMA_INLINE_LAMBDA { LoadPack(first + i * step, &x); },
                               [pixels, c, add, slope, &bias](int i, const Floats& x) CREMA_INLINE_LAMBDA {
                                 if (!pixels[i]) return;
                                 Floats y = x + bias;
                                 if (add) {
                                   Floats there;
                                   LoadPack(pixels[i] + c, &there);
                                   y += there;
                                 }
                                 const Floats below = slope * y;
                                 ChooseWhereLarger<true>(Floats{}, y, below, y, &y);
                                 StorePack(y, pixels[i] + c);
                               });
  }
};

// Compiled for one instruction set each: CREMA_MULTIVERSION would compile all for all.
#define CREMA_TRANSFORMS(name, lanes, attributes)                                                                      \
  template <typename W>                                                                                                \
  struct name {                                                                                                        \
    attributes static void Source(const float* const* pixels, int64_t channels, const WinogradPoints& to) {            \
      CoverChannels<lanes, ToPoints<typename W::Source>>(channels, pixels, to);                                        \
    }                                                                                                                  \
    attributes static void DestinationGradient(const float* const* pixels, int64_t channels,                           \
                                               const WinogradPoints& to) {                                             \
      CoverChannels<lanes, ToPoints<typename W::DestinationGradient>>(channels, pixels, to);                           \
    }                                                                                                                  \
    attributes static void Destination(const WinogradPoints& from, int64_t channels, const WinogradEpilogue& epilogue, \
                                       float* const* pixels) {                                                         \
      CoverChannels<lanes, ToOutputs<typename W::Destination>>(channels, from, epilogue, pixels);                      \
    }                                                                                                                  \
    attributes static void Kernel(const float* const* taps, int64_t channels, const WinogradPoints& to) {              \
      CoverChannels<lanes, ToPoints<typename W::Kernel>>(channels, taps, to);                                          \
    }                                                                                                                  \
    attributes static void KernelGradient(const WinogradPoints& from, int64_t channels, float* const* taps) {          \
      CoverChannels<lanes, ToTaps<typename W::KernelGradient>>(channels, from, taps);                                  \
    }                                                                                                                  \
    static constexpr WinogradTransforms kAll = {                                                                       \
        W::kPoints,    W::kPoints - W::kTaps + 1, W::kTaps, Source, DestinationGradient, Destination, Kernel,          \
        KernelGradient};                                                                                               \
  };

CREMA_TRANSFORMS(Narrow, 4, )
#if defined(__x86_64__)
CREMA_TRANSFORMS(Avx2, 8, __attribute__((target("avx2,fma"))))
CREMA_TRANSFORMS(Avx512, 16, __attribute__((target("avx512f"))))
#endif
#undef CREMA_TRANSFORMS

template <typename W>
const WinogradTransforms& Transforms() {
#if defined(__x86_64__)
  return *ForVectorLanes(&Narrow<W>::kAll, &Avx2<W>::kAll, &Avx512<W>::kAll);
#else
  return Narrow<W>::kAll;
#endif
}

}  // namespace

const WinogradTransforms& WinogradTransformsFor(int m, int r) {
  if (r == 5) return Transforms<Winograd<SixPoints, 2>>();
  return m == 2 ? Transforms<Winograd<FourPoints, 2>>() : Transforms<Winograd<SixPoints, 4>>();
}

}  // namespace crema
