#include <type_traits>

#include "base/check.h"
#include "cuda/lanes.h"
#include "cuda/numbers.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

constexpr int kTile = 32, kTileRows = 8;
constexpr int64_t kFew = 8;  // rows or columns that tiles would mostly miss

template <typename From, typename To>
struct Images {
  const From* from;
  To* to;
  int64_t batch, rows, columns;  // each image, rows x columns, becomes columns x rows
};

// Tile by tile through shared memory, so that reads and writes both go along rows.
template <typename From, typename To>
__global__ void TransposeTiles(Images<From, To> images, int64_t tiles_down, int64_t tiles_across) {
  __shared__ float tile[kTile][kTile + 1];  // the odd stride keeps columns out of one bank
  const int64_t tiles = images.batch * tiles_down * tiles_across;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t across = t % tiles_across * kTile, rest = t / tiles_across;
    const int64_t down = rest % tiles_down * kTile, image = rest / tiles_down * images.rows * images.columns;
    for (unsigned i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t row = down + i, column = across + threadIdx.x;
      if (row < images.rows && column < images.columns) {
        tile[i][threadIdx.x] = images.from[image + row * images.columns + column];
      }
    }
    __syncthreads();
    for (unsigned i = threadIdx.y; i < kTile; i += kTileRows) {
      const int64_t column = across + i, row = down + threadIdx.x;
      if (row < images.rows && column < images.columns) {
        images.to[image + column * images.rows + row] = To(tile[threadIdx.x][i]);
      }
    }
    __syncthreads();  // before the next tile is read into it
  }
}

// Few rows or columns: a warp's reads and writes share cache lines anyway.
template <typename From, typename To>
struct TransposeElement {
  Images<From, To> images;

  __device__ void operator()(int64_t i) const {
    int64_t image = i;
    const int64_t row = SplitOff(&image, images.rows), column = SplitOff(&image, images.columns);
    images.to[i] = To(static_cast<float>(images.from[(image * images.rows + row) * images.columns + column]));
  }
};

template <typename From, typename To>
void Transpose(const Queue& queue, const Images<From, To>& images) {
  if (images.rows <= kFew || images.columns <= kFew) {
    return ForEach(queue, images.batch * images.rows * images.columns, TransposeElement<From, To>{images});
  }
  const int64_t down = (images.rows + kTile - 1) / kTile, across = (images.columns + kTile - 1) / kTile;
  constexpr unsigned kThreadsOfTile = kTile * kTileRows;
  const unsigned blocks = BlocksFor(queue, images.batch * down * across * kThreadsOfTile, kThreadsOfTile);
  Launch(queue, blocks, dim3(kTile, kTileRows), TransposeTiles<From, To>, images, down, across);
}

// Of eight numbers either type is loaded and stored in packs.
template <typename From, typename To>
struct ConvertEight {
  const From* from;
  To* to;
  int64_t n;
  bool aligned;

  __device__ void operator()(int64_t i) const {
    if (aligned && 8 * i + 8 <= n) {
      const Lanes<8, From> given = reinterpret_cast<const Lanes<8, From>*>(from)[i];
      Lanes<8, To> made;
      for (int k = 0; k < 8; ++k) made.values[k] = To(static_cast<float>(given.values[k]));
      reinterpret_cast<Lanes<8, To>*>(to)[i] = made;
      return;
    }
    for (int64_t k = 8 * i; k < n && k < 8 * i + 8; ++k) to[k] = To(static_cast<float>(from[k]));
  }
};

}  // namespace

void CudaOperations::Reorder(const Tensor& from, const Tensor& to) {
  const Shape& shape = from.shape();
  CREMA_CHECK(shape == to.shape() && (from.layout() == to.layout() || (shape.axes() >= 3 && shape.axes() <= 5)))
      << "cannot reorder " << shape.ToString() << " to " << to.shape().ToString();
  const int64_t n = shape.count();
  if (n == 0) return;
  const bool in_order = from.layout() == to.layout() || shape[1] == 1 || shape.count(2) == 1;
  if (in_order && from.dtype() == to.dtype()) return Copy(from.raw(), to.raw(), to.bytes());
  WithNumber(from.dtype(), [&]<typename From>(From* given) {
    WithNumber(to.dtype(), [&]<typename To>(To* made) {
      // A net computes in one of the types of 16 bits.
      if constexpr (sizeof(From) == 2 && sizeof(To) == 2 && !std::is_same_v<From, To>) {
        CREMA_CHECK(false) << "from " << Name(from.dtype()) << " to " << Name(to.dtype());
      } else if (in_order) {
        const bool aligned = IsPackAligned(from.raw()) && IsPackAligned(to.raw());
        ForEach(queue(), (n + 7) / 8, ConvertEight<From, To>{As(from, given), As(to, made), n, aligned});
      } else {
        const int64_t channels = shape[1], pixels = shape.count(2);
        const bool spread = to.layout() == Layout::kChannelsLast;
        Transpose(queue(), Images<From, To>{As(from, given), As(to, made), shape[0], spread ? channels : pixels,
                                            spread ? pixels : channels});
      }
    });
  });
}

}  // namespace crema::cuda
