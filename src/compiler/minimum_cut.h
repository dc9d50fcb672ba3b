// The cheapest way to part things in two.
#ifndef CREMA_COMPILER_MINIMUM_CUT_H_
#define CREMA_COMPILER_MINIMUM_CUT_H_

#include <cstdint>
#include <vector>

namespace crema {

// Nodes lie on one of two sides; an edge costs something where it leads from the first side to the second. Found as a
// maximum flow by shortest augmenting paths (Edmonds and Karp, "Theoretical improvements in algorithmic efficiency for
// network flow problems", 1972).
class MinimumCut {
 public:
  // A cost that is never paid.
  static constexpr int64_t kNever = INT64_MAX / 4;
  // Nodes that lie on these sides.
  static constexpr int kFirst = 0, kSecond = 1;

  MinimumCut() : edges_of_(2) {}

  int AddNode();
  // cost: at least 0.
  void AddEdge(int from, int to, int64_t cost);

  // Whether each node is on the first side, where of the cheapest cuts the one with the most nodes there is taken.
  // Once.
  std::vector<bool> Solve();

 private:
  struct Edge {
    int to;
    int64_t left;  // of its cost, that no flow has taken
  };

  bool Augment();

  std::vector<Edge> edges_;                 // each followed by the one back
  std::vector<std::vector<int>> edges_of_;  // by node
};

}  // namespace crema

#endif  // CREMA_COMPILER_MINIMUM_CUT_H_
