// The compiled form of a net as text, for `crema compile --dump`. All are pure functions of the compiled net.
#ifndef CREMA_REPORT_DUMP_H_
#define CREMA_REPORT_DUMP_H_

#include <string>

#include "graph/program.h"

namespace crema {

class JsonWriter;

// Layers in execution order with the values they read and make ("ip1'1": the first rewrite of ip1 in place), their
// parameters, and which gradients are computed.
std::string DumpGraph(const CompiledNet& net);

// A table: shapes, parameters, operations and activation bytes of each layer, with totals.
std::string DumpShapes(const CompiledNet& net);

// Steps with kernels, and every tensor's place in the arena. `explain`: also the kernels that were passed over, why,
// and the seconds each compiler pass took.
std::string DumpPlan(const CompiledNet& net, bool explain);

// Graphviz: `dot -Tsvg`.
std::string DumpDot(const CompiledNet& net);

// Name, phase, assumed shapes, layers with types, tops and parameter shapes, parameter counts and outputs. Layers that
// read data appear as Input.
std::string DumpJson(const CompiledNet& net);

// The members of DumpJson's object; the caller writes its brackets and may add members.
void WriteNetJson(const CompiledNet& net, JsonWriter& json);

// Of every layer's blobs, shared ones at each layer that uses them; and of all blobs once.
int64_t ParamCount(const Graph& graph);
int64_t LearnableCount(const Graph& graph);

// "lenet, phase TRAIN: 9 layers, 431,080 parameters".
std::string NetTitle(const CompiledNet& net);

}  // namespace crema

#endif  // CREMA_REPORT_DUMP_H_
