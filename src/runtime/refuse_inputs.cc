#include "runtime/refuse_inputs.h"

#include "crema/error.h"
#include "graph/boundary_types.h"
#include "graph/program.h"

namespace crema {

void RefuseInputs(const Net& net, const std::string& which, const std::string& why) {
  const CompiledNet& compiled = net.compiled();
  for (const Node& node : compiled.graph.nodes) {
    const std::string& type = node.param->type();
    if (!IsInputType(type) || node.tops.empty()) continue;
    const auto& source = compiled.file.source;
    throw UserError(source ? source->Layer(node.index_in_file, "type") : Location{},
                    which + " gets \"" + compiled.graph.values[node.tops[0]].name + "\" from " +
                        (type == "Input" ? "an " : "a ") + type + " layer, which " + why +
                        ", or read from a Data, ImageData or HDF5Data layer");
  }
}

void RefuseOutputs(const Net& net, const std::string& why) {
  const CompiledNet& compiled = net.compiled();
  for (const Node& node : compiled.graph.nodes) {
    if (!IsOutputType(node.param->type())) continue;
    const auto& source = compiled.file.source;
    throw UserError(source ? source->Layer(node.index_in_file, "type") : Location{},
                    "layer \"" + node.name() + "\" (" + node.param->type() + ") writes what one net makes, but " + why +
                        "; leave it out of TRAIN (include { phase: TEST })");
  }
}

void RefuseInputs(const Net& net, const std::string& which) {
  RefuseInputs(net, which,
               "a program that embeds crema fills, and nothing does here, so that it would be zeros; write such a "
               "program (include/crema/net.h)");
}

}  // namespace crema
