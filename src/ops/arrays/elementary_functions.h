// Elementary functions of floats that loops over them can inline and vectorise; in CUDA kernels those of the toolkit.
#ifndef CREMA_OPS_ARRAYS_ELEMENTARY_FUNCTIONS_H_
#define CREMA_OPS_ARRAYS_ELEMENTARY_FUNCTIONS_H_

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

// 2^exponent for exponents of normal numbers; 0 for -127 and infinity for 128.
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

// The same for x in [-88, 89] or NaN, but 0 below 2^-126.5 and infinite above 2^127.5: fewer operations.
CREMA_FORMULA float ExpWithinNormal(float x) {
#if defined(__CUDA_ARCH__)
  return expf(x);
#else
  float remainder;
  const float power = PowerOfTwo(SplitExp(x, &remainder));
  return (1.0f + remainder) * power;
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

// log2(x) within 2e-12 of it for x that is neither 0 nor subnormal, infinite or NaN.
CREMA_FORMULA double LogOfTwoOfNormal(double x) {
  constexpr uint64_t kOne = 0x3ff0000000000000, kRootOfHalf = 0x3fe6a09e667f3bcd;  // the bits of 1 and of 0.5^0.5
  constexpr uint64_t kTwoToThe52 = 0x4330000000000000;
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint64_t biased = (bits + (kOne - kRootOfHalf)) >> 52;  // the exponent + 1023
  bits -= (biased - 1023) << 52;
  const uint64_t whole_bits = kTwoToThe52 | biased;
  double mantissa, whole;  // x = 2^(whole - 2^52 - 1023) * mantissa
  std::memcpy(&mantissa, &bits, sizeof mantissa);
  std::memcpy(&whole, &whole_bits, sizeof whole);
  const double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s;  // log(mantissa) = 2 atanh(s)
  double p = 1.0 / 13;
  p = p * square + 1.0 / 11;
  p = p * square + 1.0 / 9;
  p = p * square + 1.0 / 7;
  p = p * square + 1.0 / 5;
  p = p * square + 1.0 / 3;
  constexpr double kTwiceLogOfTwoE = 2.8853900817779268;
  return (whole - (0x1p52 + 1023)) + kTwiceLogOfTwoE * (s + s * square * p);
}

// 2^x within 3e-10 of it, relatively, for x in [-160, 160] or NaN.
CREMA_FORMULA double PowerOfTwo(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer, held in the low bits
  const double shifted = x + kRound;
  const double r = (x - (shifted - kRound)) * 0.69314718055994531;
  double p = 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// x^exponent within 1 unit in the last place, for finite exponents; zeros, infinities, NaN and x < 0 as with std::pow.
CREMA_FORMULA float Power(float x, float exponent) {
#if defined(__CUDA_ARCH__)
  return powf(x, exponent);
#else
  constexpr double kInfinity = __builtin_inf();
  constexpr float kNan = __builtin_nanf("");
  const double magnitude = __builtin_fabs(static_cast<double>(x));  // in double no float is subnormal
  const double usual = LogOfTwoOfNormal(magnitude);
  const double from_zero = magnitude > 0.0 ? usual : -kInfinity;
  const double logarithm = magnitude < kInfinity ? from_zero : magnitude;
  double power = static_cast<double>(exponent) * logarithm;
  power = power < -160.0 ? -160.0 : power;  // beyond these floats are 0 or infinite
  power = power > 160.0 ? 160.0 : power;
  const float raised = static_cast<float>(PowerOfTwo(power));
  // Of the exponent alone, so loops compute it once: as numbers, since conditions on both would keep compilers from
  // vectorising them. Floats from 2^24 on are even.
  const bool is_whole = __builtin_floorf(exponent) == exponent;
  const float half = 0.5f * exponent;
  const uint32_t sign = is_whole & (__builtin_floorf(half) != half) ? 0x80000000u : 0u;
  const float of_negative = is_whole ? 1.0f : kNan;
  const uint32_t kept = exponent == 0.0f ? 0u : 0xffffffffu, one = exponent == 0.0f ? 0x3f800000u : 0u;
  const float real = (x < 0.0f) & (magnitude < kInfinity) ? raised * of_negative : raised;
  uint32_t bits, of_x;
  std::memcpy(&bits, &real, sizeof bits);
  std::memcpy(&of_x, &x, sizeof of_x);
  bits = ((bits | (of_x & sign)) & kept) | one;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
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

// Beyond this distance from 0 normally distributed numbers are no more probable than floats can say.
inline constexpr float kNormalReach = 14.8f;
// NormalTail and its slope are made of two factors, one multiplied by 2^64 and one by 2^-64, so that neither leaves the
// range of normal numbers.
inline constexpr float kLowered = 0x1p-64f;

// 2^64 * e^(-a^2 / 2) for a in [0, kNormalReach] or NaN.
CREMA_FORMULA float RaisedBell(float a) {
  constexpr float kRound =
      12582912.0f + 64.0f + 127.0f;  // rounds as in SplitExp, and leaves the bits of 2^(64 + whole)
  const float x = a * -0.721347520f * a;
  const float shifted = x + kRound, r = x - (shifted - kRound);
  float p = 0x1.416b52p-13f;  // 2^r, with the least greatest error, 3e-9 of it
  p = p * r + 0x1.5f082ep-10f;
  p = p * r + 0x1.3b2de0p-7f;
  p = p * r + 0x1.c6af7cp-5f;
  p = p * r + 0x1.ebfbdcp-3f;
  p = p * r + 0x1.62e430p-1f;
  p = p * r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// 2^-64 * the probability beyond a for each of e^(-a^2 / 2), which is Mills' ratio / (2 pi)^0.5. The coefficients have
// the least greatest weighted error of such a quotient (Lawson's reweighted least squares, rounded one by one): within
// 2e-8 * max(1, a^2 / 2) of it up to 4.75, 1.1e-4 at the end.
CREMA_FORMULA float LoweredMillsRatio(float a) {
  float p = 0x1.8e2936p-7f * kLowered;
  p = p * a + 0x1.8f9afap-4f * kLowered;
  p = p * a + 0x1.48ef6ap-2f * kLowered;
  p = p * a + 0.5f * kLowered;
  float q = 0x1.f3945ap-6f;
  q = q * a + 0x1.f32f8ep-3f;
  q = q * a + 0x1.b04ed0p-1f;
  q = q * a + 0x1.70b9d2p+0f;
  q = q * a + 1.0f;
  return p / q;
}

// The probability that a normally distributed number is above a, for a in [0, kNormalReach] or NaN.
CREMA_FORMULA float NormalTail(float a) {
#if defined(__CUDA_ARCH__)
  return normcdff(-a);
#else
  return RaisedBell(a) * LoweredMillsRatio(a);
#endif
}

// The derivative of a * NormalTail(a): the tail less a times the density.
CREMA_FORMULA float SlopeOfNormalTailTimes(float a) {
#if defined(__CUDA_ARCH__)
  return normcdff(-a) - a * (0.398942280f * expf(-0.5f * a * a));
#else
  return RaisedBell(a) * (LoweredMillsRatio(a) - 0.398942280f * kLowered * a);
#endif
}

}  // namespace crema::formula

#endif  // CREMA_OPS_ARRAYS_ELEMENTARY_FUNCTIONS_H_
