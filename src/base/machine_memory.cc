#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
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

struct Group {
  size_t limit = 0, used = 0;  // limit 0: none
};

// Of the control group whose folder it is. What files left in memory and nobody used lately is given up when it is
// needed, and so does not count as used.
Group ReadGroup(const std::string& folder, bool second_version) {
  const size_t limit = NumberAfter(folder + (second_version ? "/memory.max" : "/memory.limit_in_bytes"), "");
  if (limit == 0) return {};
  const size_t used = NumberAfter(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes"), "");
  const size_t idle = NumberAfter(folder + "/memory.stat", second_version ? "inactive_file " : "total_inactive_file ");
  return {limit, used - std::min(used, idle)};
}

// In a container the group's folder is the root of what is to be seen; else /proc/self/cgroup names it.
Group MemoryGroup() {
  const std::string root = "/sys/fs/cgroup";
  if (const Group group = ReadGroup(root, true); group.limit > 0) return group;
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const bool second = line.starts_with("0::");
    const size_t name = second ? 1 : line.find(":memory:");
    if (name == std::string::npos) continue;
    const std::string top = second ? root : root + "/memory";
    for (const std::string& folder : {top + line.substr(line.find(':', name + 1) + 1), top}) {
      if (const Group group = ReadGroup(folder, second); group.limit > 0) return group;
    }
  }
  return {};
}

}  // namespace

size_t MachineMemory() {
  const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t limit = MemoryGroup().limit;
  return limit > 0 ? std::min(machine, limit) : machine;
}

size_t FreeMachineMemory() {
  const size_t machine = NumberAfter("/proc/meminfo", "MemAvailable:") * 1024;
  const Group group = MemoryGroup();
  return group.limit > group.used ? std::min(machine, group.limit - group.used) : machine;
}

}  // namespace crema
