// Elementwise formulas, each written once: function objects on floats that the CPU's loops (ops/elementwise.h) and CUDA
// kernels both inline. A formula's gradient takes the gradient of the output first, then what else it needs.
#ifndef CREMA_OPS_FUNCTORS_H_
#define CREMA_OPS_FUNCTORS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/multiversion.h"

#define CREMA_FORMULA CREMA_HOST_DEVICE CREMA_INLINE

namespace crema::formula {

// Splits exp(x) = 2^exponent * (1 + *remainder) with |remainder| < 0.42; x must lie in [-104, 89] or be NaN.
CREMA_FORMULA int32_t SplitExp(float x, float* remainder) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
  const float shifted = x * 1.44269504f + kRound;
  const float whole = shifted - kRound;
  float r = x - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  float p = 0x1.a12680p-13f;  // (e^r - 1 - r) / r^2, interpolated at Chebyshev nodes
  p = p * r + 0x1.6d44e4p-10f;
  p = p * r + 0x1.1110e0p-7f;
  p = p * r + 0x1.5554e8p-5f;
  p = p * r + 0x1.555556p-3f;
  p = p * r + 0.5f;
  *remainder = r + r * r * p;
  uint32_t bits, base;
  std::memcpy(&bits, &shifted, sizeof bits);
  std::memcpy(&base, &kRound, sizeof base);
  return static_cast<int32_t>(bits - base);
}

// 2^exponent for exponents of normal numbers.
CREMA_FORMULA float PowerOfTwo(int32_t exponent) {
  const uint32_t bits = (static_cast<uint32_t>(exponent) + 127u) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// e^x within 1 unit in the last place for normal results; overflows to infinity and underflows to zero as std::exp
// does.
CREMA_FORMULA float Exp(float x) {
#if defined(__CUDA_ARCH__)
  return expf(x);
#else
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  float remainder;
  const int32_t exponent = SplitExp(x, &remainder);
  const int32_t half = exponent >> 1;  // in two steps, since 2^exponent itself may be out of range
  return (1.0f + remainder) * PowerOfTwo(half) * PowerOfTwo(exponent - half);
#endif
}

// e^x - 1 within 2 units in the last place for x in [-20, 20] or NaN; below that it rounds to -1 anyway.
CREMA_FORMULA float ExpMinusOneWithin20(float x) {
#if defined(__CUDA_ARCH__)
  return expm1f(x);
#else
  float remainder;
  const float power = PowerOfTwo(SplitExp(x, &remainder));
  return power * remainder + (power - 1.0f);  // without cancellation
#endif
}

// e^x - 1 for x <= 0.
CREMA_FORMULA float ExpMinusOneBelowZero(float x) { return ExpMinusOneWithin20(x < -20.0f ? -20.0f : x); }

// tanh(x) within 3 units in the last place.
CREMA_FORMULA float Tanh(float x) {
#if defined(__CUDA_ARCH__)
  return tanhf(x);
#else
  float twice = 2.0f * __builtin_fabsf(x);
  twice = twice > 20.0f ? 20.0f : twice;
  const float minus_one = ExpMinusOneWithin20(twice);
  return __builtin_copysignf(minus_one / (minus_one + 2.0f), x);
#endif
}

// log(x) within 1 unit in the last place for normal x.
CREMA_FORMULA float LogOfNormal(float x) {
#if defined(__CUDA_ARCH__)
  return logf(x);
#else
  constexpr uint32_t kRootOfHalf = 0x3f3504f3;  // the bits of 0.5^0.5
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const int32_t exponent = static_cast<int32_t>(bits - kRootOfHalf) >> 23;
  bits -= static_cast<uint32_t>(exponent) << 23;
  float f;  // x = 2^exponent * (1 + f)
  std::memcpy(&f, &bits, sizeof f);
  f -= 1.0f;
  float p = 0x1.1d8ea6p-4f;  // (log(1 + f) - f + f^2 / 2) / f^3, interpolated at Chebyshev nodes
  p = p * f - 0x1.d635bcp-4f;
  p = p * f + 0x1.dea282p-4f;
  p = p * f - 0x1.fcf4c6p-4f;
  p = p * f + 0x1.23d21ap-3f;
  p = p * f - 0x1.555b4ap-3f;
  p = p * f + 0x1.999d5ap-3f;
  p = p * f - 0x1.fffffcp-3f;
  p = p * f + 0x1.555554p-2f;
  const float whole = static_cast<float>(exponent);
  const float r = (p * f - 0.5f) * (f * f) + whole * -2.12194440e-4f;
  return (f + r) + whole * 0.693359375f;
#endif
}

// log(x) within 1 unit in the last place, 2 where x is below the normal range; -infinity at 0 and NaN below, as
// std::log.
CREMA_FORMULA float Log(float x) {
#if defined(__CUDA_ARCH__)
  return logf(x);
#else
  constexpr float kInfinity = __builtin_inff(), kNan = __builtin_nanf("");
  const bool is_tiny = x < 0x1p-126f;
  const float raised = x * 0x1p24f, lowered = is_tiny ? 24 * 0.693147181f : 0.0f;
  const float logarithm = LogOfNormal(is_tiny ? raised : x) - lowered;
  const float below = x == 0.0f ? -kInfinity : kNan;
  const float above = x == kInfinity ? kInfinity : logarithm;
  return x > 0.0f ? above : below;
#endif
}

// log(1 + x) within 2 units in the last place for x in [0, 1] or NaN.
CREMA_FORMULA float LogOfOneAnd(float x) {
#if defined(__CUDA_ARCH__)
  return log1pf(x);
#else
  const float sum = 1.0f + x;
  return LogOfNormal(sum) + (x - (sum - 1.0f)) / sum;
#endif
}

struct Relu {
  CREMA_FORMULA float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
// From the output: it is positive exactly where the input was.
struct ReluGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return y > 0.0f ? dy : 0.0f; }
};

