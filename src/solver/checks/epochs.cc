#include "solver/checks/epochs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/number_text.h"
#include "base/paths.h"
#include "compiler/compiler.h"
#include "solver/nets.h"
#include "solver/rules/rates.h"
#include "solver/snapshots/snapshot.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;

constexpr char kInEpochs[] = "in_epochs", kTestIterations[] = "test_iter";

Location Place(const SolverFile& file) { return file.source ? file.source->Field(kInEpochs) : Location{}; }

// Fields of EpochParameter that are set.
std::vector<const FieldDescriptor*> FieldsOf(const EpochParameter& epochs) {
  std::vector<const FieldDescriptor*> fields;
  epochs.GetReflection()->ListFields(epochs, &fields);
  return fields;
}

std::vector<double> ValuesOf(const EpochParameter& epochs, const FieldDescriptor* field) {
  const auto* reflection = epochs.GetReflection();
  if (!field->is_repeated()) return {reflection->GetDouble(epochs, field)};
  std::vector<double> values;
  for (int i = 0; i < reflection->FieldSize(epochs, field); ++i) {
    values.push_back(reflection->GetRepeatedDouble(epochs, field, i));
  }
  return values;
}

// The field of the same name.
const FieldDescriptor* InSolver(const FieldDescriptor* field) {
  return SolverParameter::descriptor()->FindFieldByName(std::string(field->name()));
}

// The first layer of a net that reads records, and how many.
struct Source {
  std::string layer;
  DataExtent extent;
};

Source SourceOf(NetPlan plan) {
  // Layers that read others are left out, without moving those of the file that messages name.
  for (LayerParameter& layer : *plan.file.net.mutable_layer()) {
    if (layer.bottom_size() == 0) continue;
    layer.clear_include();
    layer.clear_exclude();
    layer.add_exclude();
  }
  plan.options.backward = false;
  plan.options.skip_passes.clear();
  plan.options.precision = Precision::kF32;  // whether the device computes in another one is not asked here
  const std::unique_ptr<CompiledNet> net = Compile(plan.file, plan.options);
  for (const Node& node : net->graph.nodes) {
    if (!node.setup->is_source()) continue;
    node.layer->FindDataExtent();
    const DataExtent extent = node.layer->data_extent();
    if (extent.epoch > 0) return {node.name(), extent};
  }
  return {};
}

// Where rounding up to whole batches reads more than a hundredth of the records once more, and a batch of at least half
// the size less: what to do about it.
std::string Surplus(const Source& source, int batches) {
  const uint64_t epoch = source.extent.epoch, batch = source.extent.batch;
  const uint64_t read = static_cast<uint64_t>(batches) * batch, beyond = read % epoch;
  if (read < epoch || beyond >= batch || 100 * beyond <= epoch) return "";
  const uint64_t wanted = read - beyond;  // whole epochs
  const auto beyond_by = [wanted](uint64_t other) { return (other - wanted % other) % other; };
  uint64_t better = batch;
  for (uint64_t other = batch; 2 * other >= batch; --other) {
    if (beyond_by(other) < beyond_by(better)) better = other;
  }
  if (beyond_by(better) >= beyond) return "";
  const uint64_t still = beyond_by(better);
  return "a test reads " + std::to_string(batches) + " batches of " + std::to_string(batch) + " of the " +
         std::to_string(epoch) + " records of layer \"" + source.layer + "\", so the first " + std::to_string(beyond) +
         " count once more than the others; with batch_size " + std::to_string(better) +
         (still == 0 ? " none does" : " only " + std::to_string(still) + (still == 1 ? " does" : " do"));
}

std::string Described(const SolverParameter& solver, const FieldDescriptor* field) {
  const auto* reflection = solver.GetReflection();
  std::string text(field->name());
  if (!field->is_repeated()) return text + " " + std::to_string(reflection->GetInt32(solver, field));
  for (int i = 0; i < reflection->FieldSize(solver, field); ++i) {
    text += " " + std::to_string(reflection->GetRepeatedInt32(solver, field, i));
  }
  return text;
}

