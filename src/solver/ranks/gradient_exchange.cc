#include "solver/ranks/gradient_exchange.h"

#include <algorithm>

#include "base/check.h"
#include "device/gpu.h"
#include "graph/program.h"
#include "ops/operations.h"

namespace crema {

GradientExchange::GradientExchange(const Net& net, Device& device, Communicator& communicator, size_t bucket_bytes)
    : device_(device), communicator_(communicator) {
  if (device.type() != DeviceType::kCpu) loss_ = Buffer(device, sizeof(float));
  for (const Step& step : net.compiled().program.backward) {
    if (step.kind == StepKind::kUseGradient) order_.push_back(step.param);
  }
  const auto parameters = net.parameters();
  std::vector<bool> announced(parameters.size(), false);
  for (const int p : order_) announced[p] = true;

  // All gradients lie in one block, in the order of the parameters. Between those of a bucket may lie some that no pass
  // writes: they are zero, and summed along.
  const auto add = [&](std::vector<int> bucket, size_t behind) {
    std::sort(bucket.begin(), bucket.end());
    for (size_t i = 0; i < bucket.size(); ++i) {
      const Tensor& grad = parameters[bucket[i]].grad;
      const bool follows = i > 0 && std::none_of(announced.begin() + bucket[i - 1] + 1, announced.begin() + bucket[i],
                                                 [](bool other) { return other; });
      if (!follows) sums_.push_back({behind, grad.f32(), 0});
      sums_.back().count = grad.f32() + grad.count() - sums_.back().data;
    }
  };
  std::vector<int> bucket;
  size_t bytes = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    bucket.push_back(order_[i]);
    bytes += parameters[order_[i]].grad.bytes();
    if (bytes < bucket_bytes && i + 1 < order_.size()) continue;
    add(std::move(bucket), i + 1);
    bucket.clear();
    bytes = 0;
  }
}

void GradientExchange::OnGradient(int parameter, const Tensor&) {
  CREMA_CHECK(came_ < order_.size() && order_[came_] == parameter) << "gradients come in another order";
  if (came_++ == 0) ShareLoss();
  while (summed_ < sums_.size() && sums_[summed_].behind == came_) {
    communicator_.SumInPlace(sums_[summed_].data, sums_[summed_].count);
    ++summed_;
  }
}

void GradientExchange::ShareLoss() {
  if (device_.type() == DeviceType::kCpu) return;
  const auto loss = reinterpret_cast<float*>(loss_.data());
  static_cast<Gpu&>(device_).CopyLoss(loss);
  communicator_.SumInPlace(loss, 1);
}

void GradientExchange::Finish() {
  CREMA_CHECK(came_ == order_.size() && summed_ == sums_.size()) << "gradients are missing";
  came_ = summed_ = 0;
  communicator_.Join();
  if (device_.type() == DeviceType::kCpu || order_.empty()) return;
  // Updates look at this loss: it is not finite where that of any rank is not.
  const auto loss = reinterpret_cast<const float*>(loss_.data());
  OperationsOf(device_).AddLoss(1, 1, loss, false, &static_cast<Gpu&>(device_).result()->loss);
}

}  // namespace crema
