// Where points lie in a permutohedral lattice (Adams, Baek and Davis, "Fast High-Dimensional Filtering Using the
// Permutohedral Lattice", Computer Graphics Forum, 2010): one text for the CPU and GPUs.
//
// A lattice of d dimensions lives in the plane of d + 1 coordinates whose sum is 0. All coordinates of a vertex leave
// the same remainder when divided by d + 1, its group; the simplex around a point has one vertex of each group. Here a
// coordinate is d + 1 times a whole number `q`, plus the group; the last one follows from the others.
#ifndef CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_FORMULAS_H_
#define CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_FORMULAS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/aligned_memory.h"
#include "ops/arrays/elementary_functions.h"

namespace crema::permutohedral {

inline constexpr int kMostDimensions = 5;
inline constexpr int kKeyBits = 60;

// Features are kept within so many standard deviations of 0, beyond which keys have no room.
CREMA_HOST_DEVICE constexpr float MostDeviations(int dimensions) { return dimensions <= 2 ? 1e5f : 1e3f; }

// The q of a vertex side by side, which tells it among those of its group.
using Key = uint64_t;
inline constexpr Key kNoKey = ~Key{0};

template <int kDimensions>
struct Lattice {
  static_assert(kDimensions >= 1 && kDimensions <= kMostDimensions);
  static constexpr int kGroups = kDimensions + 1;
  static constexpr int kBits = kKeyBits / kDimensions;  // of each q

  CREMA_HOST_DEVICE static constexpr Key Unit(int i) { return Key{1} << (kBits * (kDimensions - 1 - i)); }

  // The lattice has kGroups directions in which vertices have two neighbours each. The one behind a vertex in a
  // direction is of this group, and its key is greater by this much, modulo 2^64: the same for the whole group.
  CREMA_HOST_DEVICE static int GroupBehind(int group) { return group == 0 ? kDimensions : group - 1; }
  CREMA_HOST_DEVICE static Key KeyStep(int group, int direction) {
    if (group > 0) return direction < kDimensions ? Unit(direction) : 0;
    Key step = 0;
    for (int i = 0; i < kDimensions; ++i) {
      if (i != direction) step -= Unit(i);
    }
    return step;
  }
};

// The simplex around a point, and the weights with which the point is shared out to its vertices, one of each group.
template <int kDimensions>
struct Simplex {
  static constexpr int kGroups = kDimensions + 1;

  int32_t base[kGroups];  // q of the vertex of group 0
  int32_t rank[kGroups];  // of coordinates, by how far the point is from that vertex in them, the farthest first
  float weights[kGroups];

  // `features`: in standard deviations. One that is not finite makes a NaN of a weight.
  CREMA_FORMULA explicit Simplex(const float* features) {
    // 1 / sqrt((i + 1) (i + 2)): makes the axes of the plane equally long.
    constexpr float kScale[kMostDimensions] = {0.707106781f, 0.408248290f, 0.288675135f, 0.223606798f, 0.182574186f};
    constexpr float kDeviation = 0.816496581f;  // sqrt(2 / 3): what blurring and sharing out blur, in edges
    constexpr float kMost = MostDeviations(kDimensions);
    float place[kGroups], sum = 0, poison = 0;
    for (int i = kDimensions; i > 0; --i) {
      float feature = features[i - 1];
      poison += feature * 0.0f;
      feature = feature < kMost ? feature : kMost;
      feature = feature > -kMost ? feature : -kMost;
      feature *= kDeviation * kScale[i - 1];
      place[i] = sum - static_cast<float>(i) * feature;
      sum += feature;
    }
    place[0] = sum;

    int32_t excess = 0;
    for (int i = 0; i < kGroups; ++i) {
      base[i] = static_cast<int32_t>(floorf(place[i] + 0.5f));
      place[i] -= static_cast<float>(base[i]);
      excess += base[i];
      rank[i] = 0;
    }
    for (int i = 0; i < kGroups; ++i) {
      for (int k = i + 1; k < kGroups; ++k) {
        const bool farther = place[k] > place[i];
        rank[i] += farther ? 1 : 0;
        rank[k] += farther ? 0 : 1;
      }
    }
    // Rounding may leave the plane: back, where it was worst.
    for (int i = 0; i < kGroups; ++i) {
      rank[i] += excess;
      const int32_t back = rank[i] < 0 ? 1 : rank[i] > kDimensions ? -1 : 0;
      rank[i] += back * kGroups;
      base[i] += back;
      place[i] -= static_cast<float>(back);
    }

    float sorted[kGroups];
    for (int i = 0; i < kGroups; ++i) sorted[rank[i]] = place[i];
    weights[0] = 1.0f - (sorted[0] - sorted[kDimensions]) + poison;
    for (int group = 1; group < kGroups; ++group) {
      weights[group] = sorted[kDimensions - group] - sorted[kDimensions - group + 1];
    }
  }

