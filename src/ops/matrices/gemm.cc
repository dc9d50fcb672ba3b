#include "ops/matrices/gemm.h"

#include <cblas.h>
#include <strings.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/check.h"
#include "ops/arrays/vector_lanes.h"
#include "ops/matrices/dot_products.h"

namespace crema {

namespace {

CBLAS_TRANSPOSE Operation(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

// Rows of nothing are legal here, but BLAS wants every leading dimension to be at least 1.
blasint Leading(int64_t extent) { return static_cast<blasint>(std::max<int64_t>(extent, 1)); }

#if defined(__x86_64__)
// OpenBLAS chooses kernels by the processor's model, and those of a very old one where it does not know the model:
// 0.3.21 has four lanes on Intel's fifth generation of Xeons, which have sixteen. oneDNN goes by the instructions that
// there are.
bool OpenBlasIsNarrow() {
  static const bool narrow = [] { return OpenBlasLanes(openblas_get_corename()) < VectorLanes(); }();
  return narrow;
}
#endif

// Measured with oneDNN 2.6 and OpenBLAS 0.3.21 on AVX-512, one and two threads: where a side is short oneDNN takes 0.8
// of OpenBLAS's time (64 x 800 x 500, 400 x 200 x 800), down to 0.4 (32 rows against 9216 x 4096, single rows); on
// large squares OpenBLAS is a few per cent ahead. With AVX2 oneDNN takes 1.4 to 1.9 of it where matrices of some size
// are not transposed, and 1.2 to 1.5 where many rows are multiplied with others' transpose (the gradient of weights).
// oneDNN generates code for x86-64 only.
bool PrefersOneDnn(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
#if defined(__x86_64__)
  static const bool avx2 = VectorLanes() == 8;
  if (OpenBlasIsNarrow()) return true;
  const bool plain = !transpose_a && !transpose_b && m >= 64 && n >= 1024 && k >= 256;
  const bool long_sums = transpose_a && !transpose_b && std::min(m, n) >= 128 && std::max(m, n) >= 256 && k >= 512;
  return std::min({m, n, k}) <= 512 && !(avx2 && (plain || long_sums));
#else
  return false;
#endif
}

}  // namespace

void GemmStrided(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                 int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (!transpose_a && transpose_b && alpha == 1 && (beta == 0 || beta == 1) && PrefersDotProducts(m, n, k)) {
    return DotProducts(m, n, k, a, lda, b, ldb, beta == 1, c, ldc);
  }
  const bool zero = alpha == 0 && beta == 0;  // oneDNN leaves c unwritten then
  if (k > 0 && !zero && PrefersOneDnn(transpose_a, transpose_b, m, n, k)) {
    const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a,
                                            Leading(lda), b, Leading(ldb), beta, c, Leading(ldc));
    CREMA_CHECK(status == dnnl_success) << "dnnl_sgemm status " << status;
    return;
  }
  cblas_sgemm(CblasRowMajor, Operation(transpose_a), Operation(transpose_b), static_cast<blasint>(m),
              static_cast<blasint>(n), static_cast<blasint>(k), alpha, a, Leading(lda), b, Leading(ldb), beta, c,
              Leading(ldc));
}

void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
          const float* b, float beta, float* c) {
  GemmStrided(transpose_a, transpose_b, m, n, k, alpha, a, transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
}

int OpenBlasLanes(const char* core) {
  for (const char* name : {"SkylakeX", "Cooperlake", "SapphireRapids"}) {
    if (strcasecmp(core, name) == 0) return 16;
  }
  for (const char* name : {"Haswell", "Zen", "Excavator", "Sandybridge", "Bulldozer", "Piledriver", "Steamroller"}) {
    if (strcasecmp(core, name) == 0) return 8;
  }
  return 4;
}

std::string DescribeGemm() {
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  const std::string blas =
      config.substr(0, config.find(' ', config.find(' ') + 1)) + " (" + openblas_get_corename() + ")";
#if defined(__x86_64__)
  const dnnl_version_t* version = dnnl_version();
  const std::string onednn = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
                             std::to_string(version->patch);
  if (OpenBlasIsNarrow()) return onednn + "; not " + blas + ", which takes this processor for an older one";
  return onednn + ", " + blas;
#else
  return blas;
#endif
}

void SetGemmThreads(int threads) { openblas_set_num_threads(threads); }

void GemmReference(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                   const float* b, float beta, float* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(a[transpose_a ? l * m + i : i * k + l]) * b[transpose_b ? j * k + l : l * n + j];
      }
      float& out = c[i * n + j];
      out = static_cast<float>(alpha * sum + (beta == 0 ? 0.0 : static_cast<double>(beta) * out));
    }
  }
}

}  // namespace crema
