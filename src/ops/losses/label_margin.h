// Margins between classes: the score that an item's own class gets is made smaller while training, so that classes come
// to lie further apart than telling them would need. Labels are class numbers held as floats, one for each row, and
// must be good (FindBadLabel). f32.
#ifndef CREMA_OPS_LOSSES_LABEL_MARGIN_H_
#define CREMA_OPS_LOSSES_LABEL_MARGIN_H_

#include <cstdint>

namespace crema {

struct LabelMargin {
  enum class Kind {
    kAdded,       // x + amount where x > -amount (Wang et al., "Additive Margin Softmax", 2018)
    kAngleAdded,  // of x = cos(a): cos(a + amount), beyond pi x - amount * sin(amount) (Deng et al., "ArcFace", 2019)
    // Of x = |v| cos(a): (lambda * x + |v| psi(a)) / (1 + lambda), where psi is cos(times * a), but goes on falling
    // (Liu et al., "SphereFace", 2017).
    kAngleTimes,
  };

  int64_t rows = 1, classes = 1;
  Kind kind = Kind::kAdded;
  float amount = 0;
  int32_t times = 1;  // 1 to 4
  // lambda is max(least, base * (1 + gamma * (first + pass))^-power).
  double base = 0, gamma = 0, power = 1, least = 0;
  double first = 1;
};

// What ApplyMargin says beside the scores.
struct MarginTape {
  float* slope = nullptr;   // of each row: the derivative of the own class's score by what it was
  float* pull = nullptr;    // kAngleTimes: and by the vector, as a multiple of it
  float* lambda = nullptr;  // kAngleTimes: one number; may be null
};

// Changes the score of each row's own class. squares: of the length of each row's vector, for kAngleTimes. On the
// tape slope and pull may both be null.
void ApplyMargin(const LabelMargin& margin, uint64_t pass, const float* label, const float* squares, float* scores,
                 const MarginTape& tape);
// Turns gradients of what ApplyMargin made into those of what was there, but for what goes by the vectors: their
// multiples are written to `multiples`, one for each row, null with other kinds than kAngleTimes.
void MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape, float* gradient,
                    float* multiples);

// y[row] += factor[row] * x[row], rows of `width`. Threaded.
void AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_LABEL_MARGIN_H_