// Whether a field says when something happens, rather than how often.
bool IsPlace(const SolverParameter& solver, const std::string& field) {
  if (field == "stepsize") return solver.lr_policy() == "sigmoid";
  return field == "max_iter" || field == "stepvalue" || field == "stageiter" || field == "warmup_iter" ||
         field == "rampup_interval";
}

double PlaceOf(double epoch, const EpochLengths& lengths) {
  if (epoch < lengths.from_epoch) return epoch / lengths.from_epoch * lengths.from_iteration;
  return lengths.from_iteration + (epoch - lengths.from_epoch) * lengths.train;
}

// Of `epoch` records, of which an iteration takes `taken`.
EpochLengths LengthsOf(uint64_t epoch, uint64_t taken, const EpochProgress& progress) {
  const double iterations = static_cast<double>(epoch) / static_cast<double>(taken);
  if (progress.iteration == 0 || progress.records == 0) return {.train = std::ceil(iterations)};
  const double taken_before = static_cast<double>(progress.records) / progress.iteration;
  // A coordinator knows no epochs, and its workers may have read ahead.
  const double same = progress.epoch_records > 0 ? 0.01 : static_cast<double>(taken) / 8;
  const bool same_epoch = progress.epoch_records == 0 || progress.epoch_records == epoch;
  if (std::fabs(taken_before - static_cast<double>(taken)) < same && same_epoch && progress.records_before == 0) {
    return {.train = std::ceil(iterations)};
  }
  return {.train = iterations, .from_iteration = progress.iteration, .from_epoch = EpochsDone(progress, epoch)};
}

// Makes a rate that goes by iterations of max_iter go on where it was by epochs: with one that falls to 0 at the same
// end. Not within a warm-up, nor a cosine that would have begun before the first iteration.
void KeepRate(const EpochParameter& epochs, const EpochLengths& lengths, SolverParameter* solver) {
  const double from = lengths.from_iteration, warm_up = WarmUpOf(*solver).iterations;
  if (!epochs.has_max_iter() || from < warm_up) return;
  if (solver->lr_policy() == "poly") {
    const double longer = solver->max_iter() / (epochs.max_iter() * lengths.train);
    const double base = (double{solver->base_lr()} - solver->min_lr()) * std::pow(longer, double{solver->power()});
    solver->set_base_lr(static_cast<float>(solver->min_lr() + base));
  } else if (solver->lr_policy() == "cosine") {
    const double begins = from - (lengths.from_epoch - warm_up / from * lengths.from_epoch) * lengths.train;
    if (begins < 0.5) return;
    solver->clear_rampup_interval();
    solver->set_warmup_iter(static_cast<int32_t>(std::lround(begins)));
  }
}

// Where KeepRate cannot: what the rate is, and was to be. Empty else.
std::string RateLeap(const SolverFile& file, const SolverParameter& solver, const EpochLengths& lengths) {
  const int from = lengths.from_iteration;
  if (from == 0 || !(lengths.from_epoch > 0)) return "";
  // As in epochs that stay what they were.
  const SolverParameter before = WithLengths(file, {.train = from / lengths.from_epoch}).solver;
  const float rate = LearningRateAt(solver, from), wanted = LearningRateAt(before, from);
  // Lengths are whole iterations, of which a short run has few.
  const float near = std::fabs(LearningRateAt(before, from - 1) - LearningRateAt(before, from + 1));
  if (std::fabs(rate - wanted) <= std::max(0.02f * wanted, near)) return "";
  return "the learning rate goes on with " + FormatNumber(rate) + ", where " + FormatNumber(wanted) +
         " stands at epoch " + FormatNumber(lengths.from_epoch) +
         ": its course goes by iterations, of which an epoch has another number from here on; as many records in an "
         "iteration as before (batch_size, iter_size, GPUs) keep it";
}

}  // namespace

