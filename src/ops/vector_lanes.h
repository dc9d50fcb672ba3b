// How wide the vectors of kernels are that are written once for each width.
#ifndef CREMA_OPS_VECTOR_LANES_H_
#define CREMA_OPS_VECTOR_LANES_H_

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

}  // namespace crema

#endif  // CREMA_OPS_VECTOR_LANES_H_
