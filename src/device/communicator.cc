#include "device/communicator.h"

#include "device/gpu.h"
#include "device/meeting.h"

namespace crema {

namespace {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int rank, Device& device, std::shared_ptr<Meeting> meeting)
      : rank_(rank), device_(device), meeting_(std::move(meeting)) {}

  int rank() const override { return rank_; }
  int ranks() const override { return meeting_->ranks(); }
  void SumInPlace(float* data, int64_t count) override {
    if (device_.type() == DeviceType::kCpu) return meeting_->SumInPlace(rank_, data, count);
    copy_.resize(static_cast<size_t>(count));
    const size_t bytes = copy_.size() * sizeof(float);
    device_.CopyOut(data, copy_.data(), bytes);
    meeting_->SumInPlace(rank_, copy_.data(), count);
    device_.CopyIn(copy_.data(), data, bytes);
  }
  void Join() override {}
  double SumOnHost(double value) override { return meeting_->Sum(rank_, value); }
  void Abort() override { meeting_->Abort(); }

 private:
  const int rank_;
  Device& device_;
  const std::shared_ptr<Meeting> meeting_;
  std::vector<float> copy_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> ConnectThreads(const std::vector<Device*>& devices) {
  const auto meeting = std::make_shared<Meeting>(static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<Communicator>> group;
  for (Device* device : devices) {
    group.push_back(std::make_unique<ThreadCommunicator>(static_cast<int>(group.size()), *device, meeting));
  }
  return group;
}

std::vector<std::unique_ptr<Communicator>> Connect(const std::vector<Device*>& devices) {
  if (devices[0]->type() == DeviceType::kCpu) return ConnectThreads(devices);
  std::vector<Gpu*> gpus;
  for (Device* device : devices) gpus.push_back(static_cast<Gpu*>(device));
  return ConnectGpus(gpus);
}

}  // namespace crema
