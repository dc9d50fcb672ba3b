#include "distributed/averaging/peer_averaging.h"

#include <algorithm>

#include "crema/error.h"

namespace crema {

namespace {

constexpr uint64_t kCutUnit = 64;
// Where gradients leave while others are being made: enough of them that little is left to send behind the last one,
// and each large enough that it is worth its messages.
constexpr uint64_t kBuckets = 8, kLeastBucketBytes = 64 << 10, kMostBucketBytes = 4 << 20;

PeerCoding::Range PlacesOf(uint64_t begin, uint64_t end) {
  return {static_cast<int64_t>(begin / sizeof(float)), static_cast<int64_t>(end / sizeof(float))};
}

std::unique_ptr<PeerCoding> CodingOf(const DistributedParameter& settings, const StateLayout& layout) {
  const bool coded =
      settings.codec() != DistributedParameter::NONE || settings.down_codec() != DistributedParameter::NONE;
  return coded && settings.topology() == DistributedParameter::SHARDED ? std::make_unique<PeerCoding>(settings, layout)
                                                                       : nullptr;
}

}  // namespace

PeerAveraging::PeerAveraging(const DistributedParameter& settings, StateLayout layout, GradientUpdate update)
    : formula_(settings, std::move(layout)),
      update_(std::move(update)),
      codes_differences_(settings.mode() != DistributedParameter::GRADIENT),
      in_buckets_(settings.overlap() == DistributedParameter::BACKWARD),
      warmup_rounds_(settings.codec_warmup_rounds()),
      coding_(CodingOf(settings, formula_.layout())) {}

void PeerAveraging::Settle(bool committed) {
  if (coding_) coding_->Settle(committed);
}

void PeerAveraging::Forget() {
  if (coding_) coding_->Forget();
}

uint64_t PeerAveraging::most_piece_bytes() const { return coding_ ? coding_->most_bytes() : layout().bytes(true); }

std::span<const float> PeerAveraging::AnchorOf(const ExchangePlan& plan) const {
  return codes_differences_ ? FloatsOf(plan.from).first(static_cast<size_t>(layout().trained))
                            : std::span<const float>();
}

std::vector<double> PeerAveraging::WeightsOf(const ExchangePlan& plan) const {
  std::vector<double> weights;
  for (const uint64_t examples : plan.examples) {
    if (examples == 0) return {};
    weights.push_back(formula_.WeightOf(examples));
  }
  return weights;
}

Payload PeerAveraging::Offer(const Payload& values, bool with_history) const {
  const uint64_t bytes = layout().bytes(with_history);
  if (!values || !AreValues(values->size()) || values->size() < bytes) return nullptr;
  if (!AllFinite(FloatsOf(values).first(bytes / sizeof(float)))) return nullptr;
  if (values->size() == bytes) return values;
  return std::make_shared<Bytes>(values->begin(), values->begin() + static_cast<int64_t>(bytes));
}

Payload PeerAveraging::Conclude(const ExchangePlan& plan, const Payload& mean, bool with_history,
                                const Payload& from) const {
  const StateLayout& layout = this->layout();
  if (plan.size() == 0 || !mean || mean->size() != layout.bytes(with_history) || !from ||
      (from->size() != layout.state_bytes(false) && from->size() != layout.state_bytes(true))) {
    return nullptr;
  }
  const auto next = NewPayload(layout.state_bytes(with_history));
  float* const out = FloatsOf(*next);
  const float* const values = FloatsOf(mean).data();
  try {
    Step(plan, FloatsOf(from).data(), values, out);
  } catch (const EnvironmentError&) {
    return nullptr;
  }
  std::copy(values + layout.trained, values + layout.values, out + layout.trained);
  if (with_history) std::copy_n(values + layout.values, layout.history, out + layout.history_in_state());
  return AllFinite(FloatsOf(next)) ? next : nullptr;
}

void PeerAveraging::Step(const ExchangePlan& plan, const float* from, const float* mean, float* next) const {
  const StateLayout& layout = this->layout();
  if (update_) {
    std::copy(from, from + layout.trained, next);
    float* const history = next + layout.shared_history_in_state();
    std::copy_n(from + layout.shared_history_in_state(), layout.shared_history, history);
    return update_(plan.iteration, mean, next, history);
  }
  const bool has_velocity = layout.velocity > 0;
  formula_.OuterUpdate(plan.size(), from, mean, has_velocity ? from + layout.velocity_in_state() : nullptr, next,
                       has_velocity ? next + layout.velocity_in_state() : nullptr);
}

std::vector<uint64_t> PeerAveraging::Cuts(uint64_t bytes, int pieces) const {
  const uint64_t statistics = static_cast<uint64_t>(layout().trained) * sizeof(float), behind = layout().bytes(false);
  std::vector<uint64_t> cuts = {0};
  for (int i = 1; i < pieces; ++i) {
    uint64_t cut = bytes / kCutUnit * static_cast<uint64_t>(i) / static_cast<uint64_t>(pieces) * kCutUnit;
    if (coding_)
      cut = static_cast<uint64_t>(coding_->CutNear(static_cast<int64_t>(cut / sizeof(float)))) * sizeof(float);
    cuts.push_back(cut > statistics && cut < behind ? statistics : cut);
  }
  cuts.push_back(bytes);
  return cuts;
}

int PeerAveraging::Buckets(uint64_t bytes) const {
  if (!in_buckets_) return 1;
  const uint64_t wanted = std::max(kBuckets, (bytes + kMostBucketBytes - 1) / kMostBucketBytes);
  return static_cast<int>(std::min(wanted, std::max<uint64_t>(1, bytes / kLeastBucketBytes)));
}

void PeerAveraging::Begin(const ExchangePlan&) const {
  if (coding_) coding_->Settle(false);
}

Payload PeerAveraging::Piece(const ExchangePlan& plan, const Payload& values, uint64_t begin, uint64_t end) const {
  const std::span<const float> piece = FloatsOf(values).subspan(begin / sizeof(float), (end - begin) / sizeof(float));
  // Of values that are still being made nobody else has looked at this.
  if (!AllFinite(piece)) return nullptr;
  if (!coding_) return ExchangeMath::Piece(plan, values, begin, end);
  return coding_->Encode(Direction::kUp, PlacesOf(begin, end), piece.data(), AnchorOf(plan), Exactly(plan));
}

Payload PeerAveraging::Gather(const ExchangePlan& plan, std::span<const uint64_t> cuts,
                              std::span<const Payload> combined) const {
  if (!coding_) return ExchangeMath::Gather(plan, cuts, combined);
  std::vector<Payload> pieces(combined.begin(), combined.end());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i]) continue;
    pieces[i] = coding_->Decode(Direction::kDown, PlacesOf(cuts[i], cuts[i + 1]), pieces[i], AnchorOf(plan));
    if (!pieces[i]) return nullptr;
  }
  return ExchangeMath::Gather(plan, cuts, pieces);
}

