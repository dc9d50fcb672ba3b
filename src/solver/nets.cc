#include "solver/nets.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/byte_size.h"
#include "base/paths.h"
#include "base/placeholder.h"
#include "base/trimmed.h"
#include "compiler/selection.h"
#include "solver/ranks/hogwild.h"
#include "solver/rules/updater.h"

namespace crema {

namespace {

bool IsDirectory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// "models/lenet_solver.prototxt" -> "models/lenet_solver"
std::string WithoutExtension(const std::string& path) {
  const size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  return has_extension ? path.substr(0, dot) : path;
}

std::string Missing(const std::string& path, std::string_view field, const std::vector<std::string>& folders) {
  std::error_code ignored;
  std::string tried = "the working directory " + std::filesystem::current_path(ignored).string();
  for (const std::string& folder : folders) tried += ", " + folder;
  return std::string(field) + " \"" + path + "\" does not exist; looked in " + tried + PlaceholderNote(path);
}

class Planner {
 public:
  Planner(const SolverFile& file, const SolverOptions& options, const Context& context)
      : file_(file), options_(options), context_(context), folders_(SearchFolders(options)) {}

  NetPlans Run();

 private:
  NetFile Read(const std::string& path, std::string_view field);
  NetFile Make(const NetParameter& net, std::string_view field) { return Keep(MakeNetFile(net, At(field))); }
  NetFile Keep(NetFile file) {
    plans_.warnings.insert(plans_.warnings.end(), file.warnings.begin(), file.warnings.end());
    return file;
  }
  // The state in `field` of the solver file without the stages that the net does not know, which are warned of here, in
  // their place.
  NetState Known(NetState state, const NetFile& file, const std::string& field);
  NetPlan Plan(NetFile file, Phase phase, const NetState& state) const;
  Location At(std::string_view field) const { return file_.source ? file_.source->Field(field) : Location{}; }

