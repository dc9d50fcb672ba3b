#include "ops/mean_field/permutohedral.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema::permutohedral {

namespace {

constexpr int64_t kPointGrain = 1024;  // points worth waking a thread for
constexpr int64_t kFloatGrain = 32768;

constexpr int kDigitBits = 12;
constexpr int kDigits = kKeyBits / kDigitBits;
static_assert(kDigits * kDigitBits == kKeyBits);

// Vertices have room for a multiple of so many channels, but for very few, which vectors would leave mostly empty.
constexpr int64_t kLanes = 8, kVeryFew = 3;

int64_t Stride(int64_t channels) { return channels <= kVeryFew ? channels : (channels + kLanes - 1) / kLanes * kLanes; }

// The keys of the points' vertices of one group, and the points.
struct Keys {
  Key* keys;
  int32_t* points;
};

// The same twice, for all groups one after the other.
struct Scratch {
  Keys sorted, other;

  Scratch(const View& lattice, std::byte* memory) {
    const int64_t most = lattice.most();
    sorted.keys = reinterpret_cast<Key*>(memory);
    other.keys = sorted.keys + most;
    sorted.points = reinterpret_cast<int32_t*>(other.keys + most);
    other.points = sorted.points + most;
  }
};

Keys From(const Keys& keys, int64_t first) { return {keys.keys + first, keys.points + first}; }

// Sorts by key, points of one key in their order.
void Sort(int64_t count, Keys keys, Keys other) {
  const Keys wanted = keys;
  std::array<int32_t, size_t{1} << kDigitBits> next;
  for (int digit = 0; digit < kDigits; ++digit) {
    const auto digit_of = [&](Key key) { return key >> (digit * kDigitBits) & (next.size() - 1); };
    next.fill(0);
    for (int64_t i = 0; i < count; ++i) ++next[digit_of(keys.keys[i])];
    if (next[digit_of(keys.keys[0])] == count) continue;
    int32_t sum = 0;
    for (int32_t& n : next) sum += std::exchange(n, sum);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t to = next[digit_of(keys.keys[i])]++;
      other.keys[to] = keys.keys[i];
      other.points[to] = keys.points[i];
    }
    std::swap(keys, other);
  }
  if (keys.keys == wanted.keys) return;
  std::copy_n(keys.keys, count, wanted.keys);
  std::copy_n(keys.points, count, wanted.points);
}

template <int kDimensions>
CREMA_MULTIVERSION void PlacePoints(const View& lattice, const float* features, int64_t begin, int64_t end,
                                    const Keys& keys) {
  constexpr int kGroups = kDimensions + 1;
  for (int64_t point = begin; point < end; ++point) {
    const Simplex<kDimensions> simplex(features + point * kDimensions);
    for (int group = 0; group < kGroups; ++group) {
      keys.keys[group * lattice.points + point] = simplex.KeyOf(group);
      keys.points[group * lattice.points + point] = static_cast<int32_t>(point);
      lattice.weight_of[point * kGroups + group] = simplex.weights[group];
    }
  }
}

// Numbers the vertices of a group from `vertex` on and moves their keys to the front of `unique`.
void NumberVertices(const View& lattice, int group, int64_t vertex, const Keys& sorted, Key* unique) {
  const int groups = lattice.groups();
  const int64_t first = group * lattice.points;
  for (int64_t i = 0; i < lattice.points; ++i) {
    if (i == 0 || sorted.keys[i] != sorted.keys[i - 1]) {
      unique[vertex] = sorted.keys[i];
      lattice.first[vertex++] = static_cast<int32_t>(first + i);
    }
    const int64_t of_point = int64_t{sorted.points[i]} * groups + group;
    lattice.vertex_of[of_point] = static_cast<int32_t>(vertex - 1);
    lattice.from_point[first + i] = sorted.points[i];
    lattice.from_weight[first + i] = lattice.weight_of[of_point];
  }
}

// Adding a constant to sorted keys leaves them sorted, so that both groups are walked through once.
template <int kDimensions>
void FindNeighbors(const View& lattice, int direction, int group, const int64_t* begin_of, const Key* keys) {
  using Grid = Lattice<kDimensions>;
  const Key step = Grid::KeyStep(group, direction);
  const int behind = Grid::GroupBehind(group);
  int64_t other = begin_of[behind];
  const int64_t end = begin_of[behind + 1];
  for (int64_t vertex = begin_of[group]; vertex < begin_of[group + 1]; ++vertex) {
    const Key wanted = keys[vertex] + step;
    while (other < end && keys[other] < wanted) ++other;
    if (other == end) return;
    if (keys[other] != wanted) continue;
    lattice.Behind(direction)[vertex] = static_cast<int32_t>(other);
    lattice.Ahead(direction)[other] = static_cast<int32_t>(vertex);
  }
}

