#include "ops/pooling_channels_last.h"
#include "ops/pooling_kernels.h"

namespace crema {

namespace {

// to = (what it is already, unless these are the first rows) + sum of the rows, divided at the last ones.
template <int kRows>
struct SumRowsOfChannels {
  template <int kPacks, int kLanes>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const float* from, float divisor, float* to) {
    using Floats = typename Pack<kLanes>::Floats;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(to + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < count; ++row) {
      for (int i = 0; i < kPacks; ++i) {
        Floats x;
        LoadPack(from + rows.offsets[row] + channel + i * kLanes, &x);
        sum[i] += x;
      }
    }
    for (int i = 0; i < kPacks; ++i) {
      if (rows.last) sum[i] /= divisor;
      StorePack(sum[i], to + channel + i * kLanes);
    }
  }
};

// to = (what it is already, unless these are the first rows) + sum of the rows by their weights.
struct WeighRowsOfChannels {
  template <int kPacks, int kLanes>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const float* from, float* to) {
    using Floats = typename Pack<kLanes>::Floats;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(to + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < rows.count; ++row) {
      for (int i = 0; i < kPacks; ++i) {
        Floats x;
        LoadPack(from + rows.offsets[row] + channel + i * kLanes, &x);
        sum[i] += x * rows.weights[row];
      }
    }
    for (int i = 0; i < kPacks; ++i) StorePack(sum[i], to + channel + i * kLanes);
  }
};

CREMA_MULTIVERSION void ForwardRow(const PooledGeometry& g, const float* image, int64_t row, float* to) {
  const PoolingProblem& p = g.problem;
  for (int64_t column = 0; column < p.output_width; ++column, to += p.channels) {
    const float divisor = static_cast<float>(g.rows.padded[row] * g.columns.padded[column]);
    g.ForEachTap(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
      // A window without input sums to 0 and may have a divisor of 0.
      const float by = rows.first && rows.count == 0 ? 1.0f : divisor;
      if (rows.count == 9) {
        CoverWithPacks<SumRowsOfChannels<9>>(0, p.channels, rows, image, by, to);
      } else if (rows.count == 4) {
        CoverWithPacks<SumRowsOfChannels<4>>(0, p.channels, rows, image, by, to);
      } else {
        CoverWithPacks<SumRowsOfChannels<0>>(0, p.channels, rows, image, by, to);
      }
    });
  }
}

CREMA_MULTIVERSION void BackwardRow(const PooledGeometry& g, const float* image, int64_t row, float* to) {
  const PoolingProblem& p = g.problem;
  for (int64_t column = 0; column < p.input_width; ++column, to += p.channels) {
    g.ForEachWindow(row, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
      CoverWithPacks<WeighRowsOfChannels>(0, p.channels, rows, image, to);
    });
  }
}

class AveragePoolingChannelsLast final : public PoolingKernel {
 public:
  explicit AveragePoolingChannelsLast(const PoolingProblem& problem) : g_(problem) {}

  void Forward(const float* source, float* destination, void*, float*, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    const int64_t read = p.input_width * p.vertical.kernel * p.channels;
    ForEachPooledRow(p.batch, p.output_height, read, [&](int64_t image, int64_t row) {
      ForwardRow(g_, source + image * p.input_height * p.input_width * p.channels, row,
                 destination + (image * p.output_height + row) * p.output_width * p.channels);
    });
  }

  void Backward(const float*, const float* destination_gradient, const void*, float* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    ForEachPooledRow(p.batch, p.input_height, p.input_width * p.channels, [&](int64_t image, int64_t row) {
      BackwardRow(g_, destination_gradient + image * p.output_height * p.output_width * p.channels, row,
                  source_gradient + (image * p.input_height + row) * p.input_width * p.channels);
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
  } else {
    return std::make_unique<AveragePoolingChannelsLast>(problem);
  }
  return nullptr;
}

}  // namespace crema
