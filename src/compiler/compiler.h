// From a net file to a program: named passes over one graph, each in a file of its own, run in the order of Passes().
#ifndef CREMA_COMPILER_COMPILER_H_
#define CREMA_COMPILER_COMPILER_H_

#include <memory>
#include <vector>

#include "crema/net.h"
#include "graph/program.h"

namespace crema {

// Names the top of a loss layer that names none.
inline constexpr char kAutomaticTop[] = "(automatic)";

// What the passes work on.
struct Compilation {
  const NetOptions& options;
  CompiledNet& net;
  const CompiledNet* shared = nullptr;  // of NetOptions::share_with
  Diagnostics diagnostics = {};

  Location Where(const Node& node, std::string_view field = {}) const {
    return net.file.source ? net.file.source->Layer(node.index_in_file, field) : Location{};
  }
};

struct Pass {
  const char* name;
  const char* purpose;
  void (*run)(Compilation&);
  // Only makes the net faster or smaller: NetOptions::skip_passes may name it.
  bool optional = false;
};

// In execution order.
const std::vector<Pass>& Passes();

void SelectLayers(Compilation& c);     // keep the layers whose include/exclude rules fit phase, level and stages
void ResolveBlobs(Compilation& c);     // turn names, also those rewritten in place, into values with one producer each
void InferShapes(Compilation& c);      // create the layers, check their parameters, learn shapes
void ShareParameters(Compilation& c);  // give each blob of a layer its parameter; param { name } joins several
void FindGradients(Compilation& c);    // decide which gradients are of use
void FuseLayers(Compilation& c);       // let chains of layers run as one, and settle the order of what is run
void ChooseLayouts(Compilation& c);    // decide which images lie channels last, so that few bytes are reordered
void LayOutWeights(Compilation& c);    // decide which parameters may lie in a form of their kernel's own
void SplitBatch(Compilation& c);       // decide what runs on a few items of the batch at a time, within the cache
void ChooseKernels(Compilation& c);    // let each layer plan its kernels, workspace and saved tensors
void ChooseRecompute(Compilation& c);  // decide what runs again in the backward pass, to stay within a memory limit
void Schedule(Compilation& c);         // lay out the steps and the tensors they touch
void PlanMemory(Compilation& c);       // give every storage its offset in one arena, by liveness

// The same within `most` bytes, else false; then the offsets mean nothing. What cannot be within them is told without
// placing it.
bool PlanMemoryWithin(Compilation& c, size_t most);

// Of infer_shapes: gives a Crop whose offset is to be found this offset, in Compilation's own copy of the file. False
// where there is none, which is reported.
bool AlignCrop(Compilation& c, const Node& node);

// Of infer_shapes: warns where layers of detectors contradict what the net makes for them.
void CheckDetectors(Compilation& c);

// Aborts if a step of the program would read a tensor that another one was written over: run after PlanMemory.
void VerifyMemory(const Compilation& c);

// Throws UserError with every mistake found. The result owns everything it points to. `shared`: the compiled form of
// options.share_with.
std::unique_ptr<CompiledNet> Compile(const NetFile& file, const NetOptions& options,
                                     const CompiledNet* shared = nullptr);

}  // namespace crema

#endif  // CREMA_COMPILER_COMPILER_H_
