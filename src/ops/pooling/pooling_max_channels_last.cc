#include <algorithm>
#include <type_traits>

#include "ops/pooling/pooling_channels_last.h"
#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

// to = the largest of the rows (and of what it is already, unless these are the first), where = the label of the first
// row that has it. Labels rise from row to row.
template <int kRows, bool kWhere>
struct LargestOfRows {
  template <int kPacks, int kLanes, typename Number, typename Position>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const Number* from, Number* to,
                               Position* where) {
    using Floats = typename Pack<kLanes>::Floats;
    using Ints = typename Pack<kLanes>::Ints;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats best[kPacks];
    Ints label[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      BroadcastPack<kLanes>(rows.labels[0], &label[i]);
      if (rows.first) {
        LoadFloats<kLanes>(from + rows.offsets[0] + channel + i * kLanes, &best[i]);
      } else {
        LoadFloats<kLanes>(to + channel + i * kLanes, &best[i]);
        if (kWhere) LoadInts<kLanes>(where + channel + i * kLanes, &label[i]);
      }
    }
    for (int row = rows.first ? 1 : 0; row < count; ++row) {
      const Ints here = Ints{} + rows.labels[row];
      for (int i = 0; i < kPacks; ++i) {
        Floats x;
        LoadFloats<kLanes>(from + rows.offsets[row] + channel + i * kLanes, &x);
        if (kWhere) ChooseWhereLarger<false>(x, best[i], here, label[i], &label[i]);
        ChooseWhereLarger<false>(x, best[i], x, best[i], &best[i]);
      }
    }
    for (int i = 0; i < kPacks; ++i) {
      StoreFloats<kLanes>(best[i], to + channel + i * kLanes);
      if (kWhere) StoreInts<kLanes>(label[i], where + channel + i * kLanes);
    }
  }
};

// As LoadPacks, with 0 where `saved` is not `here`.
template <int kPacks, int kLanes, typename Position>
CREMA_INLINE void LoadWhere(const float* from, const Position* saved, int32_t here,
                            typename Pack<kLanes>::Floats* values) {
  using Ints = typename Pack<kLanes>::Ints;
  for (int i = 0; i < kPacks; ++i) {
    Ints position, gradient, chosen;
    LoadInts<kLanes>(saved + i * kLanes, &position);
    LoadPack(from + i * kLanes, &gradient);
    EqualMask(position, Ints{} + here, &chosen);
    values[i] = (typename Pack<kLanes>::Floats)(gradient & chosen);
  }
}
template <int kPacks, int kLanes, typename Position>
CREMA_INLINE void LoadWhere(const BFloat16* from, const Position* saved, int32_t here,
                            typename Pack<kLanes>::Floats* values) {
  constexpr int kAll = kPacks * kLanes;
  using Int16s = typename Pack<kAll>::Int16s;
  Int16s gradient, chosen;
  LoadPack(from, &gradient);
  if constexpr (sizeof(Position) == 1) {
    typename Pack<kAll>::Bytes position;
    LoadPack(saved, &position);
    EqualMask(__builtin_convertvector(position, Int16s), Int16s{} + static_cast<int16_t>(here), &chosen);
  } else {
    // GCC 12 narrows what a loop makes, but takes the elements of a pack one by one.
    int16_t same[kAll];
    for (int i = 0; i < kAll; ++i) same[i] = saved[i] == here ? -1 : 0;
    LoadPack(same, &chosen);
  }
  gradient &= chosen;
  LoadPacks<kPacks, kLanes>(reinterpret_cast<const BFloat16*>(&gradient), values);
}

