#include <limits>

#include "ops/pooling_channels_last.h"
#include "ops/pooling_kernels.h"

namespace crema {

namespace {

// to = the largest of the rows (and of what it is already, unless these are the first), where = the label of the first
// row that has it. Labels rise from row to row.
template <int kRows, bool kWhere>
struct LargestOfRows {
  template <int kPacks, int kLanes>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const float* from, float* to, int32_t* where) {
    using Floats = typename Pack<kLanes>::Floats;
    using Ints = typename Pack<kLanes>::Ints;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats best[kPacks];
    Ints label[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      BroadcastPack<kLanes>(rows.labels[0], &label[i]);
      if (rows.first) {
        LoadPack(from + rows.offsets[0] + channel + i * kLanes, &best[i]);
      } else {
        LoadPack(to + channel + i * kLanes, &best[i]);
        if (kWhere) LoadPack(where + channel + i * kLanes, &label[i]);
      }
    }
    for (int row = rows.first ? 1 : 0; row < count; ++row) {
      const Ints here = Ints{} + rows.labels[row];
      for (int i = 0; i < kPacks; ++i) {
        Floats x;
        LoadPack(from + rows.offsets[row] + channel + i * kLanes, &x);
        if (kWhere) {
          const Ints candidate = (x > best[i]) & here;
          label[i] = candidate > label[i] ? candidate : label[i];
        }
        best[i] = x > best[i] ? x : best[i];
      }
    }
    for (int i = 0; i < kPacks; ++i) {
      StorePack(best[i], to + channel + i * kLanes);
      if (kWhere) StorePack(label[i], where + channel + i * kLanes);
    }
  }
};

// to = (what it is already, unless these are the first rows) + sum of the rows where `saved` has their label.
// kRows: 0, or rows.count.
template <int kRows>
struct GatherRows {
  template <int kPacks, int kLanes, typename Position>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const float* from, const Position* saved,
                               float* to) {
    using Floats = typename Pack<kLanes>::Floats;
    using Ints = typename Pack<kLanes>::Ints;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(to + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < count; ++row) {
      const Ints here = Ints{} + rows.labels[row];
      for (int i = 0; i < kPacks; ++i) {
        const int64_t at = rows.offsets[row] + channel + i * kLanes;
        Ints position, gradient;
        LoadInts<kLanes>(saved + at, &position);
        LoadPack(from + at, &gradient);
        sum[i] += (Floats)(gradient & (position == here));
      }
    }
    for (int i = 0; i < kPacks; ++i) StorePack(sum[i], to + channel + i * kLanes);
  }
};

// What is asked for of one row of outputs; the pointers point to its first element, or are null.
template <typename Position>
struct MaxOutput {
  float* destination;
  Position* saved;
  float* indices;
};

template <typename Position, bool kWhere>
CREMA_MULTIVERSION void ForwardRow(const PooledGeometry& g, const float* image, int64_t row,
                                   const MaxOutput<Position>& output) {
  const PoolingProblem& p = g.problem;
  int32_t where[kPooledChannels];
  for (int64_t column = 0; column < p.output_width; ++column) {
    const bool empty = g.rows.begin[row] >= g.rows.end[row] || g.columns.begin[column] >= g.columns.end[column];
    const int64_t corner =
        (row * p.vertical.stride - p.vertical.pad) * p.input_width + column * p.horizontal.stride - p.horizontal.pad;
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const int64_t at = column * p.channels + first;
      if (empty) {
        for (int64_t i = 0; i < n; ++i) {
          output.destination[at + i] = 0;
          if (kWhere && output.saved) output.saved[at + i] = 0;
          if (kWhere && output.indices) output.indices[at + i] = -1;
        }
        continue;
      }
      const float* from = image + first;
      float* to = output.destination + at;
      g.ForEachTap(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        if (rows.first && rows.count == 9) {
          CoverWithPacks<LargestOfRows<9, kWhere>>(0, n, rows, from, to, where);
        } else if (rows.first && rows.count == 4) {
          CoverWithPacks<LargestOfRows<4, kWhere>>(0, n, rows, from, to, where);
        } else {
          CoverWithPacks<LargestOfRows<0, kWhere>>(0, n, rows, from, to, where);
        }
      });
      if (kWhere && output.saved) {
        Position* saved = output.saved + at;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) saved[i] = static_cast<Position>(where[i]);
      }
      for (int64_t i = 0; kWhere && output.indices && i < n; ++i) {
        const int64_t pixel = where[i] / p.horizontal.kernel * p.input_width + where[i] % p.horizontal.kernel;
        output.indices[at + i] = static_cast<float>(corner + pixel);
      }
    }
  }
}

