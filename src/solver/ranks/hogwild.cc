#include "solver/ranks/hogwild.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/communicator.h"
#include "solver/statistics.h"

namespace crema {

bool TrainsHogwild(const SolverParameter& solver) {
  return solver.has_distributed() && solver.distributed().mode() == DistributedParameter::HOGWILD;
}

void HogwildProgress::Begin(int first, int end) {
  const std::lock_guard lock(mutex_);
  std::fill(done_.begin(), done_.end(), first);
  under_way_.clear();
  begun_ = taken_ = first;
  end_ = end;
}

int HogwildProgress::Slowest() const { return *std::min_element(done_.begin(), done_.end()); }

bool HogwildProgress::Enter(int thread) {
  std::unique_lock lock(mutex_);
  const int iteration = done_[thread];
  moved_.wait(lock, [&] { return aborted_ || iteration >= end_ || iteration < Slowest() + kMostAhead; });
  if (aborted_) throw Aborted();
  if (iteration >= end_) return false;
  begun_ = std::max(begun_, iteration + 1);
  return true;
}

void HogwildProgress::Leave(int thread, double loss, std::optional<std::vector<OutputValue>> outputs) {
  {
    const std::lock_guard lock(mutex_);
    const int iteration = done_[thread]++;
    Finished& finished = under_way_[iteration];
    finished.iteration = iteration;
    finished.loss += loss / static_cast<double>(done_.size());
    if (outputs) finished.outputs = std::move(outputs);
  }
  moved_.notify_all();
}

void HogwildProgress::Pause() {
  {
    const std::lock_guard lock(mutex_);
    end_ = std::min(end_, begun_);
  }
  moved_.notify_all();
}

void HogwildProgress::Abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
  }
  moved_.notify_all();
}

std::vector<HogwildProgress::Finished> HogwildProgress::TakeFinished() {
  const std::lock_guard lock(mutex_);
  std::vector<Finished> finished;
  for (const int slowest = Slowest(); taken_ < slowest; ++taken_) {
    finished.push_back(std::move(under_way_.extract(taken_).mapped()));
  }
  return finished;
}

void PoolStatistics(const std::vector<Net*>& nets) {
  const double share = 1.0 / static_cast<double>(nets.size());
  const auto blob = [](const Net* net, int parameter) {
    return net->parameters()[static_cast<size_t>(parameter)].data;
  };
  for (const StatisticsBlobs& blobs : StatisticsOf(*nets[0])) {
    const auto [means, variances, weights] = blobs.parameters;
    double weight = 0;
    std::vector<RunningMoments> moments;
    for (const Net* net : nets) {
      const float own = blob(net, weights).f32()[0];
      weight += share * static_cast<double>(own);
      moments.emplace_back(blob(net, means).f32(), blob(net, variances).f32(), own);
    }
    for (int64_t channel = 0; channel < blob(nets[0], means).count(); ++channel) {
      double mean = 0, square = 0;
      for (const RunningMoments& one : moments) {
        mean += share * one.mean(channel);
        square += share * one.square(channel);
      }
      for (const Net* net : nets) {
        PutMoments(mean, square, weight, blob(net, means).f32() + channel, blob(net, variances).f32() + channel);
      }
    }
    for (const Net* net : nets) blob(net, weights).f32()[0] = static_cast<float>(weight);
  }
  for (Net* net : nets) net->ParametersChanged();
}

}  // namespace crema
