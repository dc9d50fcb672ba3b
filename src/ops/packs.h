// Packs of numbers that stay in registers across a loop, for kernels that compilers do not vectorise well by
// themselves.
#ifndef CREMA_OPS_PACKS_H_
#define CREMA_OPS_PACKS_H_

#include <cstdint>

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
  typedef uint16_t Shorts __attribute__((vector_size(kLanes * sizeof(uint16_t))));
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

// Calls Body::template Run<packs, lanes>(first, arguments...) so that the blocks of packs * lanes elements from each
// `first` on cover [begin, end) once.
template <typename Body, typename... Arguments>
CREMA_INLINE void CoverWithPacks(int64_t begin, int64_t end, Arguments&... arguments) {
  int64_t i = begin;
  for (; i + 16 <= end; i += 16) Body::template Run<2, 8>(i, arguments...);
  for (; i + 4 <= end; i += 4) Body::template Run<1, 4>(i, arguments...);
  for (; i < end; ++i) Body::template Run<1, 1>(i, arguments...);
}

}  // namespace crema

#endif  // CREMA_OPS_PACKS_H_