struct LeakyRelu {
  float slope;
  CREMA_FORMULA float operator()(float x) const {
    const float scaled = x * slope;
    return x < 0.0f ? scaled : x;
  }
};
// From the input, or for slopes >= 0 from the output.
struct LeakyReluGradient {
  float slope;
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (x > 0.0f ? 1.0f : slope); }
};

// Of a PReLU, whose slopes differ between elements.
struct Prelu {
  CREMA_FORMULA float operator()(float x, float slope) const { return LeakyRelu{slope}(x); }
};
// From the input.
struct PreluGradient {
  CREMA_FORMULA float operator()(float dy, float x, float slope) const { return LeakyReluGradient{slope}(dy, x); }
};
// What one element adds to the gradient of its slope.
struct SlopeGradient {
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (x > 0.0f ? 0.0f : x); }
};

struct Relu6 {
  CREMA_FORMULA float operator()(float x) const {
    const float positive = x < 0.0f ? 0.0f : x;
    return positive > 6.0f ? 6.0f : positive;
  }
};
// From the output: it lies between the limits exactly where the input did.
struct Relu6Gradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return ((y > 0.0f) & (y < 6.0f)) ? dy : 0.0f; }
};

struct Sigmoid {
  CREMA_FORMULA float operator()(float x) const { return 1.0f / (1.0f + Exp(-x)); }
};
struct SigmoidGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return dy * y * (1.0f - y); }
};

struct HyperbolicTangent {
  CREMA_FORMULA float operator()(float x) const { return Tanh(x); }
};
struct HyperbolicTangentGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return dy * (1.0f - y * y); }
};

struct Swish {
  float beta;
  CREMA_FORMULA float operator()(float x) const { return x * Sigmoid()(beta * x); }
};
// From the input.
struct SwishGradient {
  float beta;
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float sigmoid = Sigmoid()(beta * x);
    return dy * (sigmoid + beta * x * sigmoid * (1.0f - sigmoid));
  }
};

// The probability that a normally distributed number is at most x, within 4e-7 of it where it is above 1e-6.
CREMA_FORMULA float NormalCdf(float x) {
#if defined(__CUDA_ARCH__)
  return normcdff(x);
#else
  constexpr float kFitted = 4.5f;
  const float whole = __builtin_fabsf(x) * 0.707106781f;
  const float a = whole > kFitted ? kFitted : whole;
  float p = 0x1.6648d2p-27f;  // -log(erfc(a)) / a, interpolated at Chebyshev nodes
  p = p * a - 0x1.62931ep-22f;
  p = p * a + 0x1.3d3910p-18f;
  p = p * a - 0x1.527f00p-15f;
  p = p * a + 0x1.db5d40p-13f;
  p = p * a - 0x1.bfd8c2p-11f;
  p = p * a + 0x1.fb7106p-10f;
  p = p * a - 0x1.736772p-12f;
  p = p * a - 0x1.388128p-6f;
  p = p * a + 0x1.a4e90ap-4f;
  p = p * a + 0x1.45f328p-1f;
  p = p * a + 0x1.20dd74p+0f;
  const float tail = 0.5f * Exp(-p * a - (whole - a) * (whole + a));  // beyond, it falls as exp(-whole^2)
  return x < 0.0f ? tail : 1.0f - tail;
#endif
}

struct Gelu {
  CREMA_FORMULA float operator()(float x) const { return x * NormalCdf(x); }
};
// From the input.
struct GeluGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float density = 0.398942280f * Exp(-0.5f * x * x);
    return dy * (NormalCdf(x) + x * density);
  }
};

// (1 + tanh(z)) / 2 = sigmoid(2 z).
struct GeluTanh {
  CREMA_FORMULA float operator()(float x) const { return x * Sigmoid()(1.59576912f * (x + 0.044715f * x * x * x)); }
};
// From the input.
struct GeluTanhGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float sigmoid = Sigmoid()(1.59576912f * (x + 0.044715f * x * x * x));
    const float slope = 1.59576912f * (1.0f + 0.134145f * x * x);
    return dy * (sigmoid + x * slope * sigmoid * (1.0f - sigmoid));
  }
};

