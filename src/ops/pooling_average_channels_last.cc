#include "ops/pooling_channels_last.h"
#include "ops/pooling_kernels.h"

namespace crema {

namespace {

// Sums of some channels, from the first rows of a pixel to the last.
struct RowSums {
  float values[kPooledChannels];
};

// to = (`sums`, unless these are the first rows) + sum of the rows, divided; before the last rows, sums = that
// undivided.
template <int kRows>
struct SumRowsOfChannels {
  template <int kPacks, int kLanes, typename Number>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const Number* from, float divisor,
                               RowSums& sums, Number* to) {
    using Floats = typename Pack<kLanes>::Floats;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(sums.values + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < count; ++row) {
      Floats x[kPacks];
      LoadPacks<kPacks, kLanes>(from + rows.offsets[row] + channel, x);
      for (int i = 0; i < kPacks; ++i) sum[i] += x[i];
    }
    if (rows.last) {
      for (int i = 0; i < kPacks; ++i) sum[i] /= divisor;
      StorePacks<kPacks, kLanes>(sum, to + channel);
    } else {
      StorePacks<kPacks, kLanes>(sum, sums.values + channel);
    }
  }
};

// to = (`sums`, unless these are the first rows) + sum of the rows by their weights; before the last rows, sums = that.
struct WeighRowsOfChannels {
  template <int kPacks, int kLanes, typename Number>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const Number* from, RowSums& sums, Number* to) {
    using Floats = typename Pack<kLanes>::Floats;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(sums.values + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < rows.count; ++row) {
      Floats x[kPacks];
      LoadPacks<kPacks, kLanes>(from + rows.offsets[row] + channel, x);
      for (int i = 0; i < kPacks; ++i) sum[i] += x[i] * rows.weights[row];
    }
    if (rows.last) {
      StorePacks<kPacks, kLanes>(sum, to + channel);
    } else {
      StorePacks<kPacks, kLanes>(sum, sums.values + channel);
    }
  }
};

template <typename Number>
CREMA_MULTIVERSION void ForwardRow(const PooledGeometry& g, const Number* image, int64_t row, Number* destination) {
  const PoolingProblem& p = g.problem;
  RowSums sums;
  for (int64_t column = 0; column < p.output_width; ++column) {
    const float divisor = static_cast<float>(g.rows.padded[row] * g.columns.padded[column]);
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const Number* from = image + first;
      Number* to = destination + column * p.channels + first;
      g.ForEachTap(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        // A window without input sums to 0 and may have a divisor of 0.
        const float by = rows.first && rows.count == 0 ? 1.0f : divisor;
        if (rows.count == 9) {
          CoverWithPacks<SumRowsOfChannels<9>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        } else if (rows.count == 4) {
          CoverWithPacks<SumRowsOfChannels<4>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        } else {
          CoverWithPacks<SumRowsOfChannels<0>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        }
      });
    }
  }
}

template <typename Number>
CREMA_MULTIVERSION void BackwardRow(const PooledGeometry& g, const Number* image, int64_t row, Number* source) {
  const PoolingProblem& p = g.problem;
  RowSums sums;
  for (int64_t column = 0; column < p.input_width; ++column) {
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const Number* from = image + first;
      Number* to = source + column * p.channels + first;
      g.ForEachWindow(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        CoverWithPacks<WeighRowsOfChannels, sizeof(Number) == 2>(0, n, rows, from, sums, to);
      });
    }
  }
}

template <typename Number>
class AveragePoolingChannelsLast final : public PoolingKernel {
 public:
  explicit AveragePoolingChannelsLast(const PoolingProblem& problem) : g_(problem) {}

  void Forward(const void* source, void* destination, void*, float*, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    const int64_t read = p.input_width * p.vertical.kernel * p.channels;
    ForEachPooledRow(p.batch, p.output_height, read, [&](int64_t image, int64_t row) {
      ForwardRow(g_, static_cast<const Number*>(source) + image * p.input_height * p.input_width * p.channels, row,
                 static_cast<Number*>(destination) + (image * p.output_height + row) * p.output_width * p.channels);
    });
  }

  void Backward(const void*, const void* destination_gradient, const void*, void* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    const Number* from = static_cast<const Number*>(destination_gradient);
    ForEachPooledRow(p.batch, p.input_height, p.input_width * p.channels, [&](int64_t image, int64_t row) {
      BackwardRow(g_, from + image * p.output_height * p.output_width * p.channels, row,
                  static_cast<Number*>(source_gradient) + (image * p.input_height + row) * p.input_width * p.channels);
    });
  }

 private:
  PooledGeometry g_;
};

}  // namespace

std::unique_ptr<PoolingKernel> MakeAveragePoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                              std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kChannelsLast) {
    *why_not = "takes images with channels last only";
  } else if (problem.method != PoolingMethod::kAverage) {
    *why_not = "takes the average only";
  } else if (problem.dtype == DType::kBF16) {
    return std::make_unique<AveragePoolingChannelsLast<BFloat16>>(problem);
  } else {
    return std::make_unique<AveragePoolingChannelsLast<float>>(problem);
  }
  return nullptr;
}

}  // namespace crema