// LargestOfRows for labels that fit a byte: bf16 numbers order as integers, their sign unfolded.
template <int kRows, bool kWhere>
struct LargestOfHalves {
  template <int kPacks, int kLanes>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const BFloat16* from, BFloat16* to,
                               uint8_t* where) {
    using Int16s = typename Pack<kPacks * kLanes>::Int16s;
    using Bytes = typename Pack<kPacks * kLanes>::Bytes;
    const int count = kRows > 0 ? kRows : rows.count;
    Int16s best, label = Int16s{} + static_cast<int16_t>(rows.labels[0]);
    LoadPack(rows.first ? from + rows.offsets[0] + channel : to + channel, &best);
    if (kWhere && !rows.first) {
      Bytes before;
      LoadPack(where + channel, &before);
      label = __builtin_convertvector(before, Int16s);
    }
    Unfold(&best);
    for (int row = rows.first ? 1 : 0; row < count; ++row) {
      Int16s x;
      LoadPack(from + rows.offsets[row] + channel, &x);
      Unfold(&x);
      if (kWhere) {
        Int16s larger;
        GreaterMask(x, best, &larger);
        label = (larger & (Int16s{} + static_cast<int16_t>(rows.labels[row]))) | (~larger & label);
      }
      best = x > best ? x : best;
    }
    Unfold(&best);
    StorePack(best, to + channel);
    if (kWhere) {
      const Bytes bytes = __builtin_convertvector(label, Bytes);
      StorePack(bytes, where + channel);
    }
  }

 private:
  // Its own inverse. -0 comes to lie below 0.
  template <typename Int16s>
  CREMA_INLINE static void Unfold(Int16s* x) {
    *x ^= (*x >> 15) & static_cast<int16_t>(0x7fff);
  }
};

// to = (`sums`, unless these are the first rows) + sum of the rows where `saved` has their label; before the last rows,
// sums = that.
// kRows: 0, or rows.count.
template <int kRows>
struct GatherRows {
  template <int kPacks, int kLanes, typename Number, typename Position>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const Number* from, const Position* saved,
                               float* sums, Number* to) {
    using Floats = typename Pack<kLanes>::Floats;
    const int count = kRows > 0 ? kRows : rows.count;
    Floats sum[kPacks];
    for (int i = 0; i < kPacks; ++i) {
      sum[i] = Floats{};
      if (!rows.first) LoadPack(sums + channel + i * kLanes, &sum[i]);
    }
    for (int row = 0; row < count; ++row) {
      const int64_t at = rows.offsets[row] + channel;
      Floats gradient[kPacks];
      LoadWhere<kPacks, kLanes>(from + at, saved + at, rows.labels[row], gradient);
      for (int i = 0; i < kPacks; ++i) sum[i] += gradient[i];
    }
    if (rows.last) {
      StorePacks<kPacks, kLanes>(sum, to + channel);
    } else {
      StorePacks<kPacks, kLanes>(sum, sums + channel);
    }
  }
};

// Of windows that do not overlap: the gradient of one output goes to the row whose label `saved` holds, the others of
// its window get 0.
template <int kRows>
struct SpreadToRows {
  template <int kPacks, int kLanes, typename Number, typename Position>
  CREMA_INLINE static void Run(int64_t channel, const PooledRows& rows, const Number* from, const Position* saved,
                               Number* to) {
    const int count = kRows > 0 ? kRows : rows.count;
    for (int row = 0; row < count; ++row) {
      typename Pack<kLanes>::Floats gradient[kPacks];
      LoadWhere<kPacks, kLanes>(from + channel, saved + channel, rows.labels[row], gradient);
      StorePacks<kPacks, kLanes>(gradient, to + rows.offsets[row] + channel);
    }
  }
};

template <int kRows, bool kWhere, bool kHalves>
using LargestOf = std::conditional_t<kHalves, LargestOfHalves<kRows, kWhere>, LargestOfRows<kRows, kWhere>>;

// What is asked for of one row of outputs; the pointers point to its first element, or are null.
template <typename Number, typename Position>
struct MaxOutput {
  Number* destination;
  Position* saved;
  float* indices;
};

// Whether loops are compiled for some numbers of rows, which takes long. Windows above 256 pixels gain nothing by them.
template <typename Position>
constexpr bool kKnownRows = sizeof(Position) == 1;

