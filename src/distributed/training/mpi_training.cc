#include "distributed/training/mpi_training.h"

#include <span>
#include <sstream>
#include <string_view>

#include "base/listed.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "distributed/journal/digest.h"
#include "distributed/training/data_fingerprint.h"
#include "schema/text_file.h"
#include "solver/nets.h"

namespace crema {

namespace {

Location At(const SolverFile& file) { return file.source ? file.source->Field("distributed") : Location{}; }

// The first line in which they differ.
std::string Difference(const std::string& first, const std::string& other) {
  std::istringstream firsts(first), others(other);
  std::string a, b;
  while (true) {
    const bool has_a = static_cast<bool>(std::getline(firsts, a)), has_b = static_cast<bool>(std::getline(others, b));
    if (!has_a) a = "nothing more";
    if (!has_b) b = "nothing more";
    if (a != b || (!has_a && !has_b)) break;
  }
  const auto trimmed = [](const std::string& line) {
    return line.substr(std::min(line.find_first_not_of(' '), line.size()));
  };
  return "\"" + trimmed(b) + "\" where rank 0 has \"" + trimmed(a) + "\"";
}

std::string Hex(uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

// Where the records cannot be read anywhere, the net says so better.
std::string TextOfData(const LayerParameter& layer, const std::vector<std::string>& folders) {
  NetParameter net;
  *net.add_layer() = layer;
  try {
    const DataFingerprint data = FingerprintData(net, folders).at(0);
    return "records with fingerprint " + Hex(data.value) + (data.files ? ", files with " + Hex(*data.files) : "");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

uint64_t DigestOfText(const std::string& text) { return DigestOf(std::as_bytes(std::span(text))); }

}  // namespace

bool UsesMpi(const SolverParameter& solver) {
  const DistributedParameter& settings = solver.distributed();
  return solver.has_distributed() && settings.mode() != DistributedParameter::OFF &&
         settings.engine() == DistributedParameter::MPI;
}

std::vector<Diagnostic> CheckMpi(const SolverFile& file) {
  const DistributedParameter& settings = file.solver.distributed();
  if (settings.has_mode() && settings.mode() != DistributedParameter::GRADIENT) {
    throw UserError(At(file), "distributed: engine: MPI trains by mode GRADIENT, and mode is " +
                                  DistributedParameter::Mode_Name(settings.mode()) +
                                  ": set mode: GRADIENT, or engine: ZMQ, which has the other modes");
  }
  std::vector<const google::protobuf::FieldDescriptor*> set;
  settings.GetReflection()->ListFields(settings, &set);
  std::vector<std::string_view> ignored;
  for (const auto* field : set) {
    if (field->name() != "mode" && field->name() != "engine") ignored.push_back(field->name());
  }
  if (ignored.empty()) return {};
  Diagnostic warning;
  warning.severity = Diagnostic::Severity::kWarning;
  warning.where = At(file);
  warning.message = "distributed: no effect with engine: MPI, where the launcher says who takes part: " +
                    Listed(ignored, {.most = kAllNames});
  return {warning};
}

std::vector<Fact> FactsOf(const SolverFile& file, const SolverOptions& options, const std::string& version) {
  std::vector<Fact> facts = {{"version of crema", version}};
  const bool gpu = !options.devices.empty() && options.devices[0]->type() != DeviceType::kCpu;
  facts.push_back({"kind of device (--gpu)", gpu ? "a GPU" : "the CPU"});
  facts.push_back({"solver file", TextOf(file.solver)});
  const NetPlan train = PlanNets(file, options, Context{options.device}).train;
  std::ostringstream state;
  state << "level " << train.options.level << "\n";
  for (const std::string& stage : train.options.stages) state << "stage " << stage << "\n";
  facts.push_back({"state of the train net (--level, --stage)", state.str()});
  facts.push_back({"train net", TextOf(train.file.net)});
  const NetState selection = StateOf(train.file.net, train.options);
  for (const LayerParameter& layer : train.file.net.layer()) {
    if (DataSourceOf(layer).empty() || !TakesPart(selection, layer)) continue;
    facts.push_back({"data of layer \"" + layer.name() + "\"", TextOfData(layer, SearchFolders(options))});
  }
  return facts;
}

void CheckAlike(Processes& processes, const std::vector<Fact>& facts) {
  std::string digests;
  for (const Fact& fact : facts) digests += Hex(DigestOfText(fact.text)) + "\n";
  const std::vector<std::string> all = processes.Gather(digests);
  // The first fact that differs anywhere: all ranks find the same one.
  const auto lines = [](const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) parts.push_back(line);
    return parts;
  };
  const std::vector<std::string> firsts = lines(all[0]);
  size_t differing = firsts.size();
  for (const std::string& of_rank : all) {
    const std::vector<std::string> others = lines(of_rank);
    for (size_t i = 0; i < differing; ++i) {
      if (i >= others.size() || others[i] != firsts[i]) differing = i;
    }
  }
  if (differing == firsts.size()) return;
  const Fact own = differing < facts.size() ? facts[differing] : Fact{};
  const std::vector<std::string> names = processes.Gather(own.name), texts = processes.Gather(own.text);
  Together(processes, [&] {
    std::vector<Diagnostic> found;
    for (size_t r = 1; r < texts.size(); ++r) {
      if (texts[r] == texts[0]) continue;
      Diagnostic error;
      error.severity = Diagnostic::Severity::kError;
      error.message = "the " + names[0] + " of rank " + std::to_string(r) + ", on machine \"" +
                      processes.machines()[r] + "\", is another one than that of rank 0, on \"" +
                      processes.machines()[0] + "\": it has " + Difference(texts[0], texts[r]) +
                      "; start all ranks with the same files and flags, from a folder that the machines share or in "
                      "copies of it";
      found.push_back(std::move(error));
    }
    throw UserError(std::move(found));
  });
}

}  // namespace crema
