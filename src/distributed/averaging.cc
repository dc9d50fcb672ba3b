#include "distributed/averaging.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "crema/error.h"

namespace crema {

namespace {

static_assert(std::endian::native == std::endian::little, "payloads hold little-endian floats");

// Elements summed at a time: their sums stay in the first cache.
constexpr int64_t kBlock = 1024;

std::shared_ptr<std::vector<std::byte>> NewPayload(int64_t floats) {
  return std::make_shared<std::vector<std::byte>>(static_cast<size_t>(floats) * sizeof(float));
}

float* FloatsOf(std::vector<std::byte>& bytes) { return reinterpret_cast<float*>(bytes.data()); }

bool AllFinite(std::span<const float> values) {
  // The exponent's bits are all set in NaNs and infinities alone.
  uint32_t worst = 0;
  for (const float value : values) worst = std::max(worst, std::bit_cast<uint32_t>(value) & 0x7F800000u);
  return worst != 0x7F800000u;
}

}  // namespace

std::span<const float> FloatsOf(const Payload& payload) {
  CREMA_CHECK(payload && payload->size() % sizeof(float) == 0);
  return {reinterpret_cast<const float*>(payload->data()), payload->size() / sizeof(float)};
}

Averaging::Averaging(const DistributedParameter& settings, StateLayout layout, Payload state,
                     std::vector<float> velocity)
    : settings_(settings), layout_(std::move(layout)), state_(std::move(state)), velocity_(std::move(velocity)) {
  CREMA_CHECK(state_->size() == layout_.bytes(false) || state_->size() == layout_.bytes(true));
  if (velocity_.empty() && (settings_.outer_momentum() != 0 || settings_.outer_momentum_by_workers())) {
    velocity_.resize(static_cast<size_t>(layout_.trained));
  }
  CREMA_CHECK(velocity_.empty() || velocity_.size() == static_cast<size_t>(layout_.trained));
  if (settings_.codec() != DistributedParameter::NONE) up_.emplace(CodecOf(settings_, Direction::kUp), layout_);
  if (settings_.down_codec() != DistributedParameter::NONE) {
    down_.emplace(CodecOf(settings_, Direction::kDown), layout_);
    down_decoder_.emplace(CodecOf(settings_, Direction::kDown), layout_);
  }
}

uint64_t Averaging::most_push_bytes() const { return std::max(layout_.bytes(true), up_ ? up_->most_bytes() : 0); }

Payload Averaging::Whole(const Payload& state) {
  if (!fixed_ || fixed_->empty()) return state;
  const auto whole = std::make_shared<std::vector<std::byte>>(*state);
  whole->insert(whole->end(), fixed_->begin(), fixed_->end());
  return whole;
}

std::string Averaging::Check(Contribution& contribution) {
  if (up_) {
    const bool gradients = settings_.mode() == DistributedParameter::GRADIENT;
    try {
      contribution.values = up_->Decode(contribution.values, gradients ? std::span<const float>() : FloatsOf(state_));
    } catch (const MalformedCode& error) {
      return error.what();
    }
  }
  const uint64_t expected = layout_.bytes(contribution.push.with_history());
  if (contribution.values->size() != expected) {
    return "its values take " + std::to_string(contribution.values->size()) + " bytes, expected " +
           std::to_string(expected);
  }
  if (contribution.push.examples() == 0) return "it used no examples";
  if (!AllFinite(FloatsOf(contribution.values))) return "its values are not all finite";
  return "";
}

double Averaging::WeightOf(const Contribution& contribution) const {
  return settings_.weight_by_examples() ? static_cast<double>(contribution.push.examples()) : 1.0;
}

void Averaging::Mean(const std::vector<Contribution>& contributions, int64_t begin, int64_t end, float* out) const {
  struct Term {
    const float* values;
    double weight;
  };
  std::vector<Term> terms;
  double total = 0;
  for (const Contribution& contribution : contributions) {
    const std::span<const float> values = FloatsOf(contribution.values);
    if (static_cast<int64_t>(values.size()) < end) continue;
    terms.push_back({values.data() + begin, WeightOf(contribution)});
    total += terms.back().weight;
  }
  CREMA_CHECK(total > 0);
  if (terms.size() == 1) {
    std::memcpy(out, terms[0].values, static_cast<size_t>(end - begin) * sizeof(float));
    return;
  }
  ParallelFor(end - begin, 1 << 15, [&](int64_t first, int64_t last) {
    double sums[kBlock];
    for (int64_t at = first; at < last; at += kBlock) {
      const int64_t count = std::min(kBlock, last - at);
      std::fill_n(sums, count, 0.0);
      for (const Term& term : terms) {
        const float* const values = term.values + at;
        for (int64_t i = 0; i < count; ++i) sums[i] += term.weight * static_cast<double>(values[i]);
      }
      for (int64_t i = 0; i < count; ++i) out[at + i] = static_cast<float>(sums[i] / total);
    }
  });
}

void Averaging::PoolStatistics(const std::vector<Contribution>& contributions, float* out) const {
  if (layout_.values == layout_.trained) return;
  const std::span<const float> first = FloatsOf(contributions.front().values);
  std::copy(first.begin() + layout_.trained, first.begin() + layout_.values, out + layout_.trained);
  if (settings_.batch_norm() == DistributedParameter::FIRST || contributions.size() == 1) return;
  double total = 0;
  for (const Contribution& contribution : contributions) total += WeightOf(contribution);
  for (const BatchNormBlobs& layer : layout_.batch_norms) {
    double factor = 0;
    for (const Contribution& c : contributions) {
      factor += WeightOf(c) / total * static_cast<double>(FloatsOf(c.values)[static_cast<size_t>(layer.factor)]);
    }
    out[layer.factor] = static_cast<float>(factor);
    for (int64_t channel = 0; channel < layer.channels; ++channel) {
      double mean = 0, square = 0;
      for (const Contribution& c : contributions) {
        const float* const values = FloatsOf(c.values).data();
        const double scale = values[layer.factor] == 0 ? 0 : 1 / static_cast<double>(values[layer.factor]);
        const double m = static_cast<double>(values[layer.mean + channel]) * scale;
        const double v = static_cast<double>(values[layer.variance + channel]) * scale;
        mean += WeightOf(c) / total * m;
        square += WeightOf(c) / total * (v + m * m);
      }
      out[layer.mean + channel] = static_cast<float>(mean * factor);
      out[layer.variance + channel] = static_cast<float>(std::max(0.0, square - mean * mean) * factor);
    }
  }
}

void Averaging::OuterUpdate(int workers, float* values) {
  const double rate = static_cast<double>(settings_.outer_lr());
  const double momentum =
      settings_.outer_momentum_by_workers() ? 1.0 - 1.0 / workers : static_cast<double>(settings_.outer_momentum());
  next_velocity_ = velocity_;
  if (rate == 1 && velocity_.empty()) return;
  const float* const anchor = FloatsOf(state_).data();
  float* const velocity = next_velocity_.empty() ? nullptr : next_velocity_.data();
  ParallelFor(layout_.trained, 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double gradient = static_cast<double>(anchor[i]) - static_cast<double>(values[i]);
      double step = rate * gradient;
      if (velocity) {
        const double moved = momentum * static_cast<double>(velocity[i]) + step;
        velocity[i] = static_cast<float>(moved);
        step = settings_.outer_nesterov() ? step + momentum * moved : moved;
      }
      values[i] = static_cast<float>(static_cast<double>(anchor[i]) - step);
    }
  });
}