EpochProgress ProgressOf(int iteration, const DataPosition& position) {
  return {.iteration = iteration,
          .records = position.records(),
          .epoch_records = position.epoch_records(),
          .epochs_before = position.epochs_before(),
          .records_before = position.records_before()};
}

double EpochsDone(const EpochProgress& progress, uint64_t epoch_records) {
  const uint64_t epoch = progress.epoch_records > 0 ? progress.epoch_records : epoch_records;
  return progress.epochs_before +
         static_cast<double>(progress.records - progress.records_before) / static_cast<double>(epoch);
}

void CheckEpochs(const SolverFile& file, Diagnostics* found) {
  const EpochParameter& epochs = file.solver.in_epochs();
  for (const FieldDescriptor* field : FieldsOf(epochs)) {
    const std::string name(field->name());
    const FieldDescriptor* same = InSolver(field);
    const auto* reflection = file.solver.GetReflection();
    if (same->is_repeated() ? reflection->FieldSize(file.solver, same) > 0 : reflection->HasField(file.solver, same)) {
      found->Error(Place(file), name + " is set in in_epochs and beside it; keep one of them");
    }
    double before = 0;
    for (const double value : ValuesOf(epochs, field)) {
      const bool positive = value > 0 && std::isfinite(value);
      if (positive && (value > before || !IsPlace(file.solver, name))) {
        before = value;
        continue;
      }
      found->Error(Place(file),
                   "in_epochs: " + name + " is " + FormatNumber(value) +
                       (positive ? " after " + FormatNumber(before) + "; list the epochs in increasing order"
                                 : " but must be above 0"));
      break;
    }
  }
}

bool TestsFromTheFirst(const SolverFile& file) { return file.solver.in_epochs().test_iter_size() > 0; }

SolverFile WithLengths(const SolverFile& file, const EpochLengths& lengths) {
  SolverFile result = file;
  const EpochParameter& epochs = file.solver.in_epochs();
  for (const FieldDescriptor* field : FieldsOf(epochs)) {
    const FieldDescriptor* to = InSolver(field);
    const auto* reflection = result.solver.GetReflection();
    const std::string name(field->name());
    const bool tests = name == kTestIterations, is_place = IsPlace(file.solver, name);
    if (name == "stepsize" && !is_place && lengths.from_iteration > 0) {
      throw UserError(
          Place(file),
          "in_epochs: epochs are " + FormatNumber(lengths.train) +
              " iterations from the snapshot on, and were others before, which one stepsize cannot say; set "
              "lr_policy: \"multistep\", and in in_epochs each stepvalue (the next one is " +
              FormatNumber((std::floor(lengths.from_epoch / epochs.stepsize()) + 1) * epochs.stepsize()) + ")");
    }
    size_t index = 0;
    for (const double value : ValuesOf(epochs, field)) {
      double iterations = is_place ? PlaceOf(value, lengths) : value * lengths.train;
      if (tests) iterations = value * (index < lengths.tests.size() ? lengths.tests[index] : 1);
      // What is a whole number but for the last digits is one.
      iterations = tests ? std::ceil(iterations * (1 - 1e-12)) : std::floor(iterations * (1 + 1e-12) + 0.5);
      iterations = std::max(1.0, iterations);
      if (!(iterations <= std::numeric_limits<int32_t>::max())) {
        throw UserError(Place(file), "in_epochs: " + name + " " + FormatNumber(value) +
                                         " would be more iterations than can be counted; lower it");
      }
      ++index;
      if (to->is_repeated()) {
        reflection->AddInt32(&result.solver, to, static_cast<int32_t>(iterations));
      } else {
        reflection->SetInt32(&result.solver, to, static_cast<int32_t>(iterations));
      }
    }
  }
  if (lengths.from_iteration > 0) KeepRate(epochs, lengths, &result.solver);
  result.solver.clear_in_epochs();
  return result;
}

