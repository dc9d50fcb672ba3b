#include "distributed/averaging/round_formula.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "distributed/training/cluster_settings.h"
#include "solver/statistics.h"

namespace crema {

namespace {

static_assert(std::endian::native == std::endian::little, "payloads hold little-endian floats");

constexpr int64_t kNumbersPerThread = 1 << 15;
// Elements summed at a time: their sums stay in the first cache.
constexpr int64_t kSummedAtOnce = 1024;

bool FiniteBlock(const float* values, int64_t count) {
  // The exponent's bits are all set in NaNs and infinities alone.
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) found |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
  return found == 0;
}

// Writes value(i) for each i; false where one is not finite.
template <typename Value>
bool EachBlock(int64_t count, float* out, const Value& value) {
  std::atomic<bool> finite = true;
  ParallelFor(count, kNumbersPerThread, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += kSummedAtOnce) {
      const int64_t end = std::min(at + kSummedAtOnce, last);
      for (int64_t i = at; i < end; ++i) out[i] = value(i);
      if (!FiniteBlock(out + at, end - at)) finite = false;
    }
  });
  return finite;
}

// A layer's statistics, of values that begin with the first statistic.
RunningMoments MomentsIn(const float* statistics, const BatchNormPlaces& layer, int64_t trained) {
  return {statistics + layer.mean - trained, statistics + layer.variance - trained, statistics[layer.factor - trained]};
}

}  // namespace

std::span<const float> FloatsOf(const Payload& payload) {
  CREMA_CHECK(payload && payload->size() % sizeof(float) == 0);
  return {reinterpret_cast<const float*>(payload->data()), payload->size() / sizeof(float)};
}

float* FloatsOf(Bytes& bytes) { return reinterpret_cast<float*>(bytes.data()); }

std::shared_ptr<Bytes> NewPayload(uint64_t bytes) { return std::make_shared<Bytes>(static_cast<size_t>(bytes)); }

bool AllFinite(std::span<const float> values) {
  std::atomic<bool> finite = true;
  ParallelFor(static_cast<int64_t>(values.size()), kNumbersPerThread, [&](int64_t begin, int64_t end) {
    if (!FiniteBlock(values.data() + begin, end - begin)) finite = false;
  });
  return finite;
}

std::span<const float> VelocityIn(const StateLayout& layout, const Payload& state) {
  return FloatsOf(state).subspan(static_cast<size_t>(layout.velocity_in_state()), static_cast<size_t>(layout.velocity));
}

bool HasOuterMomentum(const DistributedParameter& settings) {
  return settings.outer_momentum() != 0 || settings.outer_momentum_by_workers();
}

double ElasticRate(const DistributedParameter& settings) {
  if (settings.elastic_rate() > 0) return static_cast<double>(settings.elastic_rate());
  return 0.9 / ExpectedWorkers(settings);
}

int64_t VelocityInStates(const DistributedParameter& settings, int64_t trained) {
  const bool among_workers =
      settings.mode() == DistributedParameter::AVERAGE && settings.topology() != DistributedParameter::STAR;
  return among_workers && HasOuterMomentum(settings) ? trained : 0;
}

bool WeighedMean(std::span<const WeighedValues> terms, int64_t count, float* out) {
  CREMA_CHECK(!terms.empty());
  if (terms.size() == 1) {
    if (count > 0) std::memcpy(out, terms[0].values, static_cast<size_t>(count) * sizeof(float));
    return AllFinite({out, static_cast<size_t>(count)});
  }
  double total = 0;
  for (const WeighedValues& term : terms) total += term.weight;
  CREMA_CHECK(total > 0);
  std::atomic<bool> finite = true;
  ParallelFor(count, kNumbersPerThread, [&](int64_t first, int64_t last) {
    double sums[kSummedAtOnce];
    for (int64_t at = first; at < last; at += kSummedAtOnce) {
      const int64_t size = std::min(kSummedAtOnce, last - at);
      std::fill_n(sums, size, 0.0);
      for (const WeighedValues& term : terms) {
        const float* const values = term.values + at;
        for (int64_t i = 0; i < size; ++i) sums[i] += term.weight * static_cast<double>(values[i]);
      }
      for (int64_t i = 0; i < size; ++i) out[at + i] = static_cast<float>(sums[i] / total);
      // A mean is finite where, and only where, every value is.
      if (!FiniteBlock(out + at, size)) finite = false;
    }
  });
  return finite;
}

bool ScaleValues(const float* values, double factor, int64_t count, float* out) {
  return EachBlock(count, out, [&](int64_t i) { return static_cast<float>(factor * static_cast<double>(values[i])); });
}

bool AddValues(const float* a, const float* b, int64_t count, float* out) {
  return EachBlock(count, out, [&](int64_t i) { return a[i] + b[i]; });
}

RoundFormula::RoundFormula(const DistributedParameter& settings, StateLayout layout)
    : settings_(settings), layout_(std::move(layout)) {
  CREMA_CHECK(layout_.velocity == VelocityInStates(settings_, layout_.trained));
}

double RoundFormula::WeightOf(uint64_t examples) const {
  return settings_.weight_by_examples() ? static_cast<double>(examples) : 1.0;
}

