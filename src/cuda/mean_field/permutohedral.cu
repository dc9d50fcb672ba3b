#include <algorithm>

#include "cuda/arrays/lanes.h"
#include "cuda/mean_field/permutohedral.h"
#include "cuda/mean_field/permutohedral_sort.h"

namespace crema::cuda {

namespace {

using permutohedral::Direction;
using permutohedral::Key;
using permutohedral::Simplex;
using permutohedral::View;

constexpr int64_t kPart = 128;  // points of a vertex that one thread sums

template <int kDimensions>
struct PlacePoint {
  View lattice;
  const float* features;
  SortedKeys<Key> keys;

  __device__ void operator()(int64_t point) const {
    constexpr int kGroups = kDimensions + 1;
    const Simplex<kDimensions> simplex(features + point * kDimensions);
    for (int group = 0; group < kGroups; ++group) {
      keys.keys[group * lattice.points + point] = simplex.KeyOf(group);
      keys.items[group * lattice.points + point] = static_cast<int32_t>(point);
      lattice.weight_of[point * kGroups + group] = simplex.weights[group];
    }
  }
};

// body(i) for i below the number of vertices times `each`.
template <typename Body>
__global__ void ForVerticesKernel(const int64_t* vertices, int64_t each, Body body) {
  const int64_t n = *vertices * each, stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

template <typename Body>
void ForVertices(const Queue& queue, const View& lattice, int64_t each, const Body& body) {
  Launch(queue, BlocksFor(queue, lattice.most() * each), kThreads, ForVerticesKernel<Body>, lattice.vertices, each,
         body);
}

struct ForgetNeighbors {
  View lattice;
  __device__ void operator()(int64_t vertex) const {
    for (int direction = 0; direction < lattice.groups(); ++direction) lattice.Ahead(direction)[vertex] = -1;
  }
};

template <int kDimensions>
struct FindNeighbors {
  View lattice;
  const int64_t* begin_of;  // the first vertex of each group, and how many there are
  const Key* keys;          // of the vertices

  __device__ void operator()(int64_t vertex) const {
    using Grid = permutohedral::Lattice<kDimensions>;
    int group = kDimensions;
    while (vertex < begin_of[group]) --group;
    const int behind = Grid::GroupBehind(group);
    for (int direction = 0; direction <= kDimensions; ++direction) {
      const Key wanted = keys[vertex] + Grid::KeyStep(group, direction);
      int64_t low = begin_of[behind], high = begin_of[behind + 1];
      const int64_t end = high;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (keys[middle] < wanted) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      const bool found = low < end && keys[low] == wanted;
      lattice.Behind(direction)[vertex] = found ? static_cast<int32_t>(low) : -1;
      if (found) lattice.Ahead(direction)[low] = static_cast<int32_t>(vertex);
    }
  }
};

template <int kDimensions>
void BuildOf(const Queue& queue, const View& lattice, const float* features, std::byte* workspace) {
  const KeySort sort(lattice, workspace);
  ForEach(queue, lattice.points, PlacePoint<kDimensions>{lattice, features, sort.unsorted()});
  sort.Run(queue);
  ForVertices(queue, lattice, 1, ForgetNeighbors{lattice});
  ForVertices(queue, lattice, 1, FindNeighbors<kDimensions>{lattice, sort.begin_of(), sort.of_vertices()});
}

struct SetOne {
  float* to;
  __device__ void operator()(int64_t i) const { to[i] = 1.0f; }
};

struct Invert {
  float* x;
  __device__ void operator()(int64_t i) const { x[i] = 1.0f / x[i]; }
};

// What the vertices' points lie in, parts of kPart: a vertex in several of them has sums of the first one (`last`) and
// of the others (`first`, since it comes first there).
struct Parts {
  float *first, *last;  // parts x channels
};

// One channel of a part.
struct SumPart {
  View lattice;
  const float* factor;
  int64_t channels;
  const float* x;
  float* values;
  Parts parts;

  __device__ void operator()(int64_t at) const {
    int64_t part = at;
    const int64_t channel = SplitOff(&part, channels);
    const int64_t begin = part * kPart, end = begin + kPart < lattice.most() ? begin + kPart : lattice.most();
    int64_t low = 0, high = *lattice.vertices;  // the last vertex that begins at `begin` or before
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (lattice.first[middle] <= begin ? low : high) = middle;
    }
    for (int64_t i = begin, vertex = low; i < end; ++vertex) {
      const int64_t vertex_end = lattice.first[vertex + 1], stop = vertex_end < end ? vertex_end : end;
      float sum = 0;
      for (; i < stop; ++i) {
        const int64_t point = lattice.from_point[i];
        const float weight = lattice.from_weight[i] * (factor != nullptr ? factor[point] : 1.0f);
        sum += weight * x[point * channels + channel];
      }
      if (lattice.first[vertex] < begin) {
        parts.first[at] = sum;
      } else if (vertex_end > end) {
        parts.last[at] = sum;
      } else {
        values[vertex * channels + channel] = sum;
      }
    }
  }
};

// One channel of a vertex.
struct SumParts {
  View lattice;
  int64_t channels;
  Parts parts;
  float* values;

