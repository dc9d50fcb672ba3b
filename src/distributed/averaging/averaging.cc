#include "distributed/averaging/averaging.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "base/stopwatch.h"
#include "crema/solver.h"

namespace crema {

namespace {

// Whether workers send what is to be added to the parameters, rather than parameters.
bool SendsDifferences(const DistributedParameter& settings) {
  return settings.mode() == DistributedParameter::GRADIENT || settings.mode() == DistributedParameter::STALE;
}

// Whether this is a codec between workers and coordinator: with other topologies values come here as they are.
bool CodesHere(const DistributedParameter& settings, DistributedParameter::Codec codec) {
  return codec != DistributedParameter::NONE && settings.topology() == DistributedParameter::STAR;
}

}  // namespace

Averaging::Averaging(const DistributedParameter& settings, StateLayout layout, Payload state,
                     std::vector<float> velocity)
    : settings_(settings),
      formula_(settings, std::move(layout)),
      layout_(formula_.layout()),
      state_(std::move(state)),
      velocity_(std::move(velocity)) {
  CREMA_CHECK(state_->size() == layout_.state_bytes(false) || state_->size() == layout_.state_bytes(true));
  if (!HasOuterMomentum(settings_)) velocity_.clear();  // of a snapshot of other settings
  CREMA_CHECK(layout_.velocity == 0 || velocity_.empty());
  if (layout_.velocity == 0 && velocity_.empty() && HasOuterMomentum(settings_)) {
    velocity_.resize(static_cast<size_t>(layout_.trained));
  }
  CREMA_CHECK(velocity_.empty() || velocity_.size() == static_cast<size_t>(layout_.trained));
  if (CodesHere(settings_, settings_.codec())) up_.emplace(CodecOf(settings_, Direction::kUp), layout_);
  if (CodesHere(settings_, settings_.down_codec())) {
    down_.emplace(CodecOf(settings_, Direction::kDown), layout_);
    down_decoder_.emplace(CodecOf(settings_, Direction::kDown), layout_);
  }
}

// Workers may push a state, too, that a coordinator lost.
uint64_t Averaging::most_push_bytes() const { return std::max(layout_.state_bytes(true), up_ ? up_->most_bytes() : 0); }

std::vector<float> Averaging::velocity() const {
  if (layout_.velocity == 0) return velocity_;
  const std::span<const float> velocity = VelocityIn(layout_, state_);
  return {velocity.begin(), velocity.end()};
}

Payload Averaging::Whole(const Payload& state) {
  if (!fixed_ || fixed_->empty()) return state;
  const auto whole = std::make_shared<Bytes>(*state);
  whole->insert(whole->end(), fixed_->begin(), fixed_->end());
  return whole;
}

std::string Averaging::Check(Contribution& contribution) {
  if (up_) {
    try {
      contribution.values =
          up_->Decode(contribution.values, SendsDifferences(settings_) ? std::span<const float>() : FloatsOf(state_));
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

std::vector<WeighedValues> Averaging::Terms(const std::vector<Contribution>& contributions, int64_t begin,
                                            int64_t end) const {
  std::vector<WeighedValues> terms;
  for (const Contribution& contribution : contributions) {
    const std::span<const float> values = FloatsOf(contribution.values);
    if (static_cast<int64_t>(values.size()) < end) continue;
    terms.push_back({values.data() + begin, formula_.WeightOf(contribution.push.examples())});
  }
  return terms;
}

void Averaging::Mean(const std::vector<Contribution>& contributions, int64_t begin, int64_t end, float* out) const {
  WeighedMean(Terms(contributions, begin, end), end - begin, out);
}

void Averaging::PoolStatistics(const std::vector<Contribution>& contributions, float* out) const {
  formula_.PoolStatistics(Terms(contributions, layout_.trained, layout_.values), out + layout_.trained);
}

Payload Averaging::AddDifferences(const Round& round, const std::vector<Contribution>& contributions) const {
  const auto next = NewPayload(layout_.state_bytes(false));
  float* const out = FloatsOf(*next);
  const float* const anchor = FloatsOf(state_).data();
  std::vector<WeighedValues> terms;
  double rest = 1;
  for (const Contribution& c : contributions) {
    const double share = settings_.weight_by_examples() ? c.share : 1.0 / round.workers;
    terms.push_back({FloatsOf(c.values).data(), share});
    rest -= share;
  }
  formula_.AddDifferences(anchor, terms, out);
  // Statistics are what they are; those who brought nothing keep what was.
  for (WeighedValues& term : terms) term.values += layout_.trained;
  constexpr double kNothing = 1e-9;
  if (rest > kNothing) terms.push_back({anchor + layout_.trained, rest});
  formula_.PoolStatistics(terms, out + layout_.trained);
  return next;
}

Payload Averaging::Reduce(const Round& round, const std::vector<Contribution>& contributions) {
  const ScopeTimer timer(&reduce_seconds_);
  if (settings_.mode() == DistributedParameter::STALE) return next_state_ = AddDifferences(round, contributions);
  // A contribution that comes from an earlier round may lack the history.
  const bool with_history =
      round.with_history && std::any_of(contributions.begin(), contributions.end(),
                                        [](const Contribution& c) { return c.push.with_history(); });
  const auto next = NewPayload(layout_.state_bytes(with_history));
  float* const out = FloatsOf(*next);
  const float* const anchor = FloatsOf(state_).data();
  const float* velocity = nullptr;
  float* next_velocity = nullptr;
  if (layout_.velocity > 0) {
    velocity = anchor + layout_.velocity_in_state();
    next_velocity = out + layout_.velocity_in_state();
  } else if (!velocity_.empty()) {
    next_velocity_.resize(velocity_.size());
    velocity = velocity_.data();
    next_velocity = next_velocity_.data();
  }
  Mean(contributions, 0, layout_.trained, out);
  formula_.OuterUpdate(static_cast<int>(contributions.size()), anchor, out, velocity, out, next_velocity);
  PoolStatistics(contributions, out);
  if (with_history) {
    Mean(contributions, layout_.values, layout_.values + layout_.history, out + layout_.history_in_state());
  }
  next_state_ = Compressed(round, next);
  return next_state_;
}

Payload Averaging::Compressed(const Round& round, const Payload& next) {
  if (!down_) return next;
  const bool exactly = round.version < settings_.codec_warmup_rounds();
  try {
    next_difference_ = down_->Encode(FloatsOf(next), FloatsOf(state_), exactly);
  } catch (const NonFiniteValue&) {
    throw NotFinite("the parameters are not finite any more: lower base_lr or outer_lr");
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
  const ScopeTimer timer(&reduce_seconds_);
  Abandon();
  pending_ = true;
  std::vector<float, KeptAllocator<float>> gradient(static_cast<size_t>(layout_.trained));
  Mean(contributions, 0, layout_.trained, gradient.data());
  const auto next = NewPayload(layout_.state_bytes(false));
  float* const out = FloatsOf(*next);
  const std::span<const float> now = FloatsOf(state_);
  std::copy(now.begin(), now.end(), out);
  update_.apply(round.iteration, gradient.data(), out,
                layout_.shared_history > 0 ? out + layout_.shared_history_in_state() : nullptr);
  PoolStatistics(contributions, out);
  next_state_ = Compressed(round, next);
  return next_state_;
}

void GradientMean::Abandon() {
  if (std::exchange(pending_, false)) update_.undo();
}

void GradientMean::Accept() {
  Averaging::Accept();
  pending_ = false;
}

LocalMoves::LocalMoves(const DistributedParameter& settings, StateLayout layout, uint64_t fixed_bytes,
                       std::function<void(Payload)> on_fixed, GradientUpdate update)
    : settings_(settings),
      peers_(settings, std::move(layout), std::move(update)),
      layout_(peers_.layout()),
      fixed_bytes_(fixed_bytes),
      on_fixed_(std::move(on_fixed)) {
  if (CodesHere(settings_, settings_.codec())) up_.emplace(CodecOf(settings_, Direction::kUp), layout_);
  if (CodesHere(settings_, settings_.down_codec())) down_.emplace(CodecOf(settings_, Direction::kDown), layout_);
}

uint64_t LocalMoves::most_state_bytes() const {
  return std::max(layout_.state_bytes(true) + fixed_bytes_, down_ ? down_->most_bytes() : 0);
}

Payload LocalMoves::Encode(const Payload& values, const Payload& from, uint64_t version) {
  // What it gave to an exchange before counts no more.
  peers_.Settle(false);
  if (!up_) return settings_.mode() == DistributedParameter::STALE ? DifferenceTo(values, from) : values;
  const bool gradients = settings_.mode() == DistributedParameter::GRADIENT;
  try {
    return up_->Encode(FloatsOf(values), gradients ? std::span<const float>() : FloatsOf(from),
                       version < settings_.codec_warmup_rounds());
  } catch (const NonFiniteValue&) {
    return nullptr;
  }
}

// Statistics and history as they are.
Payload LocalMoves::DifferenceTo(const Payload& values, const Payload& from) const {
  const auto difference = std::make_shared<Bytes>(*values);
  float* const out = FloatsOf(*difference);
  const float* const anchor = FloatsOf(from).data();
  ParallelFor(layout_.trained, 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] -= anchor[i];
  });
  return difference;
}

Payload LocalMoves::Own(const Payload& values, const Payload& from) {
  if (settings_.mode() != DistributedParameter::ELASTIC) return nullptr;
  const double rate = ElasticRate(settings_);
  const auto own =
      std::make_shared<Bytes>(values->begin(), values->begin() + static_cast<ptrdiff_t>(layout_.bytes(false)));
  float* const out = FloatsOf(*own);
  const float* const center = FloatsOf(from).data();
  ParallelFor(layout_.trained, 1 << 15, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double mine = static_cast<double>(out[i]);
      out[i] = static_cast<float>(mine - rate * (mine - static_cast<double>(center[i])));
    }
  });
  return own;
}

void LocalMoves::Settle(Outcome outcome) {
  // Rather forget what was left out than send it twice.
  if (outcome == Outcome::kUnknown) {
    peers_.Forget();
  } else {
    peers_.Settle(outcome == Outcome::kCommitted);
  }
  if (!up_) return;
  if (outcome == Outcome::kUnknown) {
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
    if (on_fixed_) on_fixed_(std::make_shared<Bytes>(middle, sent->end()));
    return std::make_shared<Bytes>(sent->begin(), middle);
  }
  if (!down_ || !last) return nullptr;
  try {
    return down_->Decode(sent, FloatsOf(last));
  } catch (const MalformedCode&) {
    return nullptr;
  }
}

Payload LocalMoves::Rebase(const Payload& values, bool with_history, const Payload& from, const Payload& to) {
  // Gradients belong to no parameters, and parameters of the worker's own do not follow the center.
  if (settings_.mode() == DistributedParameter::GRADIENT || settings_.mode() == DistributedParameter::ELASTIC ||
      settings_.mode() == DistributedParameter::TOURNAMENT) {
    return values;
  }
  CREMA_CHECK(values->size() == layout_.bytes(with_history));
  const auto moved = std::make_shared<Bytes>(*values);
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

Payload LocalMoves::Offer(const Payload& values, bool with_history) { return peers_.Offer(values, with_history); }

const ExchangeMath* LocalMoves::exchange() const {
  return settings_.topology() == DistributedParameter::STAR ? nullptr : &peers_;
}

Payload LocalMoves::Conclude(const ExchangePlan& plan, const Payload& exchanged, bool with_history,
                             const Payload& from) {
  return peers_.Conclude(plan, exchanged, with_history, from);
}

}  // namespace crema