struct Elu {
  float alpha;
  CREMA_FORMULA float operator()(float x) const {
    const float bent = alpha * ExpMinusOneBelowZero(x < 0.0f ? x : 0.0f);
    return x < 0.0f ? bent : x;
  }
};
// From the output, for alpha >= 0.
struct EluGradient {
  float alpha;
  CREMA_FORMULA float operator()(float dy, float y) const {
    const float slope = y + alpha;
    return dy * (y > 0.0f ? 1.0f : slope);
  }
};
struct EluGradientOfInput {
  float alpha;
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float slope = alpha * Exp(x);
    return dy * (x > 0.0f ? 1.0f : slope);
  }
};

struct Absolute {
  CREMA_FORMULA float operator()(float x) const { return __builtin_fabsf(x); }
};
// From the input.
struct AbsoluteGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float below = x < 0.0f ? -dy : 0.0f;
    return x > 0.0f ? dy : below;
  }
};

struct Bnll {
  CREMA_FORMULA float operator()(float x) const {
    const float above = x < 0.0f ? 0.0f : x;
    return above + LogOfOneAnd(Exp(-__builtin_fabsf(x)));
  }
};
// From the output: 1 - e^-y is the sigmoid of the input.
struct BnllGradient {
  CREMA_FORMULA float operator()(float dy, float y) const { return -dy * ExpMinusOneBelowZero(-y); }
};

struct Linear {
  float scale, shift;
  CREMA_FORMULA float operator()(float x) const { return scale * x + shift; }
};
struct LinearGradient {
  float scale;
  CREMA_FORMULA float operator()(float dy, float) const { return scale * dy; }
};

struct Square {
  float scale, shift;
  CREMA_FORMULA float operator()(float x) const {
    const float base = scale * x + shift;
    return base * base;
  }
};
// From the input, as the next ones.
struct SquareGradient {
  float scale, shift;
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (2.0f * scale * (scale * x + shift)); }
};

// By the math library, and so not vectorised on a CPU: e^(exponent * log(base)) is too rough in floats.
struct Power {
  float scale, shift, exponent;
  CREMA_FORMULA float operator()(float x) const { return powf(scale * x + shift, exponent); }
};
struct PowerGradient {
  float scale, shift, exponent, factor;  // the exponent of the derivative, and what it is multiplied by
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (factor * powf(scale * x + shift, exponent)); }
};

struct Exponential {
  float scale, factor;
  CREMA_FORMULA float operator()(float x) const { return factor * Exp(scale * x); }
};
// From the output.
struct ExponentialGradient {
  float scale;
  CREMA_FORMULA float operator()(float dy, float y) const { return dy * y * scale; }
};

struct Logarithm {
  float scale, shift, factor;
  CREMA_FORMULA float operator()(float x) const { return factor * Log(scale * x + shift); }
};
// From the input, as the next one.
struct LogarithmGradient {
  float scale, shift, factor;  // that of the logarithm times the scale
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * factor / (scale * x + shift); }
};

struct Clip {
  float least, most;
  CREMA_FORMULA float operator()(float x) const {
    const float raised = x < least ? least : x;
    return raised > most ? most : raised;
  }
};
struct ClipGradient {
  float least, most;
  CREMA_FORMULA float operator()(float dy, float x) const { return ((x >= least) & (x <= most)) ? dy : 0.0f; }
};

struct Threshold {
  float limit;
  CREMA_FORMULA float operator()(float x) const { return x > limit ? 1.0f : 0.0f; }
};

struct Multiple {
  float factor;
  CREMA_FORMULA float operator()(float x) const { return factor * x; }
};

struct WeightedSum {
  float a_weight, b_weight;
  CREMA_FORMULA float operator()(float a, float b) const { return a_weight * a + b_weight * b; }
};

struct Sum {
  CREMA_FORMULA float operator()(float a, float b) const { return a + b; }
};

struct SumRelu {
  CREMA_FORMULA float operator()(float a, float b) const { return Relu()(a + b); }
};

struct Maximum {
  CREMA_FORMULA float operator()(float a, float b) const { return a > b ? a : b; }
};

struct ConstantTimes {
  float value;
  const float* factor;  // in the device's memory
  CREMA_FORMULA float operator()() const { return value * *factor; }
};

struct Constant {
  float value;
  CREMA_FORMULA float operator()() const { return value; }
  CREMA_FORMULA float operator()(float) const { return value; }
};

struct Product {
  CREMA_FORMULA float operator()(float a, float b) const { return a * b; }
};
// Gradient of a product with respect to one factor, by division: undefined where the factor is zero.
struct QuotientGradient {
  CREMA_FORMULA float operator()(float dy, float product, float factor) const { return dy * (product / factor); }
};

}  // namespace crema::formula

#endif  // CREMA_OPS_FUNCTORS_H_
