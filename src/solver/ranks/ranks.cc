// Training by several ranks: copies of the net that share the records and the mean of their gradients.
#include <omp.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "graph/program.h"
#include "runtime/refuse_inputs.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

void CopyTensor(Device& from_device, const Tensor& from, Device& to_device, const Tensor& to) {
  CREMA_CHECK(from.spec() == to.spec()) << "ranks store parameters in different forms";
  if (from.raw() == to.raw()) return;
  std::vector<std::byte> host(from.bytes());
  from_device.CopyOut(from.raw(), host.data(), host.size());
  to_device.CopyIn(host.data(), to.raw(), host.size());
}

}  // namespace

Solver::Impl::Impl(const SolverFile& file, const Impl& first, int given_rank)
    : param(first.param),
      options(first.options),
      snapshots(first.snapshots),
      seed(first.seed),
      rank(given_rank),
      ranks(first.ranks),
      device(first.options.devices[given_rank]),
      communicator(first.hogwild ? nullptr : first.group[given_rank].get()),
      losses(std::max(1, first.param.average_loss())) {
  options.observers.clear();
  options.requested_action = {};
  NetPlans plans = PlanNets(file, options, Context{device, seed, options.data_threads, rank, ranks});
  BuildTrainNet(plans, first.hogwild ? first.net.get() : nullptr);
  MakeUpdater();
  if (communicator) exchange = std::make_unique<GradientExchange>(*net, *device, *communicator);
}

Solver::Impl::~Impl() {
  // Where an observer ended training, sums may still wait for a rank that goes away.
  if (!settled) communicator->Abort();
}

void Solver::Impl::MakeRanks(const SolverFile& file) {
  RefuseInputs("on the first device only: train on one device");
  communicator = group[0].get();
  exchange = std::make_unique<GradientExchange>(*net, *device, *communicator);
  for (int r = 1; r < ranks; ++r) others.push_back(std::make_unique<Impl>(file, *this, r));
  device->UseHere();
  // Ranks on the CPU sum in the order that one alone would.
  const bool on_cpu = device->type() == DeviceType::kCpu;
  const int threads = on_cpu ? omp_get_max_threads() : std::max(1, omp_get_max_threads() / ranks);
  threads_ = std::make_unique<RankThreads>(ranks, threads, [this] { communicator->Abort(); });
}

void Solver::Impl::RefuseInputs(const std::string& why) const {
  crema::RefuseInputs(*net, "the train net", "a program can write " + why);
}

void Solver::Impl::CopyToRanks() {
  const auto parameters = std::as_const(*net).parameters();
  for (int r = 1; r < ranks; ++r) {
    Impl& other = Rank(r);
    Device& to = *options.devices[r];
    const auto copies = std::as_const(*other.net).parameters();
    CREMA_CHECK(copies.size() == parameters.size());
    for (size_t p = 0; p < parameters.size(); ++p) CopyTensor(*device, parameters[p].data, to, copies[p].data);
    other.net->ParametersChanged();
    for (int h = 0; h < updater->histories(); ++h) {
      CopyTensor(*device, updater->history(h), to, other.updater->history(h));
    }
    if (updater->loss_factor()) other.updater->RestoreLossScale(updater->ReadLossScale());
    std::vector<uint64_t> records;
    net->CopyDataPositions(&records);
    other.net->set_data_positions(records);
    other.iteration = iteration;
    other.losses = losses;
    other.plateau = plateau;
  }
}

float Solver::Impl::RunIteration() {
  if (!threads_) {
    settled = communicator == nullptr;
    return Iterate(static_cast<uint64_t>(iteration));
  }
  settled = false;
  float loss = 0;
  threads_->Run([&](int r) {
    const float of_rank = Rank(r).Iterate(static_cast<uint64_t>(iteration));
    if (r == 0) loss = of_rank;
  });
  return loss;
}

float Solver::Impl::Forward() {
  if (!threads_) return ForwardOfRank();
  std::vector<double> losses_of_ranks(static_cast<size_t>(ranks));
  threads_->Run([&](int r) { losses_of_ranks[static_cast<size_t>(r)] = Rank(r).ForwardOfRank(); });
  if (communicator) return static_cast<float>(losses_of_ranks[0]);
  return static_cast<float>(std::accumulate(losses_of_ranks.begin(), losses_of_ranks.end(), 0.0) / ranks);
}

float Solver::Impl::ForwardOfRank() {
  // The pass is to be shown only: what it moves is put back, so that the test behind it is of the parameters in
  // the snapshot before it. (Caffe's is not.)
  MovingState before(net.get(), device);
  before.Keep();
  net->set_pass(static_cast<uint64_t>(iteration) * param.iter_size());
  const float loss = net->Forward();
  before.PutBack();
  return static_cast<float>(Mean(loss));
}

double Solver::Impl::Mean(double value) { return communicator ? communicator->SumOnHost(value) / ranks : value; }

void Solver::Impl::AwaitDevice() {
  const auto parameters = std::as_const(*net).parameters();
  float value = 0;
  if (!parameters.empty()) device->CopyOut(parameters[0].data.raw(), &value, sizeof value);
}

void Solver::Impl::Settle() {
  if (settled) return;
  if (threads_) {
    threads_->Run([this](int r) { Rank(r).AwaitDevice(); });
  } else {
    AwaitDevice();
  }
  settled = true;
}

}  // namespace crema