template <int kDimensions>
void BuildOf(const View& lattice, const float* features, std::byte* workspace) {
  constexpr int kGroups = kDimensions + 1;
  const int64_t points = lattice.points;
  const Scratch scratch(lattice, workspace);
  ParallelFor(points, kPointGrain, [&](int64_t begin, int64_t end) {
    PlacePoints<kDimensions>(lattice, features, begin, end, scratch.sorted);
  });
  int64_t begin_of[kGroups + 1] = {};  // the first vertex of each group
  ParallelFor(kGroups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const Keys keys = From(scratch.sorted, group * points);
      Sort(points, keys, From(scratch.other, group * points));
      int64_t distinct = 1;
      for (int64_t i = 1; i < points; ++i) distinct += keys.keys[i] != keys.keys[i - 1] ? 1 : 0;
      begin_of[group + 1] = distinct;
    }
  });
  for (int group = 0; group < kGroups; ++group) begin_of[group + 1] += begin_of[group];
  const int64_t vertices = begin_of[kGroups];
  *lattice.vertices = vertices;
  lattice.first[vertices] = static_cast<int32_t>(lattice.most());
  ParallelFor(kGroups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      NumberVertices(lattice, static_cast<int>(group), begin_of[group], From(scratch.sorted, group * points),
                     scratch.other.keys);
    }
  });
  ParallelFor(2 * kGroups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(lattice.neighbors + i * lattice.most(), vertices, -1);
  });
  ParallelFor(int64_t{kGroups} * kGroups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      FindNeighbors<kDimensions>(lattice, static_cast<int>(i / kGroups), static_cast<int>(i % kGroups), begin_of,
                                 scratch.other.keys);
    }
  });
}

// Calls body(std::integral_constant width, first channel) for what channels are worked on at a time.
template <typename Body>
CREMA_INLINE void ForEachPart(int64_t stride, const Body& body) {
  int64_t channel = 0;
  if (stride < kLanes) {
    for (; channel < stride; ++channel) body(std::integral_constant<int, 1>(), channel);
    return;
  }
  for (; channel + 4 * kLanes <= stride; channel += 4 * kLanes)
    body(std::integral_constant<int, 4 * kLanes>(), channel);
  if (stride - channel == 3 * kLanes) return body(std::integral_constant<int, 3 * kLanes>(), channel);
  if (stride - channel == 2 * kLanes) return body(std::integral_constant<int, 2 * kLanes>(), channel);
  if (stride - channel == kLanes) return body(std::integral_constant<int, kLanes>(), channel);
}

// Rows are read in an order that no processor foresees: brings the one into the cache that is wanted so many later.
constexpr int64_t kAhead = 12;

template <int kWidth>
CREMA_INLINE void Prefetch(const float* row) {
  constexpr int kLine = 16;  // floats of a line of the cache
  for (int i = 0; i < kWidth; i += kLine) __builtin_prefetch(row + i);
}

// Shares what the points have out to vertices. A row of x is read to the next multiple of kLanes, into the row behind
// it: `last_row` is the last one, with room for that.
CREMA_MULTIVERSION void Splat(const View& lattice, const float* factor, int64_t channels, const float* x,
                              const float* last_row, int64_t begin, int64_t end, float* values) {
  const int64_t stride = Stride(channels);
  for (int64_t vertex = begin; vertex < end; ++vertex) {
    ForEachPart(
        stride, [&](auto width, int64_t channel) __attribute__((always_inline)) {
          constexpr int kWidth = decltype(width)::value;
          float sum[kWidth] = {};
          for (int64_t i = lattice.first[vertex]; i < lattice.first[vertex + 1]; ++i) {
            const int64_t point = lattice.from_point[i];
            Prefetch<kWidth>(x + lattice.from_point[std::min(i + kAhead, lattice.most() - 1)] * channels + channel);
            const float weight = lattice.from_weight[i] * (factor != nullptr ? factor[point] : 1.0f);
            const float* const from = (point == lattice.points - 1 ? last_row : x + point * channels) + channel;
#pragma omp simd
            for (int c = 0; c < kWidth; ++c) sum[c] += weight * from[c];
          }
          float* const to = values + vertex * stride + channel;
          for (int c = 0; c < kWidth; ++c) to[c] = sum[c];
        });
  }
}