Payload Averaging::Reduce(const Round& round, const std::vector<Contribution>& contributions) {
  // A contribution that comes from an earlier round may lack the history.
  const bool with_history =
      round.with_history && std::any_of(contributions.begin(), contributions.end(),
                                        [](const Contribution& c) { return c.push.with_history(); });
  const auto next = NewPayload(layout_.values + (with_history ? layout_.history : 0));
  float* const out = FloatsOf(*next);
  Mean(contributions, 0, layout_.trained, out);
  OuterUpdate(static_cast<int>(contributions.size()), out);
  PoolStatistics(contributions, out);
  if (with_history) Mean(contributions, layout_.values, layout_.values + layout_.history, out + layout_.values);
  next_state_ = Compressed(round, next);
  return next_state_;
}

Payload Averaging::Compressed(const Round& round, const Payload& next) {
  if (!down_) return next;
  const bool exactly = round.version < settings_.codec_warmup_rounds();
  try {
    next_difference_ = down_->Encode(FloatsOf(next), FloatsOf(state_), exactly);
  } catch (const NonFiniteValue&) {
    throw EnvironmentError("the parameters are not finite any more: lower base_lr or outer_lr");
  }
  return down_decoder_->Decode(next_difference_, FloatsOf(state_));
}

void Averaging::Accept() {
  state_ = std::exchange(next_state_, nullptr);
  difference_ = std::exchange(next_difference_, nullptr);
  if (down_) down_->Settle(true);
  if (!next_velocity_.empty()) velocity_.swap(next_velocity_);
}

