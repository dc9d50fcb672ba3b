#include "solver/rules/updater.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "ops/operations.h"
#include "solver/rules/rates.h"

namespace crema {

namespace {

constexpr int64_t kSegment = 16 * 1024;
constexpr int64_t kSegmentOfGpu = 8 * 1024;  // a block's: of small nets, longer ones would keep few units busy
constexpr int64_t kSegmentsPerThread = 4;

double SumOfSquaresInOrder(const float* x, int64_t n) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) lanes[lane] += double{x[i + lane]} * x[i + lane];
  }
  for (; i < n; ++i) lanes[0] += double{x[i]} * x[i];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

std::unique_ptr<UpdateRule> RuleOf(const SolverParameter& solver) {
  const UpdateRuleType* type = FindUpdateRule(UpdateRuleName(solver));
  CREMA_CHECK(type != nullptr) << "unchecked solver type " << UpdateRuleName(solver);
  return type->make(solver);
}

}  // namespace

Updater::Updater(const SolverParameter& solver, std::span<const Parameter> parameters, Device& device, int ranks,
                 bool half_precision)
    : rule_(RuleOf(solver)),
      clip_gradients_(solver.clip_gradients()),
      iter_size_(static_cast<float>(solver.iter_size())),
      ranks_(ranks),
      device_(device),
      local_eta_(solver.larc() ? solver.larc_eta() : 0),
      local_clips_(solver.larc_policy() == "clip"),
      local_rates_(solver.larc() ? parameters.size() : 0),
      multi_(OperationsOf(device).multi_updater()) {
  if (solver.momentum_policy() != "fixed") momentum_policy_ = solver;
  // Histories lie one behind the other. Those of a GPU, which loads packs, begin as aligned as parameters do.
  const auto room = [&](const Parameter& parameter) {
    const int64_t count = parameter.data.count();
    return multi_ ? (count + 15) / 16 * 16 : count;
  };
  int64_t total = 0;
  for (const Parameter& parameter : parameters) total += room(parameter);
  total *= rule_->histories();
  memory_ = Buffer(device, static_cast<size_t>(total) * sizeof(float));
  float* at = reinterpret_cast<float*>(memory_.data());
  ClearHistories();
  for (int moment = 0; moment < rule_->histories(); ++moment) {
    for (const Parameter& parameter : parameters) {
      histories_.emplace_back(at, parameter.data.spec());
      at += room(parameter);
    }
  }

  const WeightDecay decay_type = rule_->decouples_decay()               ? WeightDecay::kDecoupled
                                 : solver.regularization_type() == "L1" ? WeightDecay::kL1
                                                                        : WeightDecay::kL2;
  const int64_t segment = multi_ ? kSegmentOfGpu : kSegment;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Parameter& parameter = parameters[p];
    segments_of_.push_back(segments_.size());
    if (!parameter.trained) continue;
    const float decay = solver.weight_decay() * parameter.decay_mult;
    for (int64_t begin = 0; begin < parameter.data.count(); begin += segment) {
      UpdateChunk chunk;
      chunk.data = parameter.data.f32() + begin;
      if (parameter.grad.defined()) chunk.gradient = parameter.grad.f32() + begin;
      for (int moment = 0; moment < rule_->histories(); ++moment) {
        chunk.history[moment] = histories_[moment * parameters.size() + p].f32() + begin;
      }
      chunk.count = std::min(segment, parameter.data.count() - begin);
      chunk.decay_type = decay == 0 ? WeightDecay::kNone : decay_type;
      chunk.decay = decay;
      chunk.parameter = static_cast<int64_t>(p);
      segments_.push_back({chunk, parameter.lr_mult, begin});
    }
  }
  segments_of_.push_back(segments_.size());
  squares_.resize(segments_.size());
  if (local_eta_ > 0) value_squares_.resize(segments_.size());
  if (!multi_ || segments_.empty()) return;

  std::vector<UpdateChunk> chunks;
  for (const Segment& segment : segments_) {
    chunks.push_back(segment.chunk);
    chunks.back().rate = chunks.back().decay_rate = segment.lr_mult;
  }
  chunks_ = Buffer(device, chunks.size() * sizeof(UpdateChunk));
  device.CopyIn(chunks.data(), chunks_.data(), chunks_.bytes());
  const std::vector<int64_t> first_chunks(segments_of_.begin(), segments_of_.end());
  if (local_eta_ > 0) {
    first_chunks_ = Buffer(device, first_chunks.size() * sizeof(int64_t));
    device.CopyIn(first_chunks.data(), first_chunks_.data(), first_chunks_.bytes());
  }
  // The norm, squares of gradients, and for local rates those of values, and a ratio for each parameter.
  norm_memory_ = Buffer(device, (1 + chunks.size() + value_squares_.size() + local_rates_.size()) * sizeof(double));
  norms_ = PinnedBuffer(static_cast<Gpu&>(device), 2 * sizeof(double));
  if (!half_precision) return;
  adapts_ = solver.loss_scale() == 0;
  loss_scale_memory_ = Buffer(device, sizeof(LossScale));
  loss_scales_ = PinnedBuffer(static_cast<Gpu&>(device), 2 * sizeof(LossScale));
  RestoreLossScale({.scale = adapts_ ? kFirstLossScale : solver.loss_scale()});
}

