#include "distributed/simulated_training.h"

#include <cstring>
#include <stdexcept>

#include "distributed/digest.h"

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

Payload PayloadOf(const std::vector<uint64_t>& words) {
  auto bytes = std::make_shared<std::vector<std::byte>>(8 * words.size());
  std::memcpy(bytes->data(), words.data(), bytes->size());
  return bytes;
}

}  // namespace

void Tally::Add(const Steps& steps) {
  count += steps.count;
  for (uint64_t step = steps.first; step < steps.end(); ++step) {
    sum += Mix(step);
    mixed ^= Mix(~step);
  }
}

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
  for (size_t i = 3; i < words; ++i) all[i] = Mix(tally.count ^ Mix(tally.sum + i) ^ tally.mixed);
  return PayloadOf(all);
}

Payload NotFinite(size_t words) { return PayloadOf(std::vector<uint64_t>(words, kNotFinite)); }

Tally TallyOf(const Payload& values) {
  if (values->size() < 32 || values->size() % 8 != 0) throw std::logic_error("these are no parameters");
  const Tally tally{WordAt(values, 0), WordAt(values, 1), WordAt(values, 2)};
  if (*ParametersOf(tally, values->size() / 8) != *values) throw std::logic_error("parameters are torn");
  return tally;
}

std::string SimulatedRoundMath::Check(Contribution& contribution) {
  if (contribution.values->size() >= 8 && WordAt(contribution.values, 0) == kNotFinite) return "a value is not finite";
  TallyOf(contribution.values);
  return "";
}

Payload SimulatedRoundMath::Reduce(const Round&, const std::vector<Contribution>& contributions) {
  const Tally anchor = TallyOf(state_);
  Tally tally = anchor;
  for (const Contribution& c : contributions) tally.Move(TallyOf(c.values), anchor);
  next_ = ParametersOf(tally, words_);
  return next_;
}

void SimulatedRoundMath::Accept() {
  const uint64_t before = DigestOf(*state_);
  state_ = next_;
  auto difference = std::make_shared<std::vector<std::byte>>(sizeof before + state_->size());
  std::memcpy(difference->data(), &before, sizeof before);
  std::memcpy(difference->data() + sizeof before, state_->data(), state_->size());
  difference_ = difference;
}

Payload SimulatedRoundMath::Whole(const Payload& state) {
  auto whole = std::make_shared<std::vector<std::byte>>(*state);
  whole->resize(whole->size() + kFixedBytes);
  return whole;
}

Payload SimulatedWorkerMath::Decode(Work::Form form, const Payload& sent, const Payload& last) {
  if (form == Work::WHOLE) {
    has_all_ = true;
    return std::make_shared<std::vector<std::byte>>(sent->begin(), sent->end() - kFixedBytes);
  }
  if (!has_all_) return nullptr;
  if (form == Work::STATE) return sent;
  if (!last || WordAt(sent, 0) != DigestOf(*last)) return nullptr;
  return std::make_shared<std::vector<std::byte>>(sent->begin() + sizeof(uint64_t), sent->end());
}

Payload SimulatedWorkerMath::Rebase(const Payload& values, bool, const Payload& from, const Payload& to) {
  if (WordAt(values, 0) == kNotFinite) return values;
  Tally tally = TallyOf(to);
  tally.Move(TallyOf(values), TallyOf(from));
  return ParametersOf(tally, values->size() / 8);
}

}  // namespace crema
