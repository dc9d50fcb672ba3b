#include "ops/matrices/batched_product.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "comparison.h"

namespace crema {
namespace {

std::string Text(const BatchedProductProblem& p) {
  return std::to_string(p.batches) + " times " + std::to_string(p.m) + " x " + std::to_string(p.k) + " by " +
         std::to_string(p.k) + " x " + std::to_string(p.n) + (p.transpose_a ? ", transpose_a" : "") +
         (p.transpose_b ? ", transpose_b" : "");
}

// Element by element, of what bf16 holds exactly.
struct Numbers {
  explicit Numbers(const BatchedProductProblem& p)
      : a(Widened(Rounded(RandomValues(p.batches * p.m * p.k, 1)))),
        b(Widened(Rounded(RandomValues(p.batches * p.k * p.n, 2)))) {
    for (int64_t i = 0; i < p.batches; ++i) {
      for (int64_t row = 0; row < p.m; ++row) {
        for (int64_t column = 0; column < p.n; ++column) {
          double sum = 0;
          for (int64_t l = 0; l < p.k; ++l) {
            sum += double{a[i * p.m * p.k + (p.transpose_a ? l * p.m + row : row * p.k + l)]} *
                   b[i * p.k * p.n + (p.transpose_b ? column * p.k + l : l * p.n + column)];
          }
          c.push_back(static_cast<float>(p.alpha * sum));
        }
      }
    }
  }
  std::vector<float> a, b, c;
};

std::vector<float> Run(const BatchedProductProblem& p, const char* name, const Numbers& numbers) {
  KernelChoice choice;
  const auto kernel = MakeBatchedProduct(p, CpuDevice(), &choice, name);
  if (!kernel) {
    ADD_FAILURE() << name << " does not take " << Text(p) << ": " << testing::PrintToString(choice.skipped);
    return {};
  }
  EXPECT_EQ(choice.kernel, name);
  const PoisonedWorkspace workspace(kernel->workspace());
  std::vector<float> c = Poison(p.batches * p.m * p.n + 2);
  kernel->Run(numbers.a.data(), numbers.b.data(), c.data() + 1, workspace.data());
  EXPECT_TRUE(std::isnan(c.front()) && std::isnan(c.back())) << "wrote outside of " << Text(p);
  return {c.begin() + 1, c.end() - 1};
}

const BatchedProductProblem kProblems[] = {
    {.batches = 1, .m = 1, .n = 1, .k = 1},      {.batches = 9, .m = 1, .n = 7, .k = 5},
    {.batches = 5, .m = 6, .n = 1, .k = 17},     {.batches = 3, .m = 16, .n = 16, .k = 16},
    {.batches = 12, .m = 49, .n = 33, .k = 16},  {.batches = 2, .m = 65, .n = 129, .k = 70},
    {.batches = 1, .m = 200, .n = 150, .k = 64}, {.batches = 2, .m = 64, .n = 64, .k = 2048}};

void ExpectTheProducts(const char* name, Factors factors, int64_t least) {
  const int before = omp_get_max_threads();
  for (BatchedProductProblem p : kProblems) {
    if (std::min(p.m, p.n) < least) continue;
    p.factors = factors;
    for (int form = 0; form < 8; ++form) {
      p.transpose_a = form & 1;
      p.transpose_b = form & 2;
      p.alpha = form & 4 ? 0.125f : 1.0f;
      const Numbers numbers(p);
      for (const int threads : {1, 3, 8}) {
        omp_set_num_threads(threads);
        ExpectClose(numbers.c, Run(p, name, numbers), 1e-5f, Text(p));
      }
    }
  }
  omp_set_num_threads(before);
}

TEST(BatchedProduct, GemmMultipliesEachPair) { ExpectTheProducts("gemm", Factors::kF32, 1); }
TEST(BatchedProduct, ReferenceMultipliesEachPair) { ExpectTheProducts("reference", Factors::kF32, 1); }

#if defined(__x86_64__)
TEST(BatchedProduct, OneDnnMultipliesEachPair) { ExpectTheProducts("oneDNN", Factors::kF32, 1); }

TEST(BatchedProduct, OneDnnIsChosen) {
  KernelChoice choice;
  MakeBatchedProduct({.batches = 2, .m = 64, .n = 64, .k = 32}, CpuDevice(), &choice);
  EXPECT_EQ(choice.kernel, "oneDNN");
}
#endif

TEST(BatchedProduct, InBFloat16AddsInF32) {
  const BatchedProductProblem any{.m = 64, .n = 64, .k = 8, .factors = Factors::kBF16};
  if (!MakeBatchedProduct(any, CpuDevice(), nullptr, "oneDNN bf16")) {
    GTEST_SKIP() << "oneDNN multiplies no bf16 numbers on this CPU";
  }
  ExpectTheProducts("oneDNN bf16", Factors::kBF16, 64);
}

TEST(BatchedProduct, IsInBFloat16OnlyWhereThatIsAskedForAndPays) {
  KernelChoice choice;
  EXPECT_EQ(MakeBatchedProduct({.m = 64, .n = 64, .k = 64}, CpuDevice(), &choice, "oneDNN bf16"), nullptr);
  const BatchedProductProblem small{.m = 64, .n = 32, .k = 64, .factors = Factors::kBF16};
  EXPECT_EQ(MakeBatchedProduct(small, CpuDevice(), &choice, "oneDNN bf16"), nullptr);
}

TEST(BatchedProduct, OfNoPairsIsNothing) {
  const auto kernel = MakeBatchedProduct({.batches = 0, .m = 2, .n = 3, .k = 4}, CpuDevice(), nullptr);
  ASSERT_NE(kernel, nullptr);
  kernel->Run(nullptr, nullptr, nullptr, nullptr);
}

// C = alpha op(A) op(B): the derivative of the sum of dC * C by each element of A and B, which is linear in each.
TEST(BatchedProduct, GradientsAreProducts) {
  for (int form = 0; form < 4; ++form) {
    const BatchedProductProblem p{.batches = 2,
                                  .m = 3,
                                  .n = 4,
                                  .k = 5,
                                  .transpose_a = (form & 1) != 0,
                                  .transpose_b = (form & 2) != 0,
                                  .alpha = 0.5f};
    const Numbers numbers(p);
    const std::vector<float> dc = RandomValues(p.batches * p.m * p.n, 3);
    const auto run = [&](const BatchedProductProblem& problem, const std::vector<float>& a,
                         const std::vector<float>& b) {
      const auto kernel = MakeBatchedProduct(problem, CpuDevice(), nullptr, "reference");
      std::vector<float> c = Poison(problem.batches * problem.m * problem.n);
      kernel->Run(a.data(), b.data(), c.data(), nullptr);
      return c;
    };
    // With one element of A or B set to 1, the others to 0.
    const auto derivative = [&](size_t elements, bool of_a) {
      std::vector<float> result;
      for (size_t i = 0; i < elements; ++i) {
        std::vector<float> unit(elements);
        unit[i] = 1;
        const std::vector<float> c = of_a ? run(p, unit, numbers.b) : run(p, numbers.a, unit);
        double sum = 0;
        for (size_t j = 0; j < c.size(); ++j) sum += double{c[j]} * dc[j];
        result.push_back(static_cast<float>(sum));
      }
      return result;
    };
    const auto da = p.transpose_a ? run(GradientOfA(p), numbers.b, dc) : run(GradientOfA(p), dc, numbers.b);
    const auto db = p.transpose_b ? run(GradientOfB(p), dc, numbers.a) : run(GradientOfB(p), numbers.a, dc);
    ExpectClose(derivative(numbers.a.size(), true), da, 1e-5f, "gradient of A, " + Text(p));
    ExpectClose(derivative(numbers.b.size(), false), db, 1e-5f, "gradient of B, " + Text(p));
  }
}

}  // namespace
}  // namespace crema
