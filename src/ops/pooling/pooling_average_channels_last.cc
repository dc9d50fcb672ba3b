#include "ops/pooling/pooling_channels_last.h"
#include "ops/pooling/pooling_kernels.h"

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

template <bool kVolume, typename Number>
CREMA_MULTIVERSION void ForwardRow(const PooledGeometry<kVolume>& g, const Number* image, int64_t row,
                                   Number* destination) {
  const PoolingProblem& p = g.problem;
  const PooledLine line = g.OutputLine(row);
  constexpr int kMany = kVolume ? 8 : 9, kFew = 4;  // rows of the windows that nets have most
  RowSums sums;
  for (int64_t column = 0; column < p.output_width; ++column) {
    const float divisor = static_cast<float>(g.Padded(line, column));
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const Number* from = image + first;
      Number* to = destination + column * p.channels + first;
      g.ForEachTap(line, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        // A window without input sums to 0 and may have a divisor of 0.
        const float by = rows.first && rows.count == 0 ? 1.0f : divisor;
        if (rows.count == kMany) {
          CoverWithPacks<SumRowsOfChannels<kMany>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        } else if (rows.count == kFew) {
          CoverWithPacks<SumRowsOfChannels<kFew>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        } else {
          CoverWithPacks<SumRowsOfChannels<0>, sizeof(Number) == 2>(0, n, rows, from, by, sums, to);
        }
      });
    }
  }
}

template <bool kVolume, typename Number>
CREMA_MULTIVERSION void BackwardRow(const PooledGeometry<kVolume>& g, const Number* image, int64_t row,
                                    Number* source) {
  const PoolingProblem& p = g.problem;
  const PooledLine line = g.InputLine(row);
  RowSums sums;
  for (int64_t column = 0; column < p.input_width; ++column) {
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const Number* from = image + first;
      Number* to = source + column * p.channels + first;
      g.ForEachWindow(line, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        CoverWithPacks<WeighRowsOfChannels, sizeof(Number) == 2>(0, n, rows, from, sums, to);
      });
    }
  }
}

template <bool kVolume, typename Number>
class AveragePoolingChannelsLast final : public PoolingKernel {
 public:
  explicit AveragePoolingChannelsLast(const PoolingProblem& problem) : g_(problem) {}

  void Forward(const void* source, void* destination, void*, float*, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    const int64_t read = p.depth.kernel * p.vertical.kernel * p.input_width * p.channels;
    ForEachPooledRow(p.batch, g_.output_lines(), read, [&](int64_t image, int64_t row) {
      ForwardRow(g_, static_cast<const Number*>(source) + image * p.input_plane() * p.channels, row,
                 static_cast<Number*>(destination) + (image * g_.output_lines() + row) * p.output_width * p.channels);
    });
  }

  void Backward(const void*, const void* destination_gradient, const void*, void* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    const Number* from = static_cast<const Number*>(destination_gradient);
    ForEachPooledRow(p.batch, g_.input_lines(), p.input_width * p.channels, [&](int64_t image, int64_t row) {
      BackwardRow(
          g_, from + image * p.output_plane() * p.channels, row,
          static_cast<Number*>(source_gradient) + (image * g_.input_lines() + row) * p.input_width * p.channels);
    });
  }

 private:
  PooledGeometry<kVolume> g_;
};

template <typename Number>
std::unique_ptr<PoolingKernel> Make(const PoolingProblem& problem) {
  if (problem.volume()) return std::make_unique<AveragePoolingChannelsLast<true, Number>>(problem);
  return std::make_unique<AveragePoolingChannelsLast<false, Number>>(problem);
}

}  // namespace

std::unique_ptr<PoolingKernel> MakeAveragePoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                              std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kChannelsLast) {
    *why_not = "takes images with channels last only";
  } else if (!problem.sums()) {
    *why_not = "takes averages and sums only";
  } else if (problem.dtype == DType::kBF16) {
    return Make<BFloat16>(problem);
  } else {
    return Make<float>(problem);
  }
  return nullptr;
}

}  // namespace crema