void Averaging::Restore(const Payload& state) { state_ = state; }

GradientMean::GradientMean(const DistributedParameter& settings, StateLayout layout, Payload state, Update update)
    : Averaging(settings, std::move(layout), std::move(state), {}), update_(std::move(update)) {}

Payload GradientMean::Reduce(const Round& round, const std::vector<Contribution>& contributions) {
  if (pending_) update_.undo();
  pending_ = true;
  std::vector<float> gradient(static_cast<size_t>(layout_.trained));
  Mean(contributions, 0, layout_.trained, gradient.data());
  const auto next = NewPayload(layout_.values);
  float* const out = FloatsOf(*next);
  const std::span<const float> now = FloatsOf(state_);
  std::copy(now.begin(), now.begin() + layout_.values, out);
  update_.apply(round.iteration, gradient.data(), out);
  PoolStatistics(contributions, out);
  next_state_ = Compressed(round, next);
  return next_state_;
}

void GradientMean::Accept() {
  Averaging::Accept();
  pending_ = false;
}

LocalMoves::LocalMoves(const DistributedParameter& settings, StateLayout layout, uint64_t fixed_bytes,
                       std::function<void(Payload)> on_fixed)
    : settings_(settings), layout_(std::move(layout)), fixed_bytes_(fixed_bytes), on_fixed_(std::move(on_fixed)) {
  if (settings_.codec() != DistributedParameter::NONE) up_.emplace(CodecOf(settings_, Direction::kUp), layout_);
  if (settings_.down_codec() != DistributedParameter::NONE)
    down_.emplace(CodecOf(settings_, Direction::kDown), layout_);
}

uint64_t LocalMoves::most_state_bytes() const {
  return std::max(layout_.bytes(true) + fixed_bytes_, down_ ? down_->most_bytes() : 0);
}

Payload LocalMoves::Encode(const Payload& values, const Payload& from, uint64_t version) {
  if (!up_) return values;
  const bool gradients = settings_.mode() == DistributedParameter::GRADIENT;
  try {
    return up_->Encode(FloatsOf(values), gradients ? std::span<const float>() : FloatsOf(from),
                       version < settings_.codec_warmup_rounds());
  } catch (const NonFiniteValue&) {
    return nullptr;
  }
}

void LocalMoves::Settle(Outcome outcome) {
  if (!up_) return;
  if (outcome == Outcome::kUnknown) {
    // Rather forget what was left out than send it twice.
    up_.emplace(CodecOf(settings_, Direction::kUp), layout_);
  } else {
    up_->Settle(outcome == Outcome::kCommitted);
  }
}

Payload LocalMoves::Decode(Work::Form form, const Payload& sent, const Payload& last) {
  if (form != Work::WHOLE && fixed_bytes_ > 0 && !has_fixed_) return nullptr;
  if (form == Work::STATE) return sent;
  if (form == Work::WHOLE) {
    has_fixed_ = true;
    if (sent->size() < fixed_bytes_) return nullptr;
    const auto middle = sent->end() - static_cast<int64_t>(fixed_bytes_);
    if (on_fixed_) on_fixed_(std::make_shared<std::vector<std::byte>>(middle, sent->end()));
    return std::make_shared<std::vector<std::byte>>(sent->begin(), middle);
  }
  if (!down_ || !last) return nullptr;
  try {
    return down_->Decode(sent, FloatsOf(last));
  } catch (const MalformedCode&) {
    return nullptr;
  }
}

Payload LocalMoves::Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) {
  if (settings_.mode() == DistributedParameter::GRADIENT) return values;
  CREMA_CHECK(values->size() == layout_.bytes(with_history));
  const auto moved = std::make_shared<std::vector<std::byte>>(*values);
  float* const out = FloatsOf(*moved);
  const float *const old_anchor = FloatsOf(from).data(), *const anchor = FloatsOf(to).data();
  ParallelFor(layout_.trained, 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<float>(static_cast<double>(anchor[i]) +
                                  (static_cast<double>(out[i]) - static_cast<double>(old_anchor[i])));
    }
  });
  return moved;
}

}  // namespace crema