template <typename Position>
CREMA_MULTIVERSION void BackwardRow(const PooledGeometry& g, const float* image, const Position* saved, int64_t row,
                                    float* to) {
  const PoolingProblem& p = g.problem;
  for (int64_t column = 0; column < p.input_width; ++column, to += p.channels) {
    g.ForEachWindow(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
      if (rows.count == 1) {
        CoverWithPacks<GatherRows<1>>(0, p.channels, rows, image, saved, to);
      } else if (rows.count == 2) {
        CoverWithPacks<GatherRows<2>>(0, p.channels, rows, image, saved, to);
      } else if (rows.count == 4) {
        CoverWithPacks<GatherRows<4>>(0, p.channels, rows, image, saved, to);
      } else {
        CoverWithPacks<GatherRows<0>>(0, p.channels, rows, image, saved, to);
      }
    });
  }
}

// The winner of a window is kept as its position in the unclipped window, which fits a byte for kernels up to 16x16.
template <typename Position>
class MaxPoolingChannelsLast final : public PoolingKernel {
 public:
  explicit MaxPoolingChannelsLast(const PoolingProblem& problem) : g_(problem) {}

  TensorSpec saved() const override {
    if (!g_.problem.backward) return {Shape{0}, DType::kF32};
    return {Shape{g_.problem.outputs()}, sizeof(Position) == 1 ? DType::kU8 : DType::kI32};
  }

  void Forward(const float* source, float* destination, void* saved, float* indices, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    const int64_t read = p.input_width * p.vertical.kernel * p.channels;
    ForEachPooledRow(p.batch, p.output_height, read, [&](int64_t image, int64_t row) {
      const float* from = source + image * p.input_height * p.input_width * p.channels;
      const int64_t at = (image * p.output_height + row) * p.output_width * p.channels;
      const MaxOutput<Position> output{destination + at, saved ? static_cast<Position*>(saved) + at : nullptr,
                                       indices ? indices + at : nullptr};
      if (saved || indices) {
        ForwardRow<Position, true>(g_, from, row, output);
      } else {
        ForwardRow<Position, false>(g_, from, row, output);
      }
    });
  }

  void Backward(const float*, const float* destination_gradient, const void* saved, float* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    ForEachPooledRow(p.batch, p.input_height, p.input_width * p.channels, [&](int64_t image, int64_t row) {
      const int64_t at = image * p.output_height * p.output_width * p.channels;
      BackwardRow(g_, destination_gradient + at, static_cast<const Position*>(saved) + at, row,
                  source_gradient + (image * p.input_height + row) * p.input_width * p.channels);
    });
  }

 private:
  PooledGeometry g_;
};

}  // namespace

std::unique_ptr<PoolingKernel> MakeMaxPoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                          std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kChannelsLast) {
    *why_not = "takes images with channels last only";
  } else if (problem.method != PoolingMethod::kMax) {
    *why_not = "takes the maximum only";
  } else if (problem.vertical.kernel > std::numeric_limits<int32_t>::max() / problem.horizontal.kernel) {
    *why_not = "the kernel is too large";
  } else if (problem.vertical.kernel * problem.horizontal.kernel <= 256) {
    return std::make_unique<MaxPoolingChannelsLast<uint8_t>>(problem);
  } else {
    return std::make_unique<MaxPoolingChannelsLast<int32_t>>(problem);
  }
  return nullptr;
}

}  // namespace crema