template <bool kWhere, bool kVolume, typename Number, typename Position>
CREMA_MULTIVERSION void ForwardRow(const PooledGeometry<kVolume>& g, const Number* image, int64_t row,
                                   const MaxOutput<Number, Position>& output) {
  const PoolingProblem& p = g.problem;
  const PooledLine line = g.OutputLine(row);
  constexpr int kMany = kVolume ? 8 : 9, kFew = 4;  // rows of the windows that nets have most
  constexpr bool kHalves = sizeof(Number) == 2 && sizeof(Position) == 1;
  Position unsaved[kPooledChannels];
  for (int64_t column = 0; column < p.output_width; ++column) {
    const bool empty = g.Empty(line, column);
    const int64_t corner = g.Corner(line, column);
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const int64_t at = column * p.channels + first;
      if (empty) {
        for (int64_t i = 0; i < n; ++i) {
          output.destination[at + i] = 0.0f;
          if (kWhere && output.saved) output.saved[at + i] = 0;
          if (kWhere && output.indices) output.indices[at + i] = -1;
        }
        continue;
      }
      const Number* from = image + first;
      Number* to = output.destination + at;
      Position* where = output.saved ? output.saved + at : unsaved;
      g.ForEachTap(line, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        if (kKnownRows<Position> && rows.first && rows.count == kMany) {
          CoverWithPacks<LargestOf<kMany, kWhere, kHalves>, sizeof(Number) == 2>(0, n, rows, from, to, where);
        } else if (kKnownRows<Position> && rows.first && rows.count == kFew) {
          CoverWithPacks<LargestOf<kFew, kWhere, kHalves>, sizeof(Number) == 2>(0, n, rows, from, to, where);
        } else {
          CoverWithPacks<LargestOf<0, kWhere, kHalves>, sizeof(Number) == 2>(0, n, rows, from, to, where);
        }
      });
      for (int64_t i = 0; kWhere && output.indices && i < n; ++i) {
        output.indices[at + i] = static_cast<float>(corner + g.PixelOf(where[i]));
      }
    }
  }
}

template <bool kVolume, typename Number, typename Position>
CREMA_MULTIVERSION void BackwardRow(const PooledGeometry<kVolume>& g, const Number* image, const Position* positions,
                                    int64_t row, Number* source) {
  const PoolingProblem& p = g.problem;
  const PooledLine line = g.InputLine(row);
  float sums[kPooledChannels];
  for (int64_t column = 0; column < p.input_width; ++column) {
    for (int64_t first = 0; first < p.channels; first += kPooledChannels) {
      const int64_t n = p.channels - first < kPooledChannels ? p.channels - first : kPooledChannels;
      const Number* from = image + first;
      const Position* saved = positions + first;
      Number* to = source + column * p.channels + first;
      g.ForEachWindow(line, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
        if (rows.count == 1) {
          CoverWithPacks<GatherRows<1>, sizeof(Number) == 2>(0, n, rows, from, saved, sums, to);
        } else if (kKnownRows<Position> && rows.count == 2) {
          CoverWithPacks<GatherRows<2>, sizeof(Number) == 2>(0, n, rows, from, saved, sums, to);
        } else if (kKnownRows<Position> && rows.count == 4) {
          CoverWithPacks<GatherRows<4>, sizeof(Number) == 2>(0, n, rows, from, saved, sums, to);
        } else {
          CoverWithPacks<GatherRows<0>, sizeof(Number) == 2>(0, n, rows, from, saved, sums, to);
        }
      });
    }
  }
}

// The gradients of the input rows of output `row`, whose windows lie side by side; `source` is the whole image.
template <bool kVolume, typename Number, typename Position>
CREMA_MULTIVERSION void BackwardSideBySide(const PooledGeometry<kVolume>& g, const Number* gradients,
                                           const Position* positions, int64_t row, Number* source) {
  const PoolingProblem& p = g.problem;
  const PooledLine line = g.OutputLine(row);
  constexpr int kMost = kVolume ? 8 : 4;  // rows of the windows that nets have most
  for (int64_t column = 0; column < p.output_width; ++column) {
    const Number* from = gradients + column * p.channels;
    const Position* saved = positions + column * p.channels;
    g.ForEachTap(line, column, [&](const PooledRows& rows) CREMA_INLINE_LAMBDA {
      if (kKnownRows<Position> && rows.count == kMost) {
        CoverWithPacks<SpreadToRows<kMost>, sizeof(Number) == 2>(0, p.channels, rows, from, saved, source);
      } else {
        CoverWithPacks<SpreadToRows<0>, sizeof(Number) == 2>(0, p.channels, rows, from, saved, source);
      }
    });
  }
  // What no window reaches.
  const int64_t first_slice = kVolume ? g.slices.begin[line.slice] : 0,
                end_slice = kVolume ? g.slices.end[line.slice] : 1,
                last_slice = line.slice + 1 == p.output_depth ? p.input_depth : end_slice,
                last_row = line.row + 1 == p.output_height ? p.input_height : g.rows.end[line.row],
                width = p.input_width * p.channels;
  for (int64_t d = first_slice; d < last_slice; ++d) {
    for (int64_t h = g.rows.begin[line.row]; h < last_row; ++h) {
      const bool reached = d < end_slice && h < g.rows.end[line.row];
      Number* const to = source + (d * p.input_height + h) * width;
      std::fill(to + (reached ? g.columns.end[p.output_width - 1] * p.channels : 0), to + width, Number(0.0f));
    }
  }
}

