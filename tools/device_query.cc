// crema device_query: what this machine can compute on.
#include <iostream>

#include "device/device.h"
#include "ops/matrices/gemm.h"
#include "tools/commands.h"

namespace crema::tools {

namespace {

void Print(const DeviceFacts& device) {
  std::cout << device.title << "\n";
  for (const auto& [what, value] : device.facts) {
    std::string padded = "  " + what;
    padded.resize(std::max<size_t>(padded.size() + 2, 26), ' ');
    std::cout << padded << value << "\n";
  }
}

int Run(const CommandLine&) {
  DeviceFacts cpu = DescribeCpu();
  cpu.facts.emplace_back("Matrix products", DescribeGemm());
  Print(cpu);
  std::string why;
  const std::vector<DeviceFacts> gpus = DescribeGpus(&why);
  for (const DeviceFacts& gpu : gpus) Print(gpu);
  if (gpus.empty()) std::cout << "No GPU: " << why << "\n";
  return kExitSuccess;
}

}  // namespace

const Command& DeviceQueryCommand() {
  static const Command command = {
      .name = "device_query",
      .summary = "show the processors of this machine and, where there are any, its GPUs",
      .usage = "",
      .flags = {},
      .examples = "train, test and time compute on the CPU, or on GPUs: --gpu counts them from 0 in this order.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
