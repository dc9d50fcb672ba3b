// Vectors of floats for the kernels that are written once for each width.
#ifndef CREMA_OPS_VECTOR_LANES_H_
#define CREMA_OPS_VECTOR_LANES_H_

namespace crema {

template <int kLanes>
struct Lanes {
  typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
};

// Floats in the widest vectors that kernels may use here: 16 with AVX-512, 8 with AVX2 and FMA, else 4. As for oneDNN
// ONEDNN_MAX_CPU_ISA keeps them from instructions that the processor has.
int VectorLanes();

}  // namespace crema

#endif  // CREMA_OPS_VECTOR_LANES_H_
