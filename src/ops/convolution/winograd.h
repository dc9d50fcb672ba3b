// Winograd's minimal filtering (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015): F(m, r)
// computes m neighbouring outputs of a kernel of r taps from t = m + r - 1 inputs, with t products where the definition
// takes m r; of two axes t^2 for m^2 r^2, as 36 for 144 in F(4 x 4, 3 x 3).
//
// Outputs, taps and inputs are coefficients of polynomials, which products know by their values at t points: of each
// axis y = A^T [(G g) * (B^T d)], with A and G the values at the points, G's divided by a factor for each. Gradients
// are of the same form: G^T takes those of products to the taps, A outputs' to the products.
#ifndef CREMA_OPS_CONVOLUTION_WINOGRAD_H_
#define CREMA_OPS_CONVOLUTION_WINOGRAD_H_

#include "base/multiversion.h"

namespace crema {

// 0, 1, -1 and infinity: with errors as of the definition.
struct FourPoints {
  static constexpr int kPoints = 4;
  static constexpr float kFactors[4] = {1, 0.5f, 0.5f, 1};

  // B^T d
  template <typename F>
  static CREMA_INLINE void Source(const F (&d)[4], F (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[2] + d[1];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  // The values of a polynomial of kCoefficients (2 or 3) at the points.
  template <int kCoefficients, typename F>
  static CREMA_INLINE void Evaluate(const F (&c)[kCoefficients], F (&values)[4]) {
    F even = c[0];
    if constexpr (kCoefficients > 2) even += c[2];
    values[0] = c[0];
    values[1] = even + c[1];
    values[2] = even - c[1];
    values[3] = c[kCoefficients - 1];
  }
  // The transpose of that.
  template <int kCoefficients, typename F>
  static CREMA_INLINE void Transposed(const F (&values)[4], F (&c)[kCoefficients]) {
    const F even = values[1] + values[2];
    c[0] = values[0] + even;
    c[1] = values[1] - values[2];
    if constexpr (kCoefficients > 2) c[2] = even;
    c[kCoefficients - 1] += values[3];
  }
};

// 0, 3/4, -3/4, 3/2, -3/2 and infinity: half the errors of 0, 1, -1, 2, -2 (Barabasz and others, "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020), some five times the definition's.
struct SixPoints {
  static constexpr int kPoints = 6;
  static constexpr float kA = 0.75f, kB = 1.5f, kA2 = kA * kA, kB2 = kB * kB;
  // 1 / the product of a point's distances from the others.
  static constexpr float kFactorA = 1 / (2 * kA2 * (kA2 - kB2)), kFactorB = 1 / (2 * kB2 * (kB2 - kA2));
  static constexpr float kFactors[6] = {1 / (kA2 * kB2), kFactorA, kFactorA, kFactorB, kFactorB, 1};

  template <typename F>
  static CREMA_INLINE void Source(const F (&d)[6], F (&v)[6]) {
    const F even_a = d[4] - kB2 * d[2], odd_a = kA * (d[3] - kB2 * d[1]);
    const F even_b = d[4] - kA2 * d[2], odd_b = kB * (d[3] - kA2 * d[1]);
    v[0] = kA2 * kB2 * d[0] + (d[4] - (kA2 + kB2) * d[2]);
    v[1] = even_a + odd_a;
    v[2] = even_a - odd_a;
    v[3] = even_b + odd_b;
    v[4] = even_b - odd_b;
    v[5] = kA2 * kB2 * d[1] + (d[5] - (kA2 + kB2) * d[3]);
  }
  // kCoefficients: 2 to 5.
  template <int kCoefficients, typename F>
  static CREMA_INLINE void Evaluate(const F (&c)[kCoefficients], F (&values)[6]) {
    F even_a = c[0], even_b = c[0], odd_a = c[1], odd_b = c[1];
    if constexpr (kCoefficients > 2) {
      F a = c[2], b = c[2];
      if constexpr (kCoefficients > 4) {
        a += kA2 * c[4];
        b += kB2 * c[4];
      }
      even_a += kA2 * a;
      even_b += kB2 * b;
    }
    if constexpr (kCoefficients > 3) {
      odd_a += kA2 * c[3];
      odd_b += kB2 * c[3];
    }
    values[0] = c[0];
    values[1] = even_a + kA * odd_a;
    values[2] = even_a - kA * odd_a;
    values[3] = even_b + kB * odd_b;
    values[4] = even_b - kB * odd_b;
    values[5] = c[kCoefficients - 1];
  }
  template <int kCoefficients, typename F>
  static CREMA_INLINE void Transposed(const F (&values)[6], F (&c)[kCoefficients]) {
    const F even_a = values[1] + values[2], odd_a = values[1] - values[2];
    const F even_b = values[3] + values[4], odd_b = values[3] - values[4];
    c[0] = values[0] + even_a + even_b;
    c[1] = kA * odd_a + kB * odd_b;
    if constexpr (kCoefficients > 2) c[2] = kA2 * even_a + kB2 * even_b;
    if constexpr (kCoefficients > 3) c[3] = kA * kA2 * odd_a + kB * kB2 * odd_b;
    if constexpr (kCoefficients > 4) c[4] = kA2 * kA2 * even_a + kB2 * kB2 * even_b;
    c[kCoefficients - 1] += values[5];
  }
};

// One axis of each transform, from kIn to kOut vectors.
template <typename Points, int kOutputs>
struct Winograd {
  static constexpr int kPoints = Points::kPoints, kTaps = kPoints - kOutputs + 1;

  struct Source {
    static constexpr int kIn = kPoints, kOut = kPoints;
    template <typename F>
    static CREMA_INLINE void Run(const F (&d)[kIn], F (&v)[kOut]) {
      Points::Source(d, v);
    }
  };
  struct Kernel {
    static constexpr int kIn = kTaps, kOut = kPoints;
    template <typename F>
    static CREMA_INLINE void Run(const F (&g)[kIn], F (&u)[kOut]) {
      Points::template Evaluate<kTaps>(g, u);
      for (int i = 0; i < kOut; ++i) u[i] *= Points::kFactors[i];
    }
  };
  struct Destination {
    static constexpr int kIn = kPoints, kOut = kOutputs;
    template <typename F>
    static CREMA_INLINE void Run(const F (&products)[kIn], F (&y)[kOut]) {
      Points::template Transposed<kOutputs>(products, y);
    }
  };
  struct DestinationGradient {
    static constexpr int kIn = kOutputs, kOut = kPoints;
    template <typename F>
    static CREMA_INLINE void Run(const F (&dy)[kIn], F (&products)[kOut]) {
      Points::template Evaluate<kOutputs>(dy, products);
    }
  };
  struct KernelGradient {
    static constexpr int kIn = kPoints, kOut = kTaps;
    template <typename F>
    static CREMA_INLINE void Run(const F (&du)[kIn], F (&dg)[kOut]) {
      F scaled[kIn];
      for (int i = 0; i < kIn; ++i) scaled[i] = du[i] * Points::kFactors[i];
      Points::template Transposed<kTaps>(scaled, dg);
    }
  };
};

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_WINOGRAD_H_