EpochProgress ReadEpochProgress(const SolverFile& file, const SolverOptions& options) {
  if (!file.solver.has_in_epochs() || options.snapshot.empty()) return {};
  LoadedState loaded;
  if (options.snapshot != "auto") {
    loaded = LoadState(FindFile(options.snapshot, SearchFolders(options)));
  } else if (!LoadNewestState(
                 SnapshotPrefix(file.solver, options), [](const Diagnostic&) {}, &loaded,
                 file.solver.snapshot_format())) {
    return {};
  }
  const DataPosition* read = nullptr;
  for (const DataPosition& position : loaded.state.data_position()) {
    if (position.net() == "train" && (!read || !read->has_epoch_records())) read = &position;
  }
  if (!read) return {};
  EpochProgress progress = ProgressOf(loaded.state.iter(), *read);
  // What a coordinator had handed out, and nobody had used yet.
  const ClusterState& cluster = loaded.state.cluster();
  uint64_t unused = 0;
  for (const StepRange& steps : cluster.unused()) unused += steps.count();
  if (cluster.next_step() > unused) progress.records -= progress.records / cluster.next_step() * unused;
  return progress;
}

SolverFile InIterations(const SolverFile& file, const SolverOptions& options, int ranks,
                        const EpochProgress& progress) {
  if (!file.solver.has_in_epochs()) return file;
  for (const Diagnostic& d : CheckSolver(file)) {
    if (d.severity == Diagnostic::Severity::kError) return file;
  }
  // As many test nets as there will be.
  const NetPlans plans = PlanNets(WithLengths(file, {}), options, Context{});
  const Source train = SourceOf(plans.train);
  if (train.extent.epoch == 0) {
    throw UserError(Place(file),
                    "in_epochs counts the records that the train net reads, but none of its layers says how many there "
                    "are: its data is not here, or it is not read from a data set; give lengths in iterations");
  }
  const uint64_t taken = train.extent.batch * static_cast<uint64_t>(std::max(1, file.solver.iter_size()) * ranks);
  EpochLengths lengths = LengthsOf(train.extent.epoch, taken, progress);
  std::vector<Source> sources;
  for (int i = 0; i < file.solver.in_epochs().test_iter_size(); ++i) {
    const Source test = SourceOf(plans.tests[static_cast<size_t>(i)]);
    if (test.extent.epoch == 0) {
      throw UserError(Place(file), "in_epochs: test_iter counts the records that test net #" + std::to_string(i) +
                                       " reads, but none of its layers says how many there are; give test_iter in "
                                       "batches, beside in_epochs");
    }
    lengths.tests.push_back(static_cast<double>(test.extent.epoch) / static_cast<double>(test.extent.batch));
    sources.push_back(test);
  }
  SolverFile result = WithLengths(file, lengths);
  std::string settings;
  for (const FieldDescriptor* field : FieldsOf(file.solver.in_epochs())) {
    settings += (settings.empty() ? "" : ", ") + Described(result.solver, InSolver(field));
  }
  std::string since;
  if (lengths.from_iteration > 0) {
    since = " from iteration " + std::to_string(lengths.from_iteration) + " on, which is epoch " +
            FormatNumber(lengths.from_epoch) + "; it was another number before";
  }
  const Diagnostic note = {Diagnostic::Severity::kNote, Place(file),
                           "an epoch is " + std::to_string(train.extent.epoch) + " records of layer \"" + train.layer +
                               "\", " + std::to_string(taken) + " in an iteration" + since + ": " + settings};
  const auto warn = [&](const std::string& text) {
    const Diagnostic warning = {Diagnostic::Severity::kWarning, Place(file), text};
    for (Observer* observer : options.observers) observer->OnNotice(warning);
  };
  for (Observer* observer : options.observers) observer->OnNotice(note);
  if (const std::string leap = RateLeap(file, result.solver, lengths); !leap.empty()) warn(leap);
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string surplus = Surplus(sources[i], result.solver.test_iter(static_cast<int>(i)));
    if (!surplus.empty()) warn(surplus);
  }
  return result;
}

}  // namespace crema
