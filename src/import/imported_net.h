// What readers of other programs' files make: a net and its weights, ready to be written.
#ifndef CREMA_IMPORT_IMPORTED_NET_H_
#define CREMA_IMPORT_IMPORTED_NET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"
#include "crema/net.pb.h"
#include "crema/tensor.h"

namespace crema {

struct ImportedNet {
  NetParameter net;      // a deploy net, as a prototxt has it
  NetParameter weights;  // its layers with blobs, as a .caffemodel has them
  struct Tensor {
    std::string name;
    Shape shape;
  };
  std::vector<Tensor> inputs, outputs;
  int nodes = 0;  // of the file: nodes of a graph, sections of a .cfg
  int64_t parameters = 0;
  std::vector<Diagnostic> notes;
};

// How an imported net is compiled to see whether it can be run: in TEST, on the CPU, without a backward pass.
NetOptions OptionsForUse();

// Compiles the net and adds the compiler's warnings to its notes. `path`: the file it came from. Throws UserError.
void CheckThatItRuns(const std::string& path, ImportedNet* imported);

void AddNote(Location where, const std::string& message, ImportedNet* imported);

}  // namespace crema

#endif  // CREMA_IMPORT_IMPORTED_NET_H_
