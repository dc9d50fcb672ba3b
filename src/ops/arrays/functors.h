// Elementwise formulas, each written once: function objects on floats that the CPU's loops (ops/arrays/elementwise.h)
// and CUDA kernels both inline. A formula's gradient takes the gradient of the output first, then what else it needs.
#ifndef CREMA_OPS_ARRAYS_FUNCTORS_H_
#define CREMA_OPS_ARRAYS_FUNCTORS_H_

#include "ops/arrays/elementary_functions.h"

namespace crema::formula {

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

struct Sigmoid {
  CREMA_FORMULA float operator()(float x) const { return 1.0f / Divisor(Near(x)); }
  // Beyond, it is 0 and 1.
  CREMA_FORMULA static float Near(float x) { return Clip{-89.0f, 88.0f}(x); }
  CREMA_FORMULA static float Divisor(float near) { return 1.0f + ExpWithinNormal(-near); }
  // x times the sigmoid of z: of an infinite x nothing where that is 0.
  CREMA_FORMULA static float Share(float x, float z) {
    const float near = Near(z);
    const float whole = near == -89.0f ? 0.0f : x;
    return whole / Divisor(near);
  }
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

// x times a share of it that falls to 0 faster than x grows: of -infinity nothing.
CREMA_FORMULA float ShareOf(float x, float share) {
  const float part = x * share;
  return share == 0.0f ? 0.0f : part;
}

struct Swish {
  float beta;
  CREMA_FORMULA float operator()(float x) const { return Sigmoid::Share(x, beta * x); }
};
// From the input.
struct SwishGradient {
  float beta;
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float z = Sigmoid::Near(beta * x), sigmoid = 1.0f / Sigmoid::Divisor(z);
    return dy * (sigmoid + z * sigmoid * (1.0f - sigmoid));
  }
};

// x, of which the share rises along a line from -3 to 3.
struct HardSwish {
  CREMA_FORMULA float operator()(float x) const { return ShareOf(x, Relu6()(x + 3.0f) * 0.166666672f); }
};
// From the input.
struct HardSwishGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float rising = x * 0.333333343f + 0.5f;
    const float slope = x > -3.0f || x != x ? rising : 0.0f;
    return dy * (x < 3.0f || x != x ? slope : 1.0f);
  }
};

// tanh(log(1 + w)) = d / (d + 2) with d = w (w + 2).
struct Mish {
  CREMA_FORMULA float operator()(float x) const {
    const float w = PowerOf(x), d = w * (w + 2.0f);
    return ShareOf(x, d / (d + 2.0f));
  }
  // e^x, of which the square is finite; the share is 1 long before.
  CREMA_FORMULA static float PowerOf(float x) { return Exp(x > 20.0f ? 20.0f : x); }
};
// From the input.
struct MishGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float near = Clip{-104.0f, 104.0f}(x), w = Mish::PowerOf(near), d = w * (w + 2.0f),
                inverse = 1.0f / (d + 2.0f);
    return dy * (d * inverse + near * 4.0f * w * (w + 1.0f) * inverse * inverse);
  }
};

// Of x above 0 all but the tail's share, below it the tail's share.
struct Gelu {
  CREMA_FORMULA float operator()(float x) const {
    const float a = Distance(x);
    return Relu()(x) - a * NormalTail(a);
  }
  // From 0, where the tail is not 0.
  CREMA_FORMULA static float Distance(float x) {
    const float a = __builtin_fabsf(x);
    return a > kNormalReach ? kNormalReach : a;
  }
};
// From the input.
struct GeluGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float slope = SlopeOfNormalTailTimes(Gelu::Distance(x));
    return dy * (x < 0.0f ? slope : 1.0f - slope);
  }
};

// (1 + tanh(z)) / 2 = sigmoid(2 z).
struct GeluTanh {
  CREMA_FORMULA float operator()(float x) const { return Sigmoid::Share(x, 1.59576912f * (x + 0.044715f * x * x * x)); }
};
// From the input.
struct GeluTanhGradient {
  CREMA_FORMULA float operator()(float dy, float x) const {
    const float sigmoid = Sigmoid()(1.59576912f * (x + 0.044715f * x * x * x));
    const float near = Clip{-16.0f, 16.0f}(x);
    const float slope = 1.59576912f * (1.0f + 0.134145f * near * near);
    return dy * (sigmoid + near * slope * sigmoid * (1.0f - sigmoid));
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

struct PowerOfLinear {
  float scale, shift, exponent;
  CREMA_FORMULA float operator()(float x) const { return Power(scale * x + shift, exponent); }
};
struct PowerOfLinearGradient {
  float scale, shift, exponent, factor;  // the exponent of the derivative, and what it is multiplied by
  CREMA_FORMULA float operator()(float dy, float x) const { return dy * (factor * Power(scale * x + shift, exponent)); }
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

#endif  // CREMA_OPS_ARRAYS_FUNCTORS_H_