// [1/2 1 1/2] in one direction.
CREMA_MULTIVERSION void Blur(const View& lattice, int direction, int64_t stride, const float* x, int64_t begin,
                             int64_t end, float* y) {
  const int32_t *const behind = lattice.Behind(direction), *const ahead = lattice.Ahead(direction);
  for (int64_t vertex = begin; vertex < end; ++vertex) {
    const float* const own = x + vertex * stride;
    float* const to = y + vertex * stride;
    const int64_t a = behind[vertex], b = ahead[vertex];
    if (a >= 0 && b >= 0) {
      const float *const one = x + a * stride, *const other = x + b * stride;
#pragma omp simd
      for (int64_t c = 0; c < stride; ++c) to[c] = own[c] + 0.5f * (one[c] + other[c]);
    } else if (a >= 0 || b >= 0) {
      const float* const only = x + (a >= 0 ? a : b) * stride;
#pragma omp simd
      for (int64_t c = 0; c < stride; ++c) to[c] = own[c] + 0.5f * only[c];
    } else {
      for (int64_t c = 0; c < stride; ++c) to[c] = own[c];
    }
  }
}

// What the points get back.
CREMA_MULTIVERSION void Slice(const View& lattice, const float* factor, int64_t channels, const float* values,
                              int64_t begin, int64_t end, float* y) {
  const int groups = lattice.groups();
  const int64_t stride = Stride(channels);
  for (int64_t point = begin; point < end; ++point) {
    ForEachPart(
        stride, [&](auto width, int64_t channel) __attribute__((always_inline)) {
          constexpr int kWidth = decltype(width)::value;
          float sum[kWidth] = {};
          for (int64_t at = point * groups; at < (point + 1) * groups; ++at) {
            Prefetch<kWidth>(values + lattice.vertex_of[std::min(at + kAhead, lattice.most() - 1)] * stride + channel);
            const float weight = lattice.weight_of[at] * (factor != nullptr ? factor[point] : 1.0f);
            const float* const from = values + lattice.vertex_of[at] * stride + channel;
#pragma omp simd
            for (int c = 0; c < kWidth; ++c) sum[c] += weight * from[c];
          }
          float* const to = y + point * channels + channel;
          if (channel + kWidth <= channels) {
            for (int c = 0; c < kWidth; ++c) to[c] = sum[c];
          } else {
            for (int64_t c = 0; c < channels - channel; ++c) to[c] = sum[c];
          }
        });
  }
}

}  // namespace

size_t BuildWorkspace(int dimensions, int64_t points) {
  const auto most = static_cast<size_t>(points * (dimensions + 1));
  return std::max(2 * most * (sizeof(Key) + sizeof(int32_t)), 2 * most * sizeof(float));
}

void Build(const View& lattice, const float* features, std::byte* workspace) {
  if (lattice.points == 0) return;
  CREMA_CHECK(lattice.dimensions == 2 || lattice.dimensions == 5) << "no lattice of " << lattice.dimensions;
  if (lattice.dimensions == 2) {
    BuildOf<2>(lattice, features, workspace);
  } else {
    BuildOf<5>(lattice, features, workspace);
  }
  std::fill_n(lattice.inverse, lattice.points, 1.0f);
  Filter(lattice, Direction::kForward, false, 1, lattice.inverse, lattice.inverse, reinterpret_cast<float*>(workspace));
  for (int64_t i = 0; i < lattice.points; ++i) lattice.inverse[i] = 1.0f / lattice.inverse[i];
}

int64_t FilterWorkspace(int dimensions, int64_t points, int64_t channels) {
  return 2 * points * (dimensions + 1) * Stride(channels);
}

void Filter(const View& lattice, Direction direction, bool normalizes, int64_t channels, const float* x, float* y,
            float* workspace) {
  if (lattice.points == 0) return;
  const int64_t vertices = *lattice.vertices, grain = kFloatGrain / (channels * lattice.groups()) + 1;
  const bool adjoint = direction == Direction::kAdjoint;
  const float* const inverse = normalizes ? lattice.inverse : nullptr;
  const int64_t stride = Stride(channels);
  float *values = workspace, *other = workspace + lattice.most() * stride;
  float* const last_row = other;  // until the first blur
  std::copy_n(x + (lattice.points - 1) * channels, channels, last_row);
  std::fill(last_row + channels, last_row + stride, 0.0f);
  ParallelFor(vertices, grain, [&](int64_t begin, int64_t end) {
    Splat(lattice, adjoint ? inverse : nullptr, channels, x, last_row, begin, end, values);
  });
  for (int i = 0; i < lattice.groups(); ++i) {
    ParallelFor(vertices, grain, [&](int64_t begin, int64_t end) {
      Blur(lattice, adjoint ? lattice.dimensions - i : i, stride, values, begin, end, other);
    });
    std::swap(values, other);
  }
  ParallelFor(lattice.points, grain, [&](int64_t begin, int64_t end) {
    Slice(lattice, adjoint ? nullptr : inverse, channels, values, begin, end, y);
  });
}

}  // namespace crema::permutohedral
