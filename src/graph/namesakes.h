// Layers of one name, which nets may have: files of weights, and nets that borrow parameters, tell them apart by their
// order among those of the name that have parameters.
#ifndef CREMA_GRAPH_NAMESAKES_H_
#define CREMA_GRAPH_NAMESAKES_H_

#include <string>

#include "graph/graph.h"

namespace crema {

// How many layers of its name, with parameters, are before node `node`.
int NumberOf(const Graph& graph, int node);

// The layer with parameters that has this name and number; null without one.
const Node* FindNumbered(const Graph& graph, const std::string& name, int number);

// The parameter of `graph` that stands for `param` of another one: a layer that uses that, the owner first, has it
// there under the same name and number. -1 without one.
int FindParameter(const Graph& graph, const Graph& other, int param);

}  // namespace crema

#endif  // CREMA_GRAPH_NAMESAKES_H_