Payload PeerAveraging::Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                               std::span<const Payload> pieces) const {
  if (!coding_) return MeanOf(plan, begin, end, pieces);
  const PeerCoding::Range places = PlacesOf(begin, end);
  std::vector<Payload> decoded;
  for (const Payload& piece : pieces) {
    decoded.push_back(coding_->Decode(Direction::kUp, places, piece, AnchorOf(plan)));
  }
  const Payload mean = MeanOf(plan, begin, end, decoded);
  if (!mean) return nullptr;
  return coding_->Encode(Direction::kDown, places, FloatsOf(mean).data(), AnchorOf(plan), Exactly(plan));
}

Payload PeerAveraging::MeanOf(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                              std::span<const Payload> pieces) const {
  const std::vector<double> weights = WeightsOf(plan);
  if (weights.empty() || pieces.size() != weights.size() || begin % sizeof(float) != 0 || end % sizeof(float) != 0 ||
      begin > end || end > layout().bytes(true)) {
    return nullptr;
  }
  std::vector<WeighedValues> terms;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i] || pieces[i]->size() != end - begin) return nullptr;
    terms.push_back({FloatsOf(pieces[i]).data(), weights[i]});
  }
  const auto combined = NewPayload(end - begin);
  float* const out = FloatsOf(*combined);
  // Places count from the first value.
  const int64_t first = static_cast<int64_t>(begin / sizeof(float)), last = static_cast<int64_t>(end / sizeof(float));
  const auto from = [&](int64_t place) {
    std::vector<WeighedValues> moved = terms;
    for (WeighedValues& term : moved) term.values += place - first;
    return moved;
  };
  const auto mean = [&](int64_t from_place, int64_t to_place) {
    return from_place >= to_place || WeighedMean(from(from_place), to_place - from_place, out + from_place - first);
  };
  const int64_t trained = layout().trained, values = layout().values;
  if (std::max(first, trained) < std::min(last, values)) {
    // Parts of them do not say what they mean.
    if (first > trained || last < values) return nullptr;
    if (!formula_.PoolStatistics(from(trained), out + trained - first)) return nullptr;
  }
  const bool finite = mean(first, std::min(last, trained)) && mean(std::max(first, values), last);
  return finite ? combined : nullptr;
}

