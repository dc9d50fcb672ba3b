#include "compiler/minimum_cut.h"

#include <algorithm>
#include <cstddef>

namespace crema {

int MinimumCut::AddNode() {
  edges_of_.emplace_back();
  return static_cast<int>(edges_of_.size()) - 1;
}

void MinimumCut::AddEdge(int from, int to, int64_t cost) {
  edges_of_[static_cast<size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, cost});
  edges_of_[static_cast<size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

// Sends what fits along a shortest path; false where none is left.
bool MinimumCut::Augment() {
  std::vector<int> came_by(edges_of_.size(), -1), reached = {kFirst};
  for (size_t next = 0; next < reached.size() && came_by[kSecond] < 0; ++next) {
    for (const int e : edges_of_[static_cast<size_t>(reached[next])]) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left == 0 || edge.to == kFirst || came_by[static_cast<size_t>(edge.to)] >= 0) continue;
      came_by[static_cast<size_t>(edge.to)] = e;
      reached.push_back(edge.to);
    }
  }
  if (came_by[kSecond] < 0) return false;
  const auto on_path = [&](const auto& visit) {
    for (int node = kSecond; node != kFirst;) {
      const auto e = static_cast<size_t>(came_by[static_cast<size_t>(node)]);
      visit(edges_[e], edges_[e ^ 1]);
      node = edges_[e ^ 1].to;
    }
  };
  int64_t most = kNever;
  on_path([&](const Edge& edge, const Edge&) { most = std::min(most, edge.left); });
  on_path([&](Edge& edge, Edge& back) {
    edge.left -= most;
    back.left += most;
  });
  return true;
}

std::vector<bool> MinimumCut::Solve() {
  while (Augment()) {
  }
  // The others lead to the second side without a cost.
  std::vector<bool> first(edges_of_.size(), true);
  std::vector<int> reached = {kSecond};
  first[kSecond] = false;
  for (size_t next = 0; next < reached.size(); ++next) {
    for (const int e : edges_of_[static_cast<size_t>(reached[next])]) {
      const int from = edges_[static_cast<size_t>(e)].to;
      if (edges_[static_cast<size_t>(e) ^ 1].left == 0 || !first[static_cast<size_t>(from)]) continue;
      first[static_cast<size_t>(from)] = false;
      reached.push_back(from);
    }
  }
  return first;
}

}  // namespace crema