  const SolverFile& file_;
  const SolverOptions& options_;
  const Context& context_;
  std::vector<std::string> folders_;
  NetPlans plans_;
};

NetFile Planner::Read(const std::string& path, std::string_view field) {
  const std::string found = FindFile(path, folders_);
  if (!Exists(found)) throw UserError(At(field), Missing(path, field, folders_));
  for (const std::string& folder : folders_) {
    std::error_code error;
    const std::string other = folder + "/" + path;
    if (path[0] == '/' || found != path || !Exists(other) || std::filesystem::equivalent(path, other, error)) continue;
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::kWarning;
    warning.where = At(field);
    warning.message = std::string(field) + " \"" + path + "\" is read from the working directory, and \"" + other +
                      "\" is another file; start in that folder, or write the whole path, to train that one";
    plans_.warnings.push_back(std::move(warning));
    break;
  }
  return Keep(ReadNetFile(found));
}

NetState Planner::Known(NetState state, const NetFile& file, const std::string& field) {
  const std::vector<std::string> stages(state.stage().begin(), state.stage().end());
  state.clear_stage();
  for (size_t i = 0; i < stages.size(); ++i) {
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::kWarning;
    warning.message = DoubtAboutStage(file.net, stages[i]);
    warning.where = At(field + ".stage[" + std::to_string(i) + "]");
    if (warning.message.empty()) {
      state.add_stage(stages[i]);
    } else {
      plans_.warnings.push_back(std::move(warning));
    }
  }
  return state;
}

NetPlan Planner::Plan(NetFile file, Phase phase, const NetState& state) const {
  NetState merged;
  merged.set_phase(phase);
  merged.MergeFrom(file.net.state());
  merged.MergeFrom(state);
  file.net.clear_state();

  NetPlan plan;
  plan.file = std::move(file);
  plan.options.phase = merged.phase();
  plan.options.level = merged.level();
  plan.options.stages.assign(merged.stage().begin(), merged.stage().end());
  plan.options.shapes = options_.shapes;
  plan.options.search_folders = folders_;
  plan.options.context = context_;
  if (file_.solver.precision() == SolverParameter::BF16) plan.options.precision = Precision::kBF16;
  if (file_.solver.precision() == SolverParameter::TF32) plan.options.precision = Precision::kTF32;
  if (file_.solver.precision() == SolverParameter::FP16) plan.options.precision = Precision::kFP16;
  return plan;
}

NetPlans Planner::Run() {
  const SolverParameter& solver = file_.solver;
  NetFile generic;
  if (solver.has_net()) generic = Read(solver.net(), "net");
  if (solver.has_net_param()) generic = Make(solver.net_param(), "net_param");
  NetFile train = generic;
  if (solver.has_train_net()) train = Read(solver.train_net(), "train_net");
  if (solver.has_train_net_param()) train = Make(solver.train_net_param(), "train_net_param");

  NetState train_state = Known(solver.train_state(), train, "train_state");
  if (options_.level) train_state.set_level(*options_.level);
  for (const std::string& stage : options_.stages) train_state.add_stage(stage);
  plans_.train = Plan(std::move(train), TRAIN, train_state);
  const bool computes = options_.role != SolverOptions::Role::kCoordinator;
  const bool writes = options_.role != SolverOptions::Role::kWorker;
  plans_.train.options.needs_data = computes;  // a coordinator's workers have it
  plans_.train.options.accumulate = computes && solver.iter_size() > 1;
  // A GPU updates all parameters at once.
  const bool on_cpu = !context_.device || context_.device->type() == DeviceType::kCpu;
  const bool hogwild = TrainsHogwild(solver);
  const bool exchanged = context_.ranks > 1 && !hogwild;
  const bool asked = solver.debug_info() || plans_.train.file.net.debug_info();
  plans_.shows_sizes = asked && solver.display() > 0 && options_.role == SolverOptions::Role::kAlone && !hogwild;
  plans_.train.options.keep_all = plans_.shows_sizes;
  plans_.train.options.keep_gradients =
      options_.exchanges_gradients || exchanged || plans_.shows_sizes ||
      (computes && (!Updater::TakesGradientsSingly(solver) || (writes && solver.snapshot_diff()) || !on_cpu));
  // A GPU's passes are graphs, and what such a worker gives away is there when they end.
  const bool leave_early = options_.role == SolverOptions::Role::kWorker && options_.exchanges_gradients && on_cpu &&
                           solver.distributed().overlap() == DistributedParameter::BACKWARD;
  plans_.train.options.announce_gradients = exchanged || leave_early;
  // Blocks of gradients are summed as they are stored, which must be alike in all ranks.
  const auto differs = [this](const Device* device) { return device->name() != options_.devices[0]->name(); };
  if (!computes || std::any_of(options_.devices.begin(), options_.devices.end(), differs)) {
    plans_.train.options.skip_passes.push_back("lay_out_weights");
  }
  plans_.train.options.parameter_copies = Updater::HistoriesOf(solver);
  // What a coordinator on the CPU never uses takes no memory.
  if (computes || !on_cpu) {
    const int threads = hogwild ? context_.ranks : 1;
    plans_.train.options.memory_limit = ParseBytes(solver.memory_limit()).value_or(0) / static_cast<size_t>(threads);
    plans_.train.options.memory_limit_at = At(solver.has_memory_limit() ? "memory_limit" : "recompute");
    if (solver.recompute() == SolverParameter::AUTO) plans_.train.options.recompute = Recompute::kAuto;
  }

  const bool has_tests = writes || solver.distributed().mode() == DistributedParameter::TOURNAMENT;
  if (!has_tests) return std::move(plans_);
  std::vector<NetFile> tests;
  for (const NetParameter& net : solver.test_net_param()) tests.push_back(Make(net, "test_net_param"));
  for (const std::string& path : solver.test_net()) tests.push_back(Read(path, "test_net"));
  while (static_cast<int>(tests.size()) < solver.test_iter_size()) tests.push_back(generic);
  for (size_t i = 0; i < tests.size(); ++i) {
    const int index = static_cast<int>(i);
    const NetState state = index < solver.test_state_size()
                               ? Known(solver.test_state(index), tests[i], "test_state[" + std::to_string(i) + "]")
                               : NetState();
    plans_.tests.push_back(Plan(std::move(tests[i]), TEST, state));
    plans_.tests.back().options.backward = false;
    plans_.tests.back().options.needs_data = true;
    // The first rank tests alone.
    plans_.tests.back().options.context.rank = 0;
    plans_.tests.back().options.context.ranks = 1;
  }
  return std::move(plans_);
}

}  // namespace

std::vector<std::string> SearchFolders(const SolverOptions& options) {
  std::vector<std::string> folders;
  if (!options.path.empty()) folders.push_back(DirectoryOf(options.path));
  folders.insert(folders.end(), options.search_folders.begin(), options.search_folders.end());
  return folders;
}

std::string SnapshotPrefix(const SolverParameter& param, const SolverOptions& options) {
  const std::string stem = WithoutExtension(options.path);
  if (!param.has_snapshot_prefix() || param.snapshot_prefix().empty()) return stem;
  std::string prefix = param.snapshot_prefix();
  if (prefix[0] != '/' && !IsDirectory(DirectoryOf(prefix))) {
    for (const std::string& folder : SearchFolders(options)) {
      if (IsDirectory(DirectoryOf(folder + "/" + prefix))) {
        prefix = folder + "/" + prefix;
        break;
      }
    }
  }
  if (!IsDirectory(prefix)) return prefix;
  return prefix + (prefix.back() == '/' ? "" : "/") + FileName(stem);
}

std::vector<Diagnostic> MissingNets(const SolverFile& file, const SolverOptions& options) {
  const SolverParameter& solver = file.solver;
  const std::vector<std::string> folders = SearchFolders(options);
  std::vector<Diagnostic> missing;
  const auto look = [&](const std::string& path, const char* field) {
    if (Exists(FindFile(path, folders))) return;
    Diagnostic error;
    if (file.source) error.where = file.source->Field(field);
    error.message = Missing(path, field, folders);
    missing.push_back(std::move(error));
  };
  if (solver.has_net()) look(solver.net(), "net");
  if (solver.has_train_net()) look(solver.train_net(), "train_net");
  if (options.role == SolverOptions::Role::kWorker) return missing;
  for (const std::string& path : solver.test_net()) look(path, "test_net");
  return missing;
}

std::vector<std::string> FilesRead(const SolverParameter& solver, const SolverOptions& options) {
  std::vector<std::string> names = {options.path, solver.net(), solver.train_net(), options.snapshot};
  names.insert(names.end(), solver.test_net().begin(), solver.test_net().end());
  names.insert(names.end(), options.weights.begin(), options.weights.end());
  for (const std::string& list : solver.weights()) {
    for (std::string& name : CommaParts(list)) names.push_back(std::move(name));
  }
  const std::vector<std::string> folders = SearchFolders(options);
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    std::string path = FindFile(name, folders);
    if (std::filesystem::is_regular_file(path, ignored)) files.push_back(std::move(path));
  }
  return files;
}

NetPlans PlanNets(const SolverFile& file, const SolverOptions& options, const Context& context) {
  return Planner(file, options, context).Run();
}

}  // namespace crema
