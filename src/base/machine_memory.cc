#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace crema {

namespace {

// The number behind `label` in a file of lines; 0 where there is none.
size_t NumberAfter(const std::string& path, const std::string& label) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(label)) return std::strtoull(line.c_str() + label.size(), nullptr, 10);
  }
  return 0;
}

struct GroupMemory {
  // Most where there is no limit.
  size_t limit = std::numeric_limits<size_t>::max(), free = std::numeric_limits<size_t>::max();

  // And those of the control group whose folder it is. What files left in memory and nobody used lately is given up
  // when it is needed, and so does not count as used.
  void Add(const std::string& folder, bool second_version) {
    const size_t most = NumberAfter(folder + (second_version ? "/memory.max" : "/memory.limit_in_bytes"), "");
    if (most == 0) return;
    size_t used = NumberAfter(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes"), "");
    used -= std::min(used,
                     NumberAfter(folder + "/memory.stat", second_version ? "inactive_file " : "total_inactive_file "));
    limit = std::min(limit, most);
    free = std::min(free, most - std::min(most, used));
  }
};

// A group is bound by those above it, too. In a container the group's folder is the root of what is to be seen; else
// /proc/self/cgroup names it.
GroupMemory MemoryOfGroups() {
  const std::string root = "/sys/fs/cgroup";
  GroupMemory memory;
  memory.Add(root, true);
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const bool second = line.starts_with("0::");
    const size_t name = second ? 1 : line.find(":memory:");
    if (name == std::string::npos) continue;
    const std::string top = second ? root : root + "/memory";
    std::string below = line.substr(line.find(':', name + 1) + 1);
    for (; below.size() > 1; below.resize(below.rfind('/'))) memory.Add(top + below, second);
    memory.Add(top, second);
  }
  return memory;
}

}  // namespace

size_t MachineMemory() {
  const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min(machine, MemoryOfGroups().limit);
}

size_t FreeMachineMemory() {
  return std::min(NumberAfter("/proc/meminfo", "MemAvailable:") * 1024, MemoryOfGroups().free);
}

}  // namespace crema