void Updater::ClearHistories() {
  const auto numbers = static_cast<int64_t>(memory_.bytes() / sizeof(float));
  if (numbers == 0) return;
  OperationsOf(device_).Fill(0, Tensor(reinterpret_cast<float*>(memory_.data()), {Shape{numbers}, DType::kF32}));
}

double Updater::GradientNorm() {
  ParallelFor(static_cast<int64_t>(segments_.size()), kSegmentsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      squares_[s] = SumOfSquaresInOrder(segments_[s].chunk.gradient, segments_[s].chunk.count);
    }
  });
  double sum = 0;
  for (const double part : squares_) sum += part;
  return std::sqrt(sum) / ranks_;
}

float Updater::ClipScale(double norm) const {
  return clip_gradients_ >= 0 && norm > clip_gradients_ ? static_cast<float>(clip_gradients_ / norm) : 1.0f;
}

bool Updater::TakesGradientsSingly(const SolverParameter& solver) {
  return solver.iter_size() == 1 && solver.clip_gradients() <= 0;
}

int Updater::HistoriesOf(const SolverParameter& solver) { return RuleOf(solver)->histories(); }

void Updater::Begin(int iteration, float rate, float clip_scale) {
  iteration_ = iteration;
  if (momentum_policy_) rule_->SetMomentum(MomentumAt(*momentum_policy_, iteration, rate));
  gradient_scale_ = clip_scale / (iter_size_ * static_cast<float>(ranks_));
  rate_ = rate * rule_->RateFactor(iteration);
  decay_rate_ = rate;
  given_.assign(segments_of_.size() - 1, false);
}

void Updater::FindLocalRate(size_t parameter, const float* gradient) {
  const auto first = static_cast<int64_t>(segments_of_[parameter]);
  const auto count = static_cast<int64_t>(segments_of_[parameter + 1]) - first;
  ParallelFor(count, kSegmentsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t s = first + begin; s < first + end; ++s) {
      const Segment& segment = segments_[s];
      squares_[s] = SumOfSquaresInOrder(gradient + segment.offset, segment.chunk.count);
      value_squares_[s] = SumOfSquaresInOrder(segment.chunk.data, segment.chunk.count);
    }
  });
  double values = 0, gradients = 0;
  for (int64_t s = first; s < first + count; ++s) {
    values += value_squares_[s];
    gradients += squares_[s];
  }
  const double ratio = LocalRatio(local_eta_, values, gradients);
  local_rates_[parameter] = LocalRate(local_clips_, rate_, ratio, gradient_scale_);
}

void Updater::Update(const Segment& segment, float* gradient) const {
  UpdateChunk chunk = segment.chunk;
  chunk.gradient = gradient;
  chunk.gradient_scale = gradient_scale_;
  chunk.rate = local_eta_ > 0 ? local_rates_[static_cast<size_t>(chunk.parameter)] : rate_ * segment.lr_mult;
  chunk.decay_rate = decay_rate_ * segment.lr_mult;
  rule_->Update(chunk);
}

