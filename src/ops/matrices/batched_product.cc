#include "ops/matrices/batched_product.h"

#include "base/parallel.h"
#include "ops/matrices/gemm.h"
#include "ops/onednn.h"
#include "ops/onednn_defects.h"

namespace crema {

BatchedProductProblem GradientOfA(const BatchedProductProblem& p) {
  BatchedProductProblem gradient = p;
  gradient.m = p.transpose_a ? p.k : p.m;
  gradient.n = p.transpose_a ? p.m : p.k;
  gradient.k = p.n;
  gradient.transpose_a = p.transpose_a && p.transpose_b;
  gradient.transpose_b = p.transpose_a || !p.transpose_b;
  return gradient;
}

BatchedProductProblem GradientOfB(const BatchedProductProblem& p) {
  BatchedProductProblem gradient = p;
  gradient.m = p.transpose_b ? p.n : p.k;
  gradient.n = p.transpose_b ? p.k : p.n;
  gradient.k = p.m;
  gradient.transpose_a = p.transpose_b || !p.transpose_a;
  gradient.transpose_b = p.transpose_a && p.transpose_b;
  return gradient;
}

namespace {

using onednn::Desc;
using onednn::Sequence;
using onednn::Type;

// oneDNN shares out batches and parts of large matrices alike.
class OneDnnProduct final : public BatchedProductKernel {
 public:
  OneDnnProduct(const BatchedProductProblem& p, Type factors) {
    const auto factor = [&](bool of_a, Type type) {
      return of_a ? Matrices(p.batches, p.m, p.k, p.transpose_a, type)
                  : Matrices(p.batches, p.k, p.n, p.transpose_b, type);
    };
    const Desc left = factor(true, factors), right = factor(false, factors),
               result = Matrices(p.batches, p.m, p.n, false, Type::f32);
    const auto a = sequence_.External(factor(true, Type::f32)), b = sequence_.External(factor(false, Type::f32)),
               c = sequence_.External(result);
    const auto desc = onednn::MakeMatrixProduct(left, right, result, p.alpha, onednn::SoundProduct(p));
    sequence_.Add(desc, dnnl::matmul(desc),
                  {{DNNL_ARG_SRC, sequence_.Reordered(a, left)},
                   {DNNL_ARG_WEIGHTS, sequence_.Reordered(b, right)},
                   {DNNL_ARG_DST, c}});
    sequence_.Finish();
  }

  size_t workspace() const override { return sequence_.workspace_bytes(); }

  void Run(const float* a, const float* b, float* c, std::byte* workspace) override {
    const void* externals[] = {a, b, c};
    sequence_.Run(externals, workspace);
  }

 private:
  static Desc Matrices(int64_t batches, int64_t rows, int64_t columns, bool transposed, Type type) {
    const onednn::Dims strides =
        transposed ? onednn::Dims{rows * columns, 1, rows} : onednn::Dims{rows * columns, columns, 1};
    return Desc({batches, rows, columns}, type, strides);
  }

  Sequence sequence_;
};

template <Type factors>
std::unique_ptr<BatchedProductKernel> MakeOneDnn(const BatchedProductProblem& problem, const Device& device,
                                                 std::string* why_not) {
#if defined(__x86_64__)
  // Each number is converted for 2 m or 2 n operations. Measured on AVX-512 BF16 without AMX: 128 pairs of 197 x 64 by
  // 64 x 197 take 0.65 of the time in f32, 256 of 64 x 32 by 32 x 64 0.8 to 1, of 64 x 64 by 64 x 32 1 to 1.1.
  constexpr int64_t kOperationsThatPay = 64;
  if (factors == Type::bf16 && problem.factors != Factors::kBF16) {
    *why_not = "the product is wanted in f32";
  } else if (factors == Type::bf16 && 2 * problem.m * problem.n < kOperationsThatPay * (problem.m + problem.n)) {
    *why_not = "so small matrices do not pay for being converted";
  } else if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.batches == 0) {
    *why_not = "nothing to compute";
  } else {
    try {
      return std::make_unique<OneDnnProduct>(problem, factors);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      *why_not = error.message;
    }
  }
#else
  *why_not = "generates code for x86-64 only";
#endif
  return nullptr;
}

using Product = void (*)(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float* a, const float* b, float beta, float* c);

class ProductOfEach final : public BatchedProductKernel {
 public:
  ProductOfEach(const BatchedProductProblem& problem, Product product) : problem_(problem), product_(product) {}

  void Run(const float* a, const float* b, float* c, std::byte*) override {
    const auto& p = problem_;
    const auto run = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        product_(p.transpose_a, p.transpose_b, p.m, p.n, p.k, p.alpha, a + i * p.m * p.k, b + i * p.k * p.n, 0,
                 c + i * p.m * p.n);
      }
    };
    // Few large products take all threads each.
    if (p.batches < omp_get_max_threads()) return run(0, p.batches);
    ParallelFor(p.batches, 1, run);
  }

 private:
  BatchedProductProblem problem_;
  Product product_;
};

template <Product product>
std::unique_ptr<BatchedProductKernel> MakeOfEach(const BatchedProductProblem& problem, const Device& device,
                                                 std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
    return nullptr;
  }
  return std::make_unique<ProductOfEach>(problem, product);
}

constexpr KernelCandidate<BatchedProductKernel, BatchedProductProblem> kTable[] = {
    {"oneDNN bf16", MakeOneDnn<Type::bf16>},
    {"oneDNN", MakeOneDnn<Type::f32>},
    {"gemm", MakeOfEach<Gemm>},
    {"reference", MakeOfEach<GemmReference>},
};

}  // namespace

std::unique_ptr<BatchedProductKernel> MakeBatchedProduct(const BatchedProductProblem& problem, const Device& device,
                                                         KernelChoice* choice, std::string_view only) {
  return ChooseKernel(kTable, problem, device, only, choice);
}

}  // namespace crema