bool RoundFormula::PoolStatistics(std::span<const WeighedValues> terms, float* out) const {
  const size_t count = static_cast<size_t>(layout_.values - layout_.trained);
  if (count == 0) return true;
  bool finite = true;
  for (const WeighedValues& term : terms) finite = finite && AllFinite({term.values, count});
  std::copy_n(terms.front().values, count, out);
  if (settings_.batch_norm() == DistributedParameter::FIRST || terms.size() == 1) return finite;
  double total = 0;
  for (const WeighedValues& term : terms) total += term.weight;
  std::vector<RunningMoments> moments;
  moments.reserve(terms.size());
  for (const BatchNormPlaces& layer : layout_.batch_norms) {
    double factor = 0;
    moments.clear();
    for (const WeighedValues& term : terms) {
      factor += term.weight / total * static_cast<double>(term.values[layer.factor - layout_.trained]);
      moments.push_back(MomentsIn(term.values, layer, layout_.trained));
    }
    out[layer.factor - layout_.trained] = static_cast<float>(factor);
    float* const means = out + layer.mean - layout_.trained;
    float* const variances = out + layer.variance - layout_.trained;
    for (int64_t channel = 0; channel < layer.channels; ++channel) {
      double mean = 0, square = 0;
      for (size_t i = 0; i < terms.size(); ++i) {
        mean += terms[i].weight / total * moments[i].mean(channel);
        square += terms[i].weight / total * moments[i].square(channel);
      }
      PutMoments(mean, square, factor, means + channel, variances + channel);
    }
  }
  return finite && AllFinite({out, count});
}

void RoundFormula::StatisticsToTerm(const float* statistics, const float* center, double share, bool first,
                                    float* out) const {
  const int64_t count = layout_.values - layout_.trained;
  if (first) {
    std::copy_n(statistics, count, out);
  } else {
    std::fill_n(out, count, 0.0f);
  }
  if (settings_.batch_norm() == DistributedParameter::FIRST) return;
  for (const BatchNormPlaces& layer : layout_.batch_norms) {
    const RunningMoments moments = MomentsIn(statistics, layer, layout_.trained);
    const RunningMoments about = MomentsIn(center ? center : statistics, layer, layout_.trained);
    const int64_t factor = layer.factor - layout_.trained;
    for (int64_t channel = 0; channel < layer.channels; ++channel) {
      const double off = moments.mean(channel) - (center ? about.mean(channel) : 0);
      out[layer.mean - layout_.trained + channel] = static_cast<float>(share * off);
      out[layer.variance - layout_.trained + channel] =
          static_cast<float>(share * (moments.variance(channel) + off * off));
    }
    out[factor] = static_cast<float>(share * static_cast<double>(statistics[factor]));
  }
}

void RoundFormula::TermsToStatistics(const float* center, float* statistics) const {
  if (settings_.batch_norm() == DistributedParameter::FIRST) return;
  for (const BatchNormPlaces& layer : layout_.batch_norms) {
    float* const means = statistics + layer.mean - layout_.trained;
    float* const variances = statistics + layer.variance - layout_.trained;
    const double factor = static_cast<double>(statistics[layer.factor - layout_.trained]);
    const RunningMoments about = MomentsIn(center ? center : statistics, layer, layout_.trained);
    for (int64_t channel = 0; channel < layer.channels; ++channel) {
      const double off = static_cast<double>(means[channel]), square = static_cast<double>(variances[channel]);
      PutVariance(off + (center ? about.mean(channel) : 0), square - off * off, factor, means + channel,
                  variances + channel);
    }
  }
}

void RoundFormula::OuterUpdate(int workers, const float* anchor, const float* mean, const float* velocity, float* out,
                               float* next_velocity) const {
  // With more workers than 1 / elastic_rate the center would be thrown beyond their mean.
  const double rate = settings_.mode() == DistributedParameter::ELASTIC
                          ? std::min(1.0, workers * ElasticRate(settings_))
                          : static_cast<double>(settings_.outer_lr());
  const double momentum =
      settings_.outer_momentum_by_workers() ? 1.0 - 1.0 / workers : static_cast<double>(settings_.outer_momentum());
  const bool nesterov = settings_.outer_nesterov();
  if (rate == 1 && !velocity) {
    if (out != mean) std::copy_n(mean, layout_.trained, out);
    return;
  }
  ParallelFor(layout_.trained, kNumbersPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double gradient = static_cast<double>(anchor[i]) - static_cast<double>(mean[i]);
      double step = rate * gradient;
      if (velocity) {
        const double moved = momentum * static_cast<double>(velocity[i]) + step;
        next_velocity[i] = static_cast<float>(moved);
        step = nesterov ? step + momentum * moved : moved;
      }
      out[i] = static_cast<float>(static_cast<double>(anchor[i]) - step);
    }
  });
}

void RoundFormula::AddDifferences(const float* anchor, std::span<const WeighedValues> differences, float* out) const {
  const double rate = static_cast<double>(settings_.outer_lr());
  ParallelFor(layout_.trained, kNumbersPerThread, [&](int64_t first, int64_t last) {
    double sums[kSummedAtOnce];
    for (int64_t at = first; at < last; at += kSummedAtOnce) {
      const int64_t size = std::min(kSummedAtOnce, last - at);
      for (int64_t i = 0; i < size; ++i) sums[i] = static_cast<double>(anchor[at + i]);
      for (const WeighedValues& difference : differences) {
        const double factor = rate * difference.weight;
        const float* const values = difference.values + at;
        for (int64_t i = 0; i < size; ++i) sums[i] += factor * static_cast<double>(values[i]);
      }
      for (int64_t i = 0; i < size; ++i) out[at + i] = static_cast<float>(sums[i]);
    }
  });
}

}  // namespace crema
