#include <cublasLt.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "crema/error.h"
#include "cuda/matrices/matrix_product.h"

namespace crema::cuda {

namespace {

constexpr size_t kWorkspace = size_t{32} << 20;

void Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(std::string(what) + " failed: " + cublasLtGetStatusString(status) + " (" +
                         cublasLtGetStatusName(status) + ")");
}

// Owns an object of cuBLASLt.
template <typename Object, cublasStatus_t (*destroy)(Object)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept { std::swap(object_, other.object_); }
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (object_) destroy(object_);
  }
  Object get() const { return object_; }
  Object* address() { return &object_; }

 private:
  Object object_ = nullptr;
};
using Handle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <typename Value>
void Set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  Check(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof value), "describing a product");
}
template <typename Value>
void Set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  Check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "choosing how to multiply");
}

template <typename Value>
void Set(const Matrix& matrix, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  Check(cublasLtMatrixLayoutSetAttribute(matrix.get(), attribute, &value, sizeof value), "describing a matrix");
}

// cuBLASLt's matrices are column-major: a row-major one is the transpose of one with as many columns as rows.
Matrix RowMajor(int64_t batches, int64_t rows, int64_t columns, int64_t stride) {
  Matrix matrix;
  Check(cublasLtMatrixLayoutCreate(matrix.address(), CUDA_R_32F, static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), stride),
        "describing a matrix");
  if (batches > 1) {
    Set(matrix, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batches));
    Set(matrix, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * stride);
  }
  return matrix;
}

// The largest power of two up to 16 that all addresses are a multiple of. No algorithm asks for more, and where a net's
// tensors happen to lie must not change which one is chosen.
uint32_t AlignmentOf(const void* a, const void* b, const void* c, const void* bias) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
                         reinterpret_cast<uintptr_t>(c) | reinterpret_cast<uintptr_t>(bias) | 16;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

// What the choice of an algorithm depends on.
struct Key {
  bool transpose_a, transpose_b, adds, bias;
  Factors factors;
  uint32_t alignment;
  int64_t batches, m, n, k, a_stride, b_stride, c_stride;
  auto operator<=>(const Key&) const = default;
};

// One product, ready to be issued.
struct Plan {
  Plan(cublasLtHandle_t handle, const Key& key, const float* any_bias);

  Operation operation;
  Matrix a, b, c;
  cublasLtMatmulAlgo_t algorithm;
};

Plan::Plan(cublasLtHandle_t handle, const Key& key, const float* any_bias)
    : a(key.transpose_a ? RowMajor(key.batches, key.k, key.m, key.a_stride)
                        : RowMajor(key.batches, key.m, key.k, key.a_stride)),
      b(key.transpose_b ? RowMajor(key.batches, key.n, key.k, key.b_stride)
                        : RowMajor(key.batches, key.k, key.n, key.b_stride)),
      c(RowMajor(key.batches, key.m, key.n, key.c_stride)) {
  const cublasComputeType_t compute = key.factors == Factors::kBF16   ? CUBLAS_COMPUTE_32F_FAST_16BF
                                      : key.factors == Factors::kF16  ? CUBLAS_COMPUTE_32F_FAST_16F
                                      : key.factors == Factors::kTF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                      : CUBLAS_COMPUTE_32F;
  Check(cublasLtMatmulDescCreate(operation.address(), compute, CUDA_R_32F), "describing a product");
  // Transposed, the product is C^T = op(B)^T op(A)^T: the factors change places.
  Set(operation, CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  Set(operation, CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.bias) {
    Set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, any_bias);  // for its alignment
  }
  Preference preference;
  Check(cublasLtMatmulPreferenceCreate(preference.address()), "choosing how to multiply");
  Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspace});
  // Of the ways to split a sum, those that add the parts in a step of their own, in order.
  Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
  for (const auto alignment :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    Set(preference, alignment, key.alignment);
  }
  cublasLtMatmulHeuristicResult_t found = {};
  const auto choose = [&] {
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), b.get(), a.get(), c.get(),
                                                                 c.get(), preference.get(), 1, &found, &count);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return count > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED;
  };
  cublasStatus_t status = choose();
  // Factors may be rounded; where odd extents or addresses are not to cuBLASLt's liking, they are less so, or not at
  // all.
  for (const cublasComputeType_t exacter : {CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F}) {
    if (status == CUBLAS_STATUS_SUCCESS || compute == CUBLAS_COMPUTE_32F || compute == exacter) continue;
    Set(operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, exacter);
    status = choose();
  }
  if (status != CUBLAS_STATUS_SUCCESS) {
    const std::string what = "choosing how to multiply " + std::to_string(key.batches) + " times " +
                             std::to_string(key.m) + "x" + std::to_string(key.k) + " by " + std::to_string(key.k) +
                             "x" + std::to_string(key.n);
    Check(status, what.c_str());
  }
  algorithm = found.algo;
}

}  // namespace

struct MatrixProducts::Impl {
  explicit Impl(CudaGpu& gpu) : gpu(gpu), workspace(gpu, kWorkspace) {
    Check(cublasLtCreate(handle.address()), "starting cuBLASLt");
  }

  CudaGpu& gpu;
  Buffer workspace;
  Handle handle;
  std::map<Key, Plan> plans;
};

MatrixProducts::MatrixProducts(CudaGpu& gpu) : impl_(std::make_unique<Impl>(gpu)) {}
MatrixProducts::~MatrixProducts() = default;

void MatrixProducts::Multiply(const Product& p, const float* a, const float* b, float* c) {
  if (p.batches == 0 || p.m == 0 || p.n == 0) return;
  CREMA_CHECK(p.k > 0) << "a product of empty matrices";
  CREMA_CHECK(p.batches <= std::numeric_limits<int32_t>::max()) << p.batches << " products at a time";
  const Key key{p.transpose_a, p.transpose_b,
                p.beta != 0,   p.bias != nullptr,
                p.factors,     AlignmentOf(a, b, c, p.bias),
                p.batches,     p.m,
                p.n,           p.k,
                p.a_stride(),  p.b_stride(),
                p.c_stride()};
  auto found = impl_->plans.find(key);
  if (found == impl_->plans.end()) {
    found = impl_->plans.try_emplace(key, impl_->handle.get(), key, p.bias).first;
  }
  const Plan& plan = found->second;
  if (p.bias) Set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  Check(cublasLtMatmul(impl_->handle.get(), plan.operation.get(), &p.alpha, b, plan.b.get(), a, plan.a.get(), &p.beta,
                       c, plan.c.get(), c, plan.c.get(), &plan.algorithm, impl_->workspace.data(), kWorkspace,
                       impl_->gpu.queue().stream),
        "multiplying matrices");
}

}  // namespace crema::cuda
