// Flags that several commands take, and how their values are read.
#ifndef CREMA_TOOLS_FLAGS_H_
#define CREMA_TOOLS_FLAGS_H_

#include <gflags/gflags.h>

#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "crema/tensor.h"
#include "tools/command_line.h"
#include "tools/weights_flag.h"

DECLARE_string(model);
DECLARE_string(weights);
DECLARE_string(phase);
DECLARE_int32(level);
DECLARE_string(stage);
DECLARE_string(shape);
DECLARE_string(gpu);
DECLARE_int32(iterations);
DECLARE_int32(threads);
DECLARE_int32(data_threads);
DECLARE_string(profile);
DECLARE_int32(profile_iterations);
DECLARE_string(memory_limit);
DECLARE_string(precision);
DECLARE_string(skip_passes);

namespace crema::tools {

// The table entries of the flags above.
Flag ModelFlag();
Flag PhaseFlag(const std::string& help);
Flag LevelFlag();
Flag StageFlag(const std::string& help = "stages that include and exclude rules see");
Flag ShapeFlag();
Flag GpuFlag();
Flag GpusFlag();
Flag IterationsFlag(const std::string& help);
Flag ThreadsFlag();
Flag DataThreadsFlag();
Flag ProfileFlag();
Flag ProfileIterationsFlag();
Flag PrecisionFlag();
Flag MemoryLimitFlag();
Flag SkipPassesFlag();

// All throw UserError that names the flag.
Phase PhaseOf(const CommandLine& line, const std::string& value);
// Of --shape=name=64,1,28,28, as often as it was given.
std::vector<std::pair<std::string, Shape>> ShapesOf(const CommandLine& line);
// What --gpu names; the CPU without it. Throws EnvironmentError where that GPU is not there.
Device& DeviceOf(const CommandLine& line);
// The numbers that --gpu names, of which there may be several.
std::vector<int> GpusOf(const CommandLine& line);
// The same as devices; the CPU without it.
std::vector<Device*> DevicesOf(const CommandLine& line);
// Logs on what a run computes.
void LogDevices(const std::vector<Device*>& devices);
// Lets every computation use --threads threads; 0 leaves it to OMP_NUM_THREADS.
void ApplyThreads();

// --model of --phase with --level, --stage, --shape, --precision, --memory_limit, --skip_passes and --data_threads,
// without --weights.
NetOptions NetOptionsOf(const CommandLine& line);
// Reads --model; a solver file is told apart.
NetFile ReadModel(const CommandLine& line);
// How much the first of its data layers reads that knows it.
DataExtent ExtentOf(Net& net);
// For a net that reads data of its own: says its warnings and loads --weights. Throws UserError where a layer waits for
// a program to fill it; names the commands that take such a net.
void PrepareNet(const CommandLine& line, Net& net);
// One line each on stderr.
void PrintWarnings(const std::vector<Diagnostic>& warnings);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_FLAGS_H_
