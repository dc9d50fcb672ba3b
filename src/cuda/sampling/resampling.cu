#include "cuda/arrays/lanes.h"
#include "cuda/operations.h"
#include "ops/sampling/resampling_formulas.h"

namespace crema::cuda {

namespace {

using resampling::Range;
using resampling::ReadersOf;
using resampling::Table;
using resampling::Tables;

struct FillTables {
  Resampling p;
  Tables tables;

  __device__ void operator()(int64_t i) const {
    if (i < p.rows.result) {
      tables.rows.Fill(p.rows, p.filter, i);
    } else {
      tables.columns.Fill(p.columns, p.filter, i - p.rows.result);
    }
  }
};

Tables MakeTables(const Queue& queue, const Resampling& p, std::byte* workspace) {
  const Tables tables(p, workspace);
  ForEach(queue, p.rows.result + p.columns.result, FillTables{p, tables});
  return tables;
}

// One element of the result.
template <bool kSkipsNan>
struct Resample {
  Resampling p;
  Tables tables;
  const float* x;
  float* y;

  __device__ void operator()(int64_t at) const {
    int64_t plane = at;
    const int64_t column = SplitOff(&plane, p.columns.result), row = SplitOff(&plane, p.rows.result);
    const Table &rows = tables.rows, &columns = tables.columns;
    const float* const from = x + plane * p.plane() + rows.first[row] * p.columns.extent + columns.first[column];
    float sum = 0, known = 0, unknown = 0;
    for (int64_t j = 0; j < p.rows.taps; ++j) {
      const float down = rows.weights[j * p.rows.result + row];
      if (down == 0.0f) continue;
      for (int64_t i = 0; i < p.columns.taps; ++i) {
        const float weight = down * columns.weights[i * p.columns.result + column];
        const float value = from[j * p.columns.extent + i];
        if constexpr (kSkipsNan) {
          const bool is_known = value == value;
          sum += is_known ? weight * value : 0.0f;
          known += is_known ? weight : 0.0f;
          unknown += is_known ? 0.0f : weight;
        } else {
          sum += weight == 0.0f ? 0.0f : weight * value;  // which may be infinite or no number
        }
      }
    }
    y[at] = kSkipsNan ? resampling::MeanOfKnown(sum, known, unknown) : sum;
  }
};

// The gradient of one element of the source.
struct GatherReaders {
  Resampling p;
  Tables tables;
  const float* dy;
  float* dx;

  __device__ void operator()(int64_t at) const {
    int64_t plane = at;
    const int64_t column = SplitOff(&plane, p.columns.extent), row = SplitOff(&plane, p.rows.extent);
    const Range down = ReadersOf(p.rows, p.filter, row), across = ReadersOf(p.columns, p.filter, column);
    const float* const from = dy + plane * p.result_plane();
    float sum = 0;
    for (int64_t j = down.begin; j < down.end; ++j) {
      const float weight = tables.rows.Of(p.rows, j, row);
      if (weight == 0.0f) continue;
      for (int64_t i = across.begin; i < across.end; ++i) {
        const float of_column = tables.columns.Of(p.columns, i, column);
        if (of_column != 0.0f) sum += weight * of_column * from[j * p.columns.result + i];
      }
    }
    dx[at] = sum;
  }
};

}  // namespace

size_t CudaOperations::ResamplingWorkspace(const Resampling& problem) { return resampling::WorkspaceOf(problem); }

void CudaOperations::ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace) {
  const Tables tables = MakeTables(queue(), problem, workspace);
  const int64_t elements = problem.planes * problem.result_plane();
  if (problem.skips_nan) {
    ForEach(queue(), elements, Resample<true>{problem, tables, x, y});
  } else {
    ForEach(queue(), elements, Resample<false>{problem, tables, x, y});
  }
}

void CudaOperations::ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace) {
  const Tables tables = MakeTables(queue(), problem, workspace);
  ForEach(queue(), problem.planes * problem.plane(), GatherReaders{problem, tables, dy, dx});
}

}  // namespace crema::cuda
