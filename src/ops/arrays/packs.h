// Packs of numbers that stay in registers across a loop, for kernels that compilers do not vectorise well by
// themselves.
#ifndef CREMA_OPS_ARRAYS_PACKS_H_
#define CREMA_OPS_ARRAYS_PACKS_H_

#include <cstdint>
#include <type_traits>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 15
#include <immintrin.h>
// See ChooseWhereLarger.
#define CREMA_COMPARE_BY_BITS 1
#endif

#include "base/bfloat16.h"
#include "base/multiversion.h"

// Between a lambda's parameters and its body: as CREMA_INLINE before a function.
#define CREMA_INLINE_LAMBDA __attribute__((always_inline))

namespace crema {

// kLanes: a power of two. Packs are handed over by reference only: how they are passed by value depends on the
// instruction set.
template <int kLanes>
struct Pack {
  typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
  typedef uint32_t Words __attribute__((vector_size(kLanes * sizeof(uint32_t))));
  typedef uint16_t Shorts __attribute__((vector_size(kLanes * sizeof(uint16_t))));
  typedef int16_t Int16s __attribute__((vector_size(kLanes * sizeof(int16_t))));
  typedef uint8_t Bytes __attribute__((vector_size(kLanes)));
};

// From and to memory of any alignment.
template <typename T, typename Values>
CREMA_INLINE void LoadPack(const T* from, Values* values) {
  __builtin_memcpy(values, from, sizeof(Values));
}
template <typename Values, typename T>
CREMA_INLINE void StorePack(const Values& values, T* to) {
  __builtin_memcpy(to, &values, sizeof(Values));
}
// The elements of two packs of 32-bit numbers that the indices name, counted through a and then b.
template <int... kIndices, typename Values>
CREMA_INLINE void PickLanes(const Values& a, const Values& b, Values* picked) {
#if defined(__clang__)
  *picked = __builtin_shufflevector(a, b, kIndices...);
#else  // GCC has the former from 12 on
  *picked = __builtin_shuffle(a, b, typename Pack<sizeof...(kIndices)>::Ints{kIndices...});
#endif
}
// kLanes numbers from and to memory, as floats in between.
template <int kLanes>
CREMA_INLINE void LoadFloats(const float* from, typename Pack<kLanes>::Floats* values) {
  LoadPack(from, values);
}
template <int kLanes>
CREMA_INLINE void LoadFloats(const BFloat16* from, typename Pack<kLanes>::Floats* values) {
  typename Pack<kLanes>::Shorts upper;
  LoadPack(from, &upper);
  *values = (typename Pack<kLanes>::Floats)(__builtin_convertvector(upper, typename Pack<kLanes>::Words) << 16);
}
template <int kLanes>
CREMA_INLINE void StoreFloats(const typename Pack<kLanes>::Floats& values, float* to) {
  StorePack(values, to);
}
// The upper half of each word is the nearest bf16 number, ties to even. A NaN must come of bf16 numbers or of
// arithmetic: its lower half is then zero, so that nothing is carried.
template <typename Floats, typename Words>
CREMA_INLINE void RoundPack(const Floats& values, Words* rounded) {
  const Words words = (Words)values;
  *rounded = words + 0x7fffu + ((words >> 16) & 1u);
}
template <int kLanes>
CREMA_INLINE void StoreFloats(const typename Pack<kLanes>::Floats& values, BFloat16* to) {
  using Words = typename Pack<kLanes>::Words;
  Words rounded;
  RoundPack(values, &rounded);
  const typename Pack<kLanes>::Shorts upper = __builtin_convertvector(rounded >> 16, typename Pack<kLanes>::Shorts);
  StorePack(upper, to);
}

// kPacks * kLanes numbers at a time. Two packs of bf16 take the numbers of even and of odd index, which costs less than
// keeping the order.
template <int kPacks, int kLanes>
CREMA_INLINE void LoadPacks(const float* from, typename Pack<kLanes>::Floats* values) {
  for (int i = 0; i < kPacks; ++i) LoadPack(from + i * kLanes, &values[i]);
}
template <int kPacks, int kLanes>
CREMA_INLINE void StorePacks(const typename Pack<kLanes>::Floats* values, float* to) {
  for (int i = 0; i < kPacks; ++i) StorePack(values[i], to + i * kLanes);
}
template <int kLanes, typename Words>
CREMA_INLINE void SplitPack(const Words& words, typename Pack<kLanes>::Floats* values) {
  values[0] = (typename Pack<kLanes>::Floats)(words << 16);
  values[1] = (typename Pack<kLanes>::Floats)(words & 0xffff0000u);
}
template <int kPacks, int kLanes>
CREMA_INLINE void LoadPacks(const BFloat16* from, typename Pack<kLanes>::Floats* values) {
  if constexpr (kPacks == 2) {
    typename Pack<kLanes>::Words words;
    LoadPack(from, &words);
    SplitPack<kLanes>(words, values);
  } else {
    LoadFloats<kLanes>(from, values);
  }
}
template <int kPacks, int kLanes>
CREMA_INLINE void StorePacks(const typename Pack<kLanes>::Floats* values, BFloat16* to) {
  if constexpr (kPacks == 2) {
    typename Pack<kLanes>::Words even, odd;
    RoundPack(values[0], &even);
    RoundPack(values[1], &odd);
    StorePack((even >> 16) | (odd & 0xffff0000u), to);
  } else {
    StoreFloats<kLanes>(*values, to);
  }
}

// GCC from 15 on takes what an inlined function compares number by number where the function that it is inlined into is
// compiled for AVX-512 and it is not: there the following name instructions, or do it by bits.

// *chosen = a > b ? larger : other. Of numbers of 32 bits. kAvx512: what this is inlined into is compiled for it.
template <bool kAvx512, typename Floats, typename Values>
CREMA_INLINE void ChooseWhereLarger(const Floats& a, const Floats& b, const Values& larger, const Values& other,
                                    Values* chosen) {
#ifdef CREMA_COMPARE_BY_BITS
  if constexpr (kAvx512 && sizeof(Floats) == 64) {
    constexpr int kGreater = 30, kRounding = 4;  // of the instruction, and as it is set
    const auto mask = __builtin_ia32_cmpps512_mask(a, b, kGreater, static_cast<unsigned short>(0xffff), kRounding);
    *chosen = (Values)__builtin_ia32_blendmps_512_mask((Floats)other, (Floats)larger, mask);
    return;
  }
#endif
  *chosen = (Values)(a > b ? (Floats)larger : (Floats)other);
}
// *mask = a > b, and a == b: all bits of each number, or none.
template <typename Ints>
CREMA_INLINE void GreaterMask(const Ints& a, const Ints& b, Ints* mask) {
#ifdef CREMA_COMPARE_BY_BITS
  // The sign of b - a, as if it could not overflow (Warren, "Hacker's Delight", 2-12).
  constexpr int kSign = 8 * sizeof(a[0]) - 1, kLanes = sizeof(Ints) / sizeof(a[0]);
  using Unsigned = std::conditional_t<sizeof(a[0]) == 2, typename Pack<kLanes>::Shorts, typename Pack<kLanes>::Words>;
  const Ints difference = (Ints)((Unsigned)b - (Unsigned)a);
  *mask = (difference ^ ((b ^ a) & (difference ^ b))) >> kSign;
#else
  *mask = a > b;
#endif
}
template <typename Ints>
CREMA_INLINE void EqualMask(const Ints& a, const Ints& b, Ints* mask) {
#ifdef CREMA_COMPARE_BY_BITS
  constexpr int kSign = 8 * sizeof(a[0]) - 1, kLanes = sizeof(Ints) / sizeof(a[0]);
  using Unsigned = std::conditional_t<sizeof(a[0]) == 2, typename Pack<kLanes>::Shorts, typename Pack<kLanes>::Words>;
  const Unsigned difference = (Unsigned)(a ^ b);
  *mask = ~((Ints)(difference | -difference) >> kSign);
#else
  *mask = a == b;
#endif
}

template <int kLanes>
CREMA_INLINE void BroadcastPack(int32_t value, typename Pack<kLanes>::Ints* values) {
  int32_t all[kLanes];
  for (int i = 0; i < kLanes; ++i) all[i] = value;
  LoadPack(all, values);
}

template <int kLanes>
CREMA_INLINE void LoadInts(const int32_t* from, typename Pack<kLanes>::Ints* values) {
  LoadPack(from, values);
}
template <int kLanes>
CREMA_INLINE void LoadInts(const uint8_t* from, typename Pack<kLanes>::Ints* values) {
  typename Pack<kLanes>::Bytes bytes;
  LoadPack(from, &bytes);
  // GCC 12 takes the elements one by one where it is to widen them by more than a factor of two.
  *values = __builtin_convertvector(__builtin_convertvector(bytes, typename Pack<kLanes>::Shorts),
                                    typename Pack<kLanes>::Ints);
}

template <int kLanes>
CREMA_INLINE void StoreInts(const typename Pack<kLanes>::Ints& values, int32_t* to) {
  StorePack(values, to);
}
template <int kLanes>
CREMA_INLINE void StoreInts(const typename Pack<kLanes>::Ints& values, uint8_t* to) {
  const auto shorts = __builtin_convertvector(values, typename Pack<kLanes>::Shorts);
  const auto bytes = __builtin_convertvector(shorts, typename Pack<kLanes>::Bytes);
  StorePack(bytes, to);
}

// kWide: for numbers of two bytes. Calls Body::template Run<packs, lanes>(first, arguments...) so that the blocks of
// packs * lanes elements from each `first` on cover [begin, end) once.
template <typename Body, bool kWide = false, typename... Arguments>
CREMA_INLINE void CoverWithPacks(int64_t begin, int64_t end, Arguments&... arguments) {
  int64_t i = begin;
  for (; kWide && i + 32 <= end; i += 32) Body::template Run<2, 16>(i, arguments...);
  for (; i + 16 <= end; i += 16) Body::template Run<2, 8>(i, arguments...);
  for (; i + 4 <= end; i += 4) Body::template Run<1, 4>(i, arguments...);
  for (; i < end; ++i) Body::template Run<1, 1>(i, arguments...);
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_PACKS_H_
