// Arrays of random numbers: element 4 i + k comes from word k of counter i (base/random.h).
#ifndef CREMA_GRAPH_RANDOM_FILL_H_
#define CREMA_GRAPH_RANDOM_FILL_H_

#include <cstdint>

#include "base/random.h"

namespace crema {

// Evenly spread over [min, max), 24 bits each.
void FillUniform(const RandomStream& random, float min, float max, int64_t n, float* values);

// Box and Muller's method: words a and b make the two numbers mean + std sqrt(-2 ln u) cos(2 pi v), and sin, with
// u = (a + 1/2) / 2^32 and v = b / 2^32. They are those that the C library's functions give in double precision,
// rounded to float.
void FillGaussian(const RandomStream& random, float mean, float std, int64_t n, float* values);

}  // namespace crema

#endif  // CREMA_GRAPH_RANDOM_FILL_H_
