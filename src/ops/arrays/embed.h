// Looking up rows of a table by whole numbers held as floats.
#ifndef CREMA_OPS_ARRAYS_EMBED_H_
#define CREMA_OPS_ARRAYS_EMBED_H_

#include <cstdint>

#include "base/multiversion.h"

namespace crema {

struct EmbedProblem {
  int64_t indices = 1;  // how many are looked up
  int64_t rows = 1;     // of the table
  int64_t width = 1;    // of each row
};

// Whether it is a whole number in [0, rows).
CREMA_HOST_DEVICE inline bool IsRow(const EmbedProblem& problem, float index) {
  return index >= 0 && index < static_cast<float>(problem.rows) &&
         index == static_cast<float>(static_cast<int64_t>(index));
}
// Position of the first index that is no whole number in [0, rows); -1 when all are fine.
int64_t FindBadIndex(const EmbedProblem& problem, const float* index);
// y[i] = table[index[i]] + bias; bias may be null. Indices must be good. Threaded.
void EmbedForward(const EmbedProblem& problem, const float* index, const float* table, const float* bias, float* y);
// table_gradient[r] = the sum of dy[i] over all i with index[i] == r, in the order of i. Overwrites all of it.
// Threaded: each row belongs to one thread.
void EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy, float* table_gradient);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_EMBED_H_
