#include "ops/arrays/vector_lanes.h"

#include "ops/onednn.h"

namespace crema {

int VectorLanes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && onednn::Uses(dnnl::cpu_isa::avx512_core)) return 16;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && onednn::Uses(dnnl::cpu_isa::avx2)) return 8;
#endif
  return 4;
}

}  // namespace crema