// The winner of a window is kept as its position in the unclipped window, which fits a byte up to 256 of them.
template <bool kVolume, typename Number, typename Position>
class MaxPoolingChannelsLast final : public PoolingKernel {
 public:
  explicit MaxPoolingChannelsLast(const PoolingProblem& problem) : g_(problem) {}

  TensorSpec saved() const override {
    if (!g_.problem.backward) return {Shape{0}, DType::kF32};
    return {Shape{g_.problem.outputs()}, sizeof(Position) == 1 ? DType::kU8 : DType::kI32};
  }

  void Forward(const void* source, void* destination, void* saved, float* indices, const RandomStream*) override {
    const PoolingProblem& p = g_.problem;
    const int64_t read = p.depth.kernel * p.vertical.kernel * p.input_width * p.channels;
    ForEachPooledRow(p.batch, g_.output_lines(), read, [&](int64_t image, int64_t row) {
      const Number* from = static_cast<const Number*>(source) + image * p.input_plane() * p.channels;
      const int64_t at = (image * g_.output_lines() + row) * p.output_width * p.channels;
      const MaxOutput<Number, Position> output{static_cast<Number*>(destination) + at,
                                               saved ? static_cast<Position*>(saved) + at : nullptr,
                                               indices ? indices + at : nullptr};
      if (saved || indices) {
        ForwardRow<true>(g_, from, row, output);
      } else {
        ForwardRow<false>(g_, from, row, output);
      }
    });
  }

  void Backward(const void*, const void* destination_gradient, const void* saved, void* source_gradient) override {
    const PoolingProblem& p = g_.problem;
    if (g_.SideBySide()) {
      const int64_t written = p.depth.kernel * p.vertical.kernel * p.input_width * p.channels;
      ForEachPooledRow(p.batch, g_.output_lines(), written, [&](int64_t image, int64_t row) {
        const int64_t at = (image * g_.output_lines() + row) * p.output_width * p.channels;
        BackwardSideBySide(g_, static_cast<const Number*>(destination_gradient) + at,
                           static_cast<const Position*>(saved) + at, row,
                           static_cast<Number*>(source_gradient) + image * p.input_plane() * p.channels);
      });
      return;
    }
    ForEachPooledRow(p.batch, g_.input_lines(), p.input_width * p.channels, [&](int64_t image, int64_t row) {
      const int64_t at = image * p.output_plane() * p.channels;
      BackwardRow(
          g_, static_cast<const Number*>(destination_gradient) + at, static_cast<const Position*>(saved) + at, row,
          static_cast<Number*>(source_gradient) + (image * g_.input_lines() + row) * p.input_width * p.channels);
    });
  }

 private:
  PooledGeometry<kVolume> g_;
};

template <bool kVolume, typename Number>
std::unique_ptr<PoolingKernel> Make(const PoolingProblem& problem) {
  if (problem.depth.kernel * problem.vertical.kernel * problem.horizontal.kernel > 256) {
    return std::make_unique<MaxPoolingChannelsLast<kVolume, Number, int32_t>>(problem);
  }
  return std::make_unique<MaxPoolingChannelsLast<kVolume, Number, uint8_t>>(problem);
}

}  // namespace

std::unique_ptr<PoolingKernel> MakeMaxPoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                          std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kChannelsLast) {
    *why_not = "takes images with channels last only";
  } else if (problem.method != PoolingMethod::kMax) {
    *why_not = "takes the maximum only";
  } else if (!PositionsFit(problem)) {
    *why_not = "the kernel is too large";
  } else if (problem.dtype == DType::kBF16) {
    return problem.volume() ? Make<true, BFloat16>(problem) : Make<false, BFloat16>(problem);
  } else {
    return problem.volume() ? Make<true, float>(problem) : Make<false, float>(problem);
  }
  return nullptr;
}

}  // namespace crema