  CREMA_FORMULA Key KeyOf(int group) const {
    constexpr int kBits = Lattice<kDimensions>::kBits;
    Key key = 0;
    for (int i = 0; i < kDimensions; ++i) {
      const int32_t q = base[i] - (rank[i] > kDimensions - group ? 1 : 0);
      key = key << kBits | static_cast<Key>(q + (int32_t{1} << (kBits - 1)));
    }
    return key;
  }
};

// What a lattice of `points` points is in memory.
struct View {
  int dimensions;
  int64_t points;

  int64_t* vertices;    // [1]: how many there are
  int32_t* vertex_of;   // points x groups: the vertices of a point's simplex
  float* weight_of;     // the same: their weights
  int32_t* first;       // of a vertex: where its points begin in the next two; one more for the end
  int32_t* from_point;  // the points that are shared out to a vertex, in their order
  float* from_weight;
  int32_t* neighbors;  // groups x 2 x most(): in each direction the vertex behind each, and the one ahead; -1: none
  float* inverse;      // points: 1 / what the filter makes of ones

  CREMA_HOST_DEVICE int groups() const { return dimensions + 1; }
  // Vertices that there may be.
  CREMA_HOST_DEVICE int64_t most() const { return points * groups(); }
  CREMA_HOST_DEVICE int32_t* Behind(int direction) const { return neighbors + 2 * direction * most(); }
  CREMA_HOST_DEVICE int32_t* Ahead(int direction) const { return Behind(direction) + most(); }

  CREMA_HOST_DEVICE View(int of_dimensions, int64_t of_points, std::byte* memory)
      : dimensions(of_dimensions), points(of_points) {
    Take(&vertices, 1, &memory);
    Take(&vertex_of, most(), &memory);
    Take(&weight_of, most(), &memory);
    Take(&first, most() + 1, &memory);
    Take(&from_point, most(), &memory);
    Take(&from_weight, most(), &memory);
    Take(&neighbors, 2 * groups() * most(), &memory);
    Take(&inverse, points, &memory);
  }
  static size_t Bytes(int dimensions, int64_t points) {
    const int64_t groups = dimensions + 1, most = points * groups;
    return AlignedBytesOf<int64_t>(1) + 4 * AlignedBytesOf<int32_t>(most) + AlignedBytesOf<int32_t>(most + 1) +
           AlignedBytesOf<int32_t>(2 * groups * most) + AlignedBytesOf<float>(points);
  }

 private:
  template <typename Number>
  CREMA_HOST_DEVICE static void Take(Number** array, int64_t count, std::byte** memory) {
    *array = reinterpret_cast<Number*>(*memory);
    *memory += AlignedBytesOf<Number>(count);
  }
};

}  // namespace crema::permutohedral

#endif  // CREMA_OPS_MEAN_FIELD_PERMUTOHEDRAL_FORMULAS_H_