const float* PeerAveraging::StatisticsIn(const Payload& state) const {
  return state ? FloatsOf(state).subspan(static_cast<size_t>(layout().trained)).data() : nullptr;
}

Payload PeerAveraging::Term(const ExchangePlan& plan, const Payload& values) const {
  const std::vector<double> weights = WeightsOf(plan);
  if (weights.empty() || plan.rank < 0 || plan.rank >= plan.size() || !values || !AreValues(values->size())) {
    return nullptr;
  }
  const std::span<const float> in = FloatsOf(values);
  // Its bits are the result.
  if (plan.size() == 1) return AllFinite(in) ? values : nullptr;
  double total = 0;
  for (const double weight : weights) total += weight;
  const double share = weights[static_cast<size_t>(plan.rank)] / total;
  const auto term = NewPayload(values->size());
  float* const out = FloatsOf(*term);
  const int64_t trained = layout().trained, count = static_cast<int64_t>(in.size());
  const auto scale = [&](int64_t from, int64_t to) {
    return ScaleValues(in.data() + from, share, to - from, out + from);
  };
  formula_.StatisticsToTerm(in.data() + trained, StatisticsIn(plan.from), share, plan.rank == 0, out + trained);
  const bool finite =
      AllFinite(in.subspan(static_cast<size_t>(trained), static_cast<size_t>(layout().values - trained))) &&
      AllFinite({out + trained, static_cast<size_t>(layout().values - trained)});
  return finite && scale(0, trained) && scale(layout().values, count) ? term : nullptr;
}

Payload PeerAveraging::Add(const Payload& a, const Payload& b) const {
  if (!a || !b || a->size() != b->size() || a->size() % sizeof(float) != 0 || a->size() > most_piece_bytes()) {
    return nullptr;
  }
  const auto sum = NewPayload(a->size());
  const std::span<const float> first = FloatsOf(a);
  const bool finite = AddValues(first.data(), FloatsOf(b).data(), static_cast<int64_t>(first.size()), FloatsOf(*sum));
  return finite ? sum : nullptr;
}

Payload PeerAveraging::Finish(const ExchangePlan& plan, std::span<const Payload> sum) const {
  uint64_t bytes = 0;
  for (const Payload& piece : sum) {
    if (!piece || piece->size() > most_piece_bytes()) return nullptr;
    bytes += piece->size();
  }
  if (plan.size() == 0 || !AreValues(bytes)) return nullptr;
  const auto values = std::make_shared<Bytes>();
  values->reserve(static_cast<size_t>(bytes));
  for (const Payload& piece : sum) values->insert(values->end(), piece->begin(), piece->end());
  if (plan.size() > 1) formula_.TermsToStatistics(StatisticsIn(plan.from), FloatsOf(*values) + layout().trained);
  return AllFinite(FloatsOf(Payload(values))) ? Payload(values) : nullptr;
}

}  // namespace crema
