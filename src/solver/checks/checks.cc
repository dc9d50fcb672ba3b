// What is wrong with a training, or worth a word, before it begins.
#include <algorithm>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/hdf5.h"
#include "base/listed.h"
#include "device/device.h"
#include "graph/files_written.h"
#include "graph/program.h"
#include "solver/nets.h"
#include "solver/snapshots/snapshot_hdf5.h"
#include "solver/solver_impl.h"
#include "solver/test_outputs.h"

namespace crema {

namespace {

constexpr char kDetection[] = "detection";  // eval_type

using TrainingRole = SolverOptions::Role;

Location FieldIn(const SolverFile& file, const char* field) {
  return file.source ? file.source->Field(field) : Location{};
}

bool ComputesOnCpu(const SolverOptions& options) { return options.device->type() == DeviceType::kCpu; }

void CheckDevices(const SolverOptions& options, Diagnostics* found) {
  const std::vector<Device*>& devices = options.devices;
  for (size_t i = 1; i < devices.size(); ++i) {
    if (devices[i]->type() != options.device->type()) {
      found->Error({}, "devices of different kinds cannot train together: give only GPUs, or only the CPU");
      break;
    }
    if (!ComputesOnCpu(options) && std::count(devices.begin(), devices.end(), devices[i]) > 1) {
      found->Error({}, "GPU \"" + devices[i]->name() + "\" is given twice; each can train one copy of the net");
      break;
    }
  }
  if (devices.size() == 1) return;
  const std::string given = "uses one device, and " + std::to_string(devices.size()) + " are given; start a ";
  if (options.processes) found->Error({}, "each of the processes that train together " + given + "process for each");
  if (options.role != TrainingRole::kAlone) {
    found->Error({}, "a process that trains with others " + given + "worker for each");
  }
}

void CheckHogwildDevices(const SolverFile& file, const SolverOptions& options, Diagnostics* found) {
  if (options.role != TrainingRole::kAlone || !TrainsHogwild(file.solver)) return;
  if (!ComputesOnCpu(options)) {
    found->Error(
        FieldIn(file, "distributed"),
        "mode is HOGWILD, whose threads change parameters in the memory of the CPU, but this run computes on a "
        "GPU; train on the CPU, or, on GPUs, with mode: GRADIENT or AVERAGE");
  } else if (options.devices.size() > 1) {
    found->Error(FieldIn(file, "distributed"),
                 "mode is HOGWILD, and " + std::to_string(options.devices.size()) +
                     " devices are given; give the CPU alone, local_workers says how many threads");
  }
}

// What the file says of GPUs, which flags choose.
void WarnOfUnusedGpus(const SolverFile& file, const SolverOptions& options, Diagnostics* found) {
  const SolverParameter& param = file.solver;
  const bool on_cpu = ComputesOnCpu(options);
  if (param.device_id_size() > 1 && static_cast<int>(options.devices.size()) < param.device_id_size() &&
      options.role == TrainingRole::kAlone && !options.processes) {
    std::string gpus;
    for (const int id : param.device_id()) gpus += (gpus.empty() ? "" : ",") + std::to_string(id);
    found->Warning(FieldIn(file, "device_id"),
                   "device_id lists " + std::to_string(param.device_id_size()) + " GPUs but this run computes on " +
                       (on_cpu ? "the CPU" : "one device") + "; `train --gpu=" + gpus + "` computes on them");
  } else if (on_cpu && param.has_solver_mode() && param.solver_mode() == SolverParameter::GPU) {
    found->Warning(FieldIn(file, "solver_mode"),
                   "solver_mode is GPU but this run computes on the CPU; `train --gpu=" +
                       std::to_string(param.device_id_size() > 0 ? param.device_id(0) : 0) + "` computes on a GPU");
  }
}

void CheckStart(const SolverOptions& options, Diagnostics* found) {
  if (!options.weights.empty() && !options.snapshot.empty() && options.snapshot != "auto") {
    found->Error({}, "both weights and a snapshot are given; a snapshot holds its own weights: give one of the two");
  }
  if (options.role == TrainingRole::kWorker && (!options.weights.empty() || !options.snapshot.empty())) {
    found->Error({}, "a worker gets its parameters from the coordinator; give weights and snapshots to that");
  }
}

// What is not there, or not to be had, where others train, too.
void CheckRole(const SolverFile& file, const SolverOptions& options, Diagnostics* found) {
  const SolverParameter& param = file.solver;
  const bool leads = options.role == TrainingRole::kCoordinator;
  if (param.has_ema() && (leads || TrainsHogwild(param))) {
    found->Error(FieldIn(file, "ema"),
                 std::string("ema is not there ") +
                     (TrainsHogwild(param) ? "where threads share parameters (mode: HOGWILD)"
                                           : "where workers train, whose parameters are averaged anyway") +
                     "; remove it");
  }
  if (options.role != TrainingRole::kAlone && param.lr_policy() == "plateau") {
    found->Error(FieldIn(file, "lr_policy"),
                 "lr_policy \"plateau\" goes by the loss of each iteration, which workers do not know of each other "
                 "when they begin the next: each would drop at another one; use \"multistep\" or \"cosine\", or train "
                 "with engine: MPI");
  }
  if (leads && param.snapshot_diff() && !options.exchanges_gradients) {
    found->Warning(FieldIn(file, "snapshot_diff"), "snapshot_diff has no effect: gradients stay with the workers");
  }
}

// Throws EnvironmentError.
void TryToWriteSnapshots(const std::string& prefix, bool hdf5) {
  try {
    const AtomicFile probe(prefix + "_iter_probe");
    if (hdf5) CreateHdf5(probe.temporary());
  } catch (const EnvironmentError& error) {
    throw EnvironmentError("snapshots cannot be written to snapshot_prefix \"" + prefix + "\": " + error.what());
  }
}

}  // namespace

void Solver::Impl::Check(const SolverFile& file) {
  Diagnostics found;
  const auto add = [&found](const std::vector<Diagnostic>& list) {
    for (const Diagnostic& d : list) {
      d.severity == Diagnostic::Severity::kError ? found.Error(d.where, d.message) : found.Warning(d.where, d.message);
    }
  };
  CREMA_CHECK(!options.processes || options.role == Role::kAlone);
  add(file.warnings);
  add(CheckSolver(file));
  add(MissingNets(file, options));
  CheckDevices(options, &found);
  CheckHogwildDevices(file, options, &found);
  WarnOfUnusedGpus(file, options, &found);
  CheckStart(options, &found);
  CheckRole(file, options, &found);
  if (options.role != Role::kWorker && rank == 0 && (param.snapshot() > 0 || param.snapshot_after_train())) {
    if (snapshots->prefix().empty()) {
      found.Error(FieldIn(file, "snapshot_prefix"), "snapshot_prefix is missing: where snapshots are written");
    }
    if (!found.has_errors()) TryToWriteSnapshots(snapshots->prefix(), snapshots->format() == SolverParameter::HDF5);
  }
  found.ThrowIfErrors();
  for (const Diagnostic& warning : found.list()) Tell(&Observer::OnNotice, warning);
}

void Solver::Impl::CheckNamesForHdf5() const {
  if (param.snapshot_format() != SolverParameter::HDF5 || options.role == Role::kWorker) return;
  std::vector<std::string> layers;
  for (const Node& node : net->compiled().graph.nodes) {
    if (!node.params.empty()) layers.push_back(node.name());
  }
  for (const TestsLayer& layer : GivenToTests()) layers.push_back(layer.node->name());
  if (const auto unfit = UnfitForHdf5(layers)) {
    throw UserError("snapshot_format is HDF5, where the parameters of layer \"" + *unfit +
                    "\" cannot lie under its name; give it another one, or use snapshot_format: BINARYPROTO");
  }
}

// What would be told only when the first snapshot is due, which may be at the end.
void Solver::Impl::CheckSnapshotSize() const {
  const bool writes = param.snapshot() > 0 || param.snapshot_after_train() || param.has_best();
  if (param.snapshot_format() == SolverParameter::HDF5 || options.role == Role::kWorker || !writes) return;
  uint64_t model = 0, state = 0;
  const auto parameters = std::as_const(*net).parameters();
  const auto bytes_of = [&](size_t i) { return static_cast<uint64_t>(parameters[i].shape.count()) * sizeof(float); };
  for (size_t i = 0; i < parameters.size(); ++i) model += bytes_of(i) * (param.snapshot_diff() ? 2 : 1);
  for (const TestsLayer& layer : GivenToTests()) {
    for (const ParamRequest& given : layer.node->setup->params()) {
      model += static_cast<uint64_t>(given.shape.count()) * sizeof(float);
    }
  }
  for (int i = 0; i < updater->histories(); ++i) state += bytes_of(static_cast<size_t>(i) % parameters.size());
  if (param.has_ema()) state += model;
  const uint64_t largest = std::max(model, state);
  if (largest <= kProtobufLimit) return;
  throw UserError("snapshots would have files of " + std::to_string(largest >> 20) +
                  " MiB, and those of protobuf end at 2048 MiB; set snapshot_format: HDF5");
}

void Solver::Impl::CheckEvalType(const SolverFile& file) const {
  const Location where = FieldIn(file, "eval_type");
  for (size_t i = 0; i < test_nets.size(); ++i) {
    const TestOutputs outputs(*test_nets[i]);
    const std::string name = "test net #" + std::to_string(i);
    const std::vector<std::string> detections = outputs.detections();
    if (param.eval_type() != kDetection && !detections.empty()) {
      throw UserError(where, "output \"" + detections[0] + "\" of " + name +
                                 " is of a DetectionEvaluate layer, whose rows have no mean; set eval_type: "
                                 "\"detection\" for the mean average precision");
    }
    if (param.eval_type() == kDetection && detections.empty()) {
      const std::string known = Listed(outputs.names());
      throw UserError(where, "eval_type is \"detection\", but " + name + " has no output of a DetectionEvaluate layer" +
                                 (known.empty() ? "" : "; it has " + known) +
                                 ": add that layer, or remove eval_type for the means of outputs");
    }
  }
}

// Within a net the compiler looks.
void Solver::Impl::RefuseOverwriting() const {
  std::vector<std::pair<const Net*, std::string>> nets = {{net.get(), "of the train net"}};
  for (size_t i = 0; i < test_nets.size(); ++i) {
    nets.emplace_back(test_nets[i].get(), "of test net #" + std::to_string(i));
  }
  Diagnostics refused;
  for (const auto& [writers, of_writers] : nets) {
    const CompiledNet& compiled = writers->compiled();
    for (const auto& [readers, of_readers] : nets) {
      if (writers == readers) continue;
      for (const Overwriting& found : FindOverwriting(compiled.graph, readers->compiled().graph)) {
        const auto& source = compiled.file.source;
        refused.Error(source ? source->Layer(found.writer->index_in_file, found.file->field) : Location{},
                      Describe(found, of_writers, of_readers));
      }
    }
  }
  refused.ThrowIfErrors();
}

void Solver::Impl::WarnOfRecurrentLayers() const {
  const bool leases = options.role == Role::kCoordinator;
  if (ranks == 1 && !leases) return;
  const std::string begins = leases && options.exchanges_gradients ? "each batch of a worker begins"
                             : leases ? "workers take local_steps batches in a row, so that the first of them begins"
                                      : "each of " + std::to_string(ranks) + " ranks takes one batch in " +
                                            std::to_string(ranks) + ", so that each begins";
  bool told = false, told_of_counts = false;
  for (const Node& node : net->compiled().graph.nodes) {
    const bool counts = CountsOverPasses(*node.param);
    if (!node.layer->recurrent_state().defined() || std::exchange(counts ? told_of_counts : told, true)) continue;
    Warn({}, counts ? "layer \"" + node.name() + "\" counts pixels of all batches together (reset: false), but " +
                          begins + " with counts of 0: what it says while training is of those batches alone"
                    : "recurrent layer \"" + node.name() + "\" goes on where the batch before ended, but " + begins +
                          " with a state of zeros: choose sequences (T) that are long enough to learn from alone");
  }
}

bool Solver::Impl::Learns() const {
  const std::vector<Node>& nodes = net->compiled().graph.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return std::find(node.param_grads.begin(), node.param_grads.end(), true) != node.param_grads.end();
  });
}

void Solver::Impl::WarnOfNothingToLearn() const {
  if (options.role == Role::kCoordinator || Learns()) return;  // a coordinator computes no gradients itself
  Warn({}, std::as_const(*net).parameters().empty()
               ? "the train net has no parameters, so nothing will be learnt"
               : "nothing will be learnt: no loss of the train net depends on a parameter with an lr_mult above 0; "
                 "`crema compile --dump=graph` shows which gradients are computed");
}

void Solver::Impl::WarnOfZeroLosses(const std::string& notice) const {
  if (!notice.empty() && Learns()) Warn({}, notice);
}

void Solver::Impl::WarnOfSizes(const NetPlans& plans) const {
  if (plans.shows_sizes || !(param.debug_info() || plans.train.file.net.debug_info())) return;
  if (param.display() == 0) {
    Warn({},
         "debug_info shows the sizes of numbers with each display, and display is not set; set it in the solver, to 1 "
         "for every iteration");
    return;
  }
  Warn({}, "debug_info has no effect where several workers or threads train: set it in a run of one process");
}

}  // namespace crema
