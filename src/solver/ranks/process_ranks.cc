// Training by several processes, each of which is a rank (SolverOptions::processes).
#include <algorithm>
#include <utility>
#include <vector>

#include "base/crc32.h"
#include "base/listed.h"
#include "graph/program.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

// Bits of Processes::Ask.
constexpr uint32_t kSnapshot = 1, kStop = 2;

class Digest {
 public:
  void Add(const void* data, size_t bytes) {
    crc_ = Crc32(data, bytes, crc_);
    bytes_ += bytes;
  }
  void Add(int64_t number) { Add(&number, sizeof number); }
  std::string text() const { return std::to_string(bytes_) + " " + std::to_string(crc_); }

 private:
  uint32_t crc_ = 0;
  uint64_t bytes_ = 0;
};

// Of how gradients lie, which are summed as they are stored, and of the order in which they come.
std::string DigestOfLayout(const Net& net) {
  Digest digest;
  for (const Parameter& parameter : net.parameters()) {
    digest.Add(static_cast<int64_t>(parameter.data.bytes()));
    digest.Add(parameter.trained);
    if (!parameter.layout) continue;
    std::vector<float> places(static_cast<size_t>(parameter.layout->plain_count()));
    std::vector<float> stored(static_cast<size_t>(parameter.layout->count()));
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<float>(i % (1 << 24));
    parameter.layout->FromPlain(places.data(), stored.data());
    digest.Add(stored.data(), stored.size() * sizeof(float));
  }
  for (const Step& step : net.compiled().program.backward) {
    if (step.kind == StepKind::kUseGradient) digest.Add(step.param);
  }
  return digest.text();
}

bool AllSame(const std::vector<std::string>& texts) {
  return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return text == texts[0]; });
}

}  // namespace

void Solver::Impl::ConnectProcesses(NetPlans& plans) {
  Processes& processes = *options.processes;
  InAll([this] { RefuseInputs("in one process only: train without MPI"); });
  // Other processors may have other forms of weights.
  if (!AllSame(processes.Gather(DigestOfLayout(*net)))) {
    plans.train.options.skip_passes.push_back("lay_out_weights");
    InAll([&] {
      net.reset();
      BuildTrainNet(plans);
    });
    const std::vector<std::string> layouts = processes.Gather(DigestOfLayout(*net));
    InAll([&] {
      if (layouts[static_cast<size_t>(rank)] == layouts[0]) return;
      throw EnvironmentError("the parameters of the net lie otherwise in memory than those of rank 0, on machine \"" +
                             processes.machines()[0] + "\": train on machines of one kind");
    });
  }
  group.push_back(processes.Connect(*device));
  communicator = group[0].get();
  exchange = std::make_unique<GradientExchange>(*net, *device, *communicator);
}

void Solver::Impl::ShareState(bool at_start) {
  Processes& processes = *options.processes;
  std::vector<std::byte> host;
  const auto share = [&](const Tensor& tensor) {
    host.resize(tensor.bytes());
    if (rank == 0) device->CopyOut(tensor.raw(), host.data(), host.size());
    processes.Broadcast(host.data(), host.size());
    if (rank > 0) device->CopyIn(host.data(), tensor.raw(), host.size());
  };
  for (const Parameter& parameter : std::as_const(*net).parameters()) {
    if (at_start || parameter.trained) share(parameter.data);
  }
  for (int h = 0; h < updater->histories(); ++h) share(updater->history(h));
  net->ParametersChanged();
  if (updater->loss_factor()) {
    LossScale scale = updater->ReadLossScale();
    processes.Broadcast(&scale, sizeof scale);
    if (rank > 0) updater->RestoreLossScale(scale);
  }
  if (!at_start) return;
  int64_t numbers[2] = {iteration, snapshots->iteration()};
  processes.Broadcast(numbers, sizeof numbers);
  iteration = static_cast<int>(numbers[0]);
  snapshots->set_iteration(static_cast<int>(numbers[1]));
  processes.Broadcast(&plateau, sizeof plateau);
  std::vector<uint64_t> records;
  net->CopyDataPositions(&records);
  processes.Broadcast(records.data(), records.size() * sizeof records[0]);
  if (rank > 0) net->set_data_positions(records);
}

void Solver::Impl::CompareRanks() {
  if (!options.processes) return;
  Settle();
  Digest digest;
  std::vector<std::byte> host;
  const auto add = [&](const Tensor& tensor) {
    host.resize(tensor.bytes());
    device->CopyOut(tensor.raw(), host.data(), host.size());
    digest.Add(host.data(), host.size());
  };
  for (const Parameter& parameter : std::as_const(*net).parameters()) {
    if (parameter.trained) add(parameter.data);
  }
  for (int h = 0; h < updater->histories(); ++h) add(updater->history(h));
  const std::vector<std::string> digests = options.processes->Gather(digest.text());
  if (AllSame(digests)) return;
  std::vector<size_t> others;
  for (size_t r = 1; r < digests.size(); ++r) {
    if (digests[r] != digests[0]) others.push_back(r);
  }
  Warn({}, "the parameters of rank " + Listed(others, {.most = kAllNames}) +
               " were not those of rank 0 in every bit, and are replaced by them: the processors are of different "
               "kinds, or the sums of this MPI are not the same in all ranks");
  ShareState(false);
}

bool Solver::Impl::AsTheFirst(bool decision) {
  if (!options.processes) return decision;
  return communicator->SumOnHost(rank == 0 && !decision ? 1 : 0) == 0;
}

void Solver::Impl::AskTheOthers() const {
  if (!options.processes) return;
  const SolverAction action = RequestedAction();
  if (action == SolverAction::kSnapshot) options.processes->Ask(kSnapshot);
  if (action == SolverAction::kStop) options.processes->Ask(kStop);
}

Solver::Impl::Requests Solver::Impl::TakeRequests() const {
  if (options.processes) {
    const uint32_t asked = options.processes->Asked();
    return {(asked & kSnapshot) != 0, (asked & kStop) != 0};
  }
  const SolverAction action = RequestedAction();
  return {action == SolverAction::kSnapshot, action == SolverAction::kStop};
}

}  // namespace crema
