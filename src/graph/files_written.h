// Files that layers write (LayerSetup::SetFileWritten) while others read them, in the same net or in another one that
// runs beside it.
#ifndef CREMA_GRAPH_FILES_WRITTEN_H_
#define CREMA_GRAPH_FILES_WRITTEN_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace crema {

struct Overwriting {
  const Node* writer;
  const Node* reader;
  const LayerSetup::FileWritten* file;
};

std::vector<Overwriting> FindOverwriting(const Graph& writers, const Graph& readers);

// For people; `of_writers` and `of_readers` say which nets, where they are two ("of the train net").
std::string Describe(const Overwriting& found, const std::string& of_writers = "", const std::string& of_readers = "");

}  // namespace crema

#endif  // CREMA_GRAPH_FILES_WRITTEN_H_