double Updater::NormOf(int iteration) const { return reinterpret_cast<const double*>(norms_.data())[iteration % 2]; }

const float* Updater::loss_factor() const { return loss_scale_memory_.data() ? &loss_scale()->scale : nullptr; }

LossScale Updater::LossScaleOf(int iteration) const {
  return loss_factor() ? reinterpret_cast<const LossScale*>(loss_scales_.data())[iteration % 2] : LossScale();
}

LossScale Updater::DivideGradients() {
  multi_->DivideByLossScale(AllAtOnce());
  return ReadLossScale();
}

LossScale Updater::ReadLossScale() const {
  LossScale now;
  device_.CopyOut(loss_scale(), &now, sizeof now);
  return now;
}

void Updater::RestoreLossScale(const LossScale& now) { device_.CopyIn(&now, loss_scale(), sizeof now); }

MultiUpdate Updater::AllAtOnce() const {
  MultiUpdate update;
  update.chunks = reinterpret_cast<const UpdateChunk*>(chunks_.data());
  update.count = static_cast<int64_t>(segments_.size());
  update.rate = rate_;
  update.decay_rate = decay_rate_;
  update.gradient_scale = gradient_scale_;
  update.largest_norm = std::max(0.0f, clip_gradients_);
  update.norm_scale = 1 / ranks_;
  update.norm = reinterpret_cast<double*>(norm_memory_.data());
  update.squares = update.norm + 1;
  update.local_eta = local_eta_;
  update.local_clips = local_clips_;
  update.parameters = static_cast<int64_t>(local_rates_.size());
  update.first_chunks = reinterpret_cast<const int64_t*>(first_chunks_.data());
  update.value_squares = update.squares + segments_.size();
  update.ratios = update.value_squares + value_squares_.size();
  update.loss_scale = loss_scale();
  update.loss_scale_adapts = adapts_;
  return update;
}

void Updater::ApplyAtOnce(bool scaled) {
  if (segments_.empty()) return;
  MultiUpdate update = AllAtOnce();
  if (!scaled) update.loss_scale = nullptr;
  multi_->Update(rule_->formula(), update);
  if (update.loss_scale) {
    LossScale* const now = reinterpret_cast<LossScale*>(loss_scales_.data()) + iteration_ % 2;
    static_cast<Gpu&>(device_).CopyOutLater(update.loss_scale, now, sizeof *now);
  }
  if (update.largest_norm == 0) return;
  double* const norm = reinterpret_cast<double*>(norms_.data()) + iteration_ % 2;
  static_cast<Gpu&>(device_).CopyOutLater(update.norm, norm, sizeof(double));
}

void Updater::Apply(bool scaled) {
  if (multi_) return ApplyAtOnce(scaled);
  for (size_t p = 0; p < local_rates_.size(); ++p) {
    const size_t first = segments_of_[p];
    if (first < segments_of_[p + 1]) FindLocalRate(p, segments_[first].chunk.gradient);
  }
  ParallelFor(static_cast<int64_t>(segments_.size()), kSegmentsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) Update(segments_[s], segments_[s].chunk.gradient);
  });
}

void Updater::OnGradient(int parameter, const Tensor& gradient) {
  if (local_eta_ > 0) FindLocalRate(static_cast<size_t>(parameter), gradient.f32());
  given_[static_cast<size_t>(parameter)] = true;
  const Segment* const segments = segments_.data() + segments_of_[parameter];
  const int64_t count = static_cast<int64_t>(segments_of_[parameter + 1] - segments_of_[parameter]);
  ParallelFor(count, kSegmentsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) Update(segments[s], gradient.f32() + segments[s].offset);
  });
}

void Updater::UpdateOthers() {
  for (size_t p = 0; p < given_.size(); ++p) {
    if (given_[p] || segments_of_[p] == segments_of_[p + 1]) continue;
    const Segment& last = segments_[segments_of_[p + 1] - 1];
    std::vector<float> zeros(static_cast<size_t>(last.offset + last.chunk.count));
    OnGradient(static_cast<int>(p), Tensor(zeros.data(), {Shape{static_cast<int64_t>(zeros.size())}, DType::kF32}));
  }
}

}  // namespace crema