  __device__ void operator()(int64_t at) const {
    int64_t vertex = at;
    const int64_t channel = SplitOff(&vertex, channels);
    const int64_t begin = lattice.first[vertex] / kPart, end = (lattice.first[vertex + 1] - 1) / kPart;
    if (begin == end) return;
    float sum = parts.last[begin * channels + channel];
    for (int64_t part = begin + 1; part <= end; ++part) sum += parts.first[part * channels + channel];
    values[at] = sum;
  }
};

// One channel of a vertex: [1/2 1 1/2] in one direction.
struct Blur {
  const int32_t *behind, *ahead;
  int64_t channels;
  const float* x;
  float* y;

  __device__ void operator()(int64_t at) const {
    int64_t vertex = at;
    const int64_t channel = SplitOff(&vertex, channels);
    const int64_t a = behind[vertex], b = ahead[vertex];
    const float of_a = a >= 0 ? x[a * channels + channel] : 0.0f, of_b = b >= 0 ? x[b * channels + channel] : 0.0f;
    y[at] = x[at] + 0.5f * (of_a + of_b);
  }
};

// One channel of a point.
struct GetBack {
  View lattice;
  const float* factor;
  int64_t channels;
  const float* values;
  float* y;

  __device__ void operator()(int64_t at) const {
    int64_t point = at;
    const int64_t channel = SplitOff(&point, channels);
    const float scale = factor != nullptr ? factor[point] : 1.0f;
    float sum = 0;
    for (int64_t i = point * lattice.groups(); i < (point + 1) * lattice.groups(); ++i) {
      sum += lattice.weight_of[i] * scale * values[lattice.vertex_of[i] * channels + channel];
    }
    y[at] = sum;
  }
};

int64_t PartsOf(int dimensions, int64_t points) { return (points * (dimensions + 1) + kPart - 1) / kPart; }

}  // namespace

size_t LatticeWorkspace(int dimensions, int64_t points) {
  return std::max(KeySort::Bytes(dimensions, points), FilterWorkspace(dimensions, points, 1));
}

void BuildLattice(const Queue& queue, const View& lattice, const float* features, std::byte* workspace) {
  if (lattice.points == 0) return;
  if (lattice.dimensions == 2) {
    BuildOf<2>(queue, lattice, features, workspace);
  } else {
    BuildOf<5>(queue, lattice, features, workspace);
  }
  ForEach(queue, lattice.points, SetOne{lattice.inverse});
  Filter(queue, lattice, Direction::kForward, false, 1, lattice.inverse, lattice.inverse, workspace);
  ForEach(queue, lattice.points, Invert{lattice.inverse});
}

size_t FilterWorkspace(int dimensions, int64_t points, int64_t channels) {
  const int64_t vertices = points * (dimensions + 1);
  return static_cast<size_t>(2 * (vertices + PartsOf(dimensions, points)) * channels) * sizeof(float);
}

void Filter(const Queue& queue, const View& lattice, Direction direction, bool normalizes, int64_t channels,
            const float* x, float* y, std::byte* workspace) {
  const bool adjoint = direction == Direction::kAdjoint;
  const float* const inverse = normalizes ? lattice.inverse : nullptr;
  const int64_t of_values = lattice.most() * channels, parts = PartsOf(lattice.dimensions, lattice.points);
  auto* values = reinterpret_cast<float*>(workspace);
  float* other = values + of_values;
  const Parts sums = {other + of_values, other + of_values + parts * channels};
  ForEach(queue, parts * channels, SumPart{lattice, adjoint ? inverse : nullptr, channels, x, values, sums});
  ForVertices(queue, lattice, channels, SumParts{lattice, channels, sums, values});
  for (int i = 0; i < lattice.groups(); ++i) {
    const int axis = adjoint ? lattice.dimensions - i : i;
    ForVertices(queue, lattice, channels, Blur{lattice.Behind(axis), lattice.Ahead(axis), channels, values, other});
    std::swap(values, other);
  }
  ForEach(queue, lattice.points * channels, GetBack{lattice, adjoint ? nullptr : inverse, channels, values, y});
}

}  // namespace crema::cuda
