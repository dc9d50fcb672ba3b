#include "distributed/simulated_training.h"

#include <cstring>
#include <stdexcept>

#include "distributed/journal/digest.h"

namespace crema {

namespace {

constexpr ptrdiff_t kFixedBytes = 16;
constexpr uint64_t kNotFinite = 0x7FF8'0000'0000'0000;

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t WordAt(const Payload& values, size_t i) {
  uint64_t word;
  std::memcpy(&word, values->data() + 8 * i, 8);
  return word;
}

Payload PayloadOfWords(const std::vector<uint64_t>& words) {
  auto bytes = std::make_shared<Bytes>(8 * words.size());
  std::memcpy(bytes->data(), words.data(), bytes->size());
  return bytes;
}

}  // namespace

bool IsFinite(const Payload& values) { return values->size() < 8 || WordAt(values, 0) != kNotFinite; }

void Tally::Add(const Steps& steps) {
  count += steps.count;
  for (uint64_t step = steps.first; step < steps.end(); ++step) {
    sum += Mix(step);
    mixed ^= Mix(~step);
  }
}

void Tally::Update(uint64_t iteration) { updates = Mix(updates ^ Mix(iteration)); }

void Tally::Move(const Tally& other, const Tally& base) {
  count += other.count - base.count;
  sum += other.sum - base.sum;
  mixed ^= other.mixed ^ base.mixed;
}

Payload ParametersOf(const Tally& tally, size_t words) {
  std::vector<uint64_t> all(words);
  all[0] = tally.count;
  all[1] = tally.sum;
  all[2] = tally.mixed;
  for (size_t i = 3; i < words; ++i) all[i] = Mix(tally.count ^ Mix(tally.sum + i) ^ tally.mixed ^ tally.updates);
  if (words > 4) all[4] = tally.updates;
  return PayloadOfWords(all);
}

Payload NotFinite(size_t words) { return PayloadOfWords(std::vector<uint64_t>(words, kNotFinite)); }

Tally TallyOf(const Payload& values) {
  if (values->size() < 32 || values->size() % 8 != 0) throw std::logic_error("these are no parameters");
  Tally tally{WordAt(values, 0), WordAt(values, 1), WordAt(values, 2)};
  if (values->size() > 32) tally.updates = WordAt(values, 4);
  if (*ParametersOf(tally, values->size() / 8) != *values) throw std::logic_error("parameters are torn");
  return tally;
}

std::string SimulatedRoundMath::Check(Contribution& contribution) {
  if (!IsFinite(contribution.values)) return "a value is not finite";
  TallyOf(contribution.values);
  return "";
}

Payload SimulatedRoundMath::Reduce(const Round& round, const std::vector<Contribution>& contributions) {
  const Tally anchor = TallyOf(state_);
  if (kind_ == Simulated::kApart) return next_ = ParametersOf(TallyOf(contributions[0].values), words_);
  Tally tally = anchor;
  for (const Contribution& c : contributions) {
    tally.Move(TallyOf(c.values), kind_ == Simulated::kParameters ? anchor : Tally{});
  }
  if (kind_ == Simulated::kGradients) tally.Update(round.iteration);
  next_ = ParametersOf(tally, words_);
  return next_;
}

void SimulatedRoundMath::Accept() {
  const uint64_t before = DigestOf(*state_);
  state_ = next_;
  auto difference = std::make_shared<Bytes>(sizeof before + state_->size());
  std::memcpy(difference->data(), &before, sizeof before);
  std::memcpy(difference->data() + sizeof before, state_->data(), state_->size());
  difference_ = difference;
}

Payload SimulatedRoundMath::Whole(const Payload& state) {
  auto whole = std::make_shared<Bytes>(*state);
  whole->resize(whole->size() + kFixedBytes);
  return whole;
}

Payload SimulatedWorkerMath::Decode(Work::Form form, const Payload& sent, const Payload& last) {
  if (form == Work::WHOLE) {
    has_all_ = true;
    return std::make_shared<Bytes>(sent->begin(), sent->end() - kFixedBytes);
  }
  if (!has_all_) return nullptr;
  if (form == Work::STATE) return sent;
  if (!last || WordAt(sent, 0) != DigestOf(*last)) return nullptr;
  return std::make_shared<Bytes>(sent->begin() + sizeof(uint64_t), sent->end());
}

Payload SimulatedWorkerMath::Rebase(const Payload& values, bool, const Payload& from, const Payload& to) {
  if (!IsFinite(values) || kind_ == Simulated::kGradients || kind_ == Simulated::kApart) return values;
  Tally tally = TallyOf(to);
  tally.Move(TallyOf(values), TallyOf(from));
  return ParametersOf(tally, values->size() / 8);
}

Payload SimulatedWorkerMath::Encode(const Payload& values, const Payload& from, uint64_t) {
  if (kind_ != Simulated::kDifferences || !IsFinite(values)) return values;
  Tally difference;
  difference.Move(TallyOf(values), TallyOf(from));
  return ParametersOf(difference, words_);
}

std::vector<uint64_t> SimulatedExchangeMath::Cuts(uint64_t bytes, int pieces) const {
  std::vector<uint64_t> cuts;
  for (int i = 0; i <= pieces; ++i) {
    cuts.push_back(bytes / 8 * static_cast<uint64_t>(i) / static_cast<uint64_t>(pieces) * 8);
  }
  return cuts;
}

Payload SimulatedExchangeMath::Piece(const ExchangePlan& plan, const Payload& values, uint64_t begin,
                                     uint64_t end) const {
  for (uint64_t at = begin; at < end; at += 8) {
    if (WordAt(values, at / 8) == kNotFinite) return nullptr;
  }
  return ExchangeMath::Piece(plan, values, begin, end);
}

// [begin, end), the number of pieces, the pieces.
Payload SimulatedExchangeMath::Combine(const ExchangePlan& plan, uint64_t begin, uint64_t end,
                                       std::span<const Payload> pieces) const {
  const uint64_t head[] = {begin, end, pieces.size()};
  const auto all = std::make_shared<Bytes>(sizeof head);
  std::memcpy(all->data(), head, sizeof head);
  if (pieces.size() != plan.examples.size()) return nullptr;
  for (const Payload& piece : pieces) {
    if (piece->size() != end - begin) return nullptr;
    all->insert(all->end(), piece->begin(), piece->end());
  }
  return all;
}

Payload SimulatedWorkerMath::Offer(const Payload& values, bool with_history) {
  if (!IsFinite(values)) return nullptr;
  if (with_history) return values;
  return std::make_shared<Bytes>(values->begin(), values->begin() + static_cast<ptrdiff_t>(8 * words_));
}

Payload SimulatedWorkerMath::Conclude(const ExchangePlan& plan, const Payload& exchanged, bool with_history,
                                      const Payload& from) {
  const size_t bytes = 8 * words_ * (with_history ? 2 : 1);
  std::vector<std::shared_ptr<Bytes>> values;
  for (int i = 0; i < plan.size(); ++i) values.push_back(std::make_shared<Bytes>());
  size_t at = 0;
  while (at + 24 <= exchanged->size()) {
    uint64_t head[3];
    std::memcpy(head, exchanged->data() + at, sizeof head);
    at += sizeof head;
    const uint64_t count = head[1] - head[0];
    if (head[2] != values.size() || values[0]->size() != head[0] || at + count * head[2] > exchanged->size()) {
      throw std::logic_error("pieces of an exchange do not fit each other");
    }
    for (const auto& one : values) {
      one->insert(one->end(), exchanged->begin() + static_cast<ptrdiff_t>(at),
                  exchanged->begin() + static_cast<ptrdiff_t>(at + count));
      at += count;
    }
  }
  const Tally anchor = TallyOf(from);
  Tally tally = anchor;
  for (const auto& one : values) {
    if (one->size() != bytes) throw std::logic_error("an exchange lacks pieces");
    tally.Move(TallyOf(one), kind_ == Simulated::kGradients ? Tally{} : anchor);
  }
  if (kind_ == Simulated::kGradients) tally.Update(plan.iteration);
  return ParametersOf(tally, words_);
}

}  // namespace crema
