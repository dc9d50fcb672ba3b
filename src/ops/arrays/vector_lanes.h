// How wide the vectors of kernels are that are written once for each width.
#ifndef CREMA_OPS_ARRAYS_VECTOR_LANES_H_
#define CREMA_OPS_ARRAYS_VECTOR_LANES_H_

namespace crema {

// Floats in the widest vectors that kernels may use here: 16 with AVX-512, 8 with AVX2 and FMA, else 4. As for oneDNN
// ONEDNN_MAX_CPU_ISA keeps them from instructions that the processor has.
int VectorLanes();

// Of one kernel compiled for each of these widths, the one to use here.
template <typename Kernel>
Kernel* ForVectorLanes(Kernel* four, Kernel* eight, Kernel* sixteen) {
  const int lanes = VectorLanes();
  return lanes == 16 ? sixteen : lanes == 8 ? eight : four;
}

namespace internal {

template <typename Kernel, typename... Arguments>
void RunNarrow(Arguments... arguments) {
  Kernel::template Run<4>(arguments...);
}
#if defined(__x86_64__)
template <typename Kernel, typename... Arguments>
__attribute__((target("avx2,fma"))) void RunAvx2(Arguments... arguments) {
  Kernel::template Run<8>(arguments...);
}
template <typename Kernel, typename... Arguments>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void RunAvx512(Arguments... arguments) {
  Kernel::template Run<16>(arguments...);
}
#endif

}  // namespace internal

// Kernel::Run<VectorLanes()>(arguments...), which must be CREMA_INLINE, compiled for those vectors. For what compares
// packs (ops/arrays/packs.h): GCC compares packs wider than the vectors it compiles for number by number.
template <typename Kernel, typename... Arguments>
void RunForVectorLanes(Arguments... arguments) {
#if defined(__x86_64__)
  static const auto run =
      ForVectorLanes(internal::RunNarrow<Kernel, Arguments...>, internal::RunAvx2<Kernel, Arguments...>,
                     internal::RunAvx512<Kernel, Arguments...>);
  run(arguments...);
#else
  Kernel::template Run<4>(arguments...);
#endif
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_VECTOR_LANES_H_
