#include "solver/epochs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/number_text.h"
#include "compiler/compiler.h"
#include "solver/nets.h"

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
  const std::unique_ptr<CompiledNet> net = Compile(plan.file, plan.options);
  for (const Node& node : net->graph.nodes) {
    if (!node.setup->is_source()) continue;
    node.layer->FindDataExtent();
    const DataExtent extent = node.layer->data_extent();
    if (extent.epoch > 0) return {node.name(), extent};
  }
  return {};
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

}  // namespace

void CheckEpochs(const SolverFile& file, Diagnostics* found) {
  const EpochParameter& epochs = file.solver.in_epochs();
  for (const FieldDescriptor* field : FieldsOf(epochs)) {
    const std::string name(field->name());
    const FieldDescriptor* same = InSolver(field);
    const auto* reflection = file.solver.GetReflection();
    if (same->is_repeated() ? reflection->FieldSize(file.solver, same) > 0 : reflection->HasField(file.solver, same)) {
      found->Error(Place(file), name + " is set in in_epochs and beside it; keep one of them");
    }
    for (const double value : ValuesOf(epochs, field)) {
      if (value > 0 && std::isfinite(value)) continue;
      found->Error(Place(file), "in_epochs: " + name + " is " + FormatNumber(value) + " but must be above 0");
      break;
    }
  }
}

SolverFile WithLengths(const SolverFile& file, const EpochLengths& lengths) {
  SolverFile result = file;
  const EpochParameter& epochs = file.solver.in_epochs();
  for (const FieldDescriptor* field : FieldsOf(epochs)) {
    const FieldDescriptor* to = InSolver(field);
    const auto* reflection = result.solver.GetReflection();
    size_t index = 0;
    for (const double value : ValuesOf(epochs, field)) {
      const bool tests = field->name() == kTestIterations;
      const double length = !tests                         ? static_cast<double>(lengths.train)
                            : index < lengths.tests.size() ? lengths.tests[index]
                                                           : 1;
      // What is a whole number but for the last digits is one.
      const double iterations =
          std::max(1.0, tests ? std::ceil(value * length * (1 - 1e-12)) : std::round(value * length));
      if (!(iterations <= std::numeric_limits<int32_t>::max())) {
        throw UserError(Place(file), "in_epochs: " + std::string(field->name()) + " " + FormatNumber(value) +
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
  result.solver.clear_in_epochs();
  return result;
}

SolverFile InIterations(const SolverFile& file, const SolverOptions& options, int ranks) {
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
  EpochLengths lengths = {.train = static_cast<int64_t>((train.extent.epoch + taken - 1) / taken)};
  for (int i = 0; i < file.solver.in_epochs().test_iter_size(); ++i) {
    const Source test = SourceOf(plans.tests[static_cast<size_t>(i)]);
    if (test.extent.epoch == 0) {
      throw UserError(Place(file), "in_epochs: test_iter counts the records that test net #" + std::to_string(i) +
                                       " reads, but none of its layers says how many there are; give test_iter in "
                                       "batches, beside in_epochs");
    }
    lengths.tests.push_back(static_cast<double>(test.extent.epoch) / static_cast<double>(test.extent.batch));
  }
  SolverFile result = WithLengths(file, lengths);
  std::string settings;
  for (const FieldDescriptor* field : FieldsOf(file.solver.in_epochs())) {
    settings += (settings.empty() ? "" : ", ") + Described(result.solver, InSolver(field));
  }
  const Diagnostic note = {Diagnostic::Severity::kNote, Place(file),
                           "an epoch is " + std::to_string(train.extent.epoch) + " records of layer \"" + train.layer +
                               "\", " + std::to_string(taken) + " in an iteration: " + settings};
  for (Observer* observer : options.observers) observer->OnNotice(note);
  return result;
}

}  // namespace crema
