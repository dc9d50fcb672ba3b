#include "tools/flags.h"

#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/byte_size.h"
#include "base/compute_threads.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "device/gpu.h"
#include "runtime/refuse_inputs.h"
#include "zoo/zoo.h"

DEFINE_string(model, "", "net file");
DEFINE_string(phase, "", "TRAIN or TEST");
DEFINE_int32(level, 0, "level of the net's state");
DEFINE_string(stage, "", "stages of the net's state");
DEFINE_string(shape, "", "shape of a data layer's top");
DEFINE_string(gpu, "", "GPUs");
DEFINE_int32(iterations, 50, "batches");
DEFINE_int32(threads, 0, "threads that compute");
DEFINE_int32(data_threads, 0, "threads that read data");
DEFINE_string(profile, "", "trace to write");
DEFINE_int32(profile_iterations, 20, "iterations in the trace");
DEFINE_string(memory_limit, "", "the most memory a net may take while it is trained");
DEFINE_string(precision, "f32", "what images between layers are held and convolved in");
DEFINE_string(skip_passes, "", "passes of the compiler to leave out");

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

std::pair<std::string, Shape> ParseShape(const CommandLine& line, const std::string& text) {
  const auto fail = [&](const std::string& what) {
    Fail(line,
         "--shape=" + text + ": " + what + "; expected a blob's name and its extents, as in --shape=data=64,1,28,28");
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) fail("there is no name");
  std::vector<int64_t> dims;
  const char* at = text.data() + equals + 1;
  const char* const end = text.data() + text.size();
  if (at == end) fail("there are no extents");
  while (true) {
    int64_t extent = 0;
    while (at != end && *at == ' ') ++at;
    const auto [next, status] = std::from_chars(at, end, extent);
    if (status != std::errc() || (next != end && *next != ',' && *next != 'x')) {
      fail("\"" + std::string(at, end) + "\" is not a list of whole numbers");
    }
    if (extent < 1 || extent > INT32_MAX) fail("extent " + std::to_string(extent) + " is out of range");
    dims.push_back(extent);
    if (next == end) break;
    at = next + 1;
  }
  if (dims.size() > Shape::kMaxAxes) fail("at most " + std::to_string(Shape::kMaxAxes) + " axes are possible");
  double count = 1;
  for (int64_t extent : dims) count *= static_cast<double>(extent);
  if (count > INT32_MAX) fail("a blob holds at most 2147483647 values");
  return {text.substr(0, equals), Shape(std::move(dims))};
}

// Of the zoo's models finetune takes the names, the others files.
void RefuseModelOfZoo(const CommandLine& line) {
  if (FLAGS_model.find_first_of("./") != std::string::npos || std::filesystem::exists(FLAGS_model)) return;
  ZooModel model;
  try {
    model = FindModel(FindZoo(""), FLAGS_model);
  } catch (const std::exception&) {
    return;  // it is no such name
  }
  Fail(line, "--model=" + FLAGS_model +
                 ": there is no such file; the net of that name in the zoo is --model=" + model.folder +
                 "/deploy.prototxt" + (model.has_weights ? ", its weights --weights=" + model.weights_path() : ""));
}

int GpuNumber(const CommandLine& line, const std::string& text) {
  int id = 0;
  if (!ParseWhole(text, &id) || id < 0) {
    Fail(line, "--gpu=" + FLAGS_gpu + ": the number of a GPU was expected, as in --gpu=0");
  }
  return id;
}

}  // namespace

Flag ModelFlag() { return {.name = "model", .value = "FILE", .help = "net file (prototxt)", .required = true}; }

Flag PhaseFlag(const std::string& help) { return {.name = "phase", .value = "TRAIN|TEST", .help = help}; }
Flag LevelFlag() { return {.name = "level", .value = "N", .help = "level that include and exclude rules see"}; }

Flag StageFlag(const std::string& help) {
  return {.name = "stage", .value = "A[,B]", .help = help, .may_be_empty = true};
}

Flag ShapeFlag() {
  return {.name = "shape",
          .value = "BLOB=N,C,H,W",
          .help = "shape of a data layer's top whose source does not exist here, or of an Input layer's",
          .repeatable = true};
}

Flag GpuFlag() {
  return {.name = "gpu",
          .value = "ID",
          .help = "compute on this GPU, as `crema device_query` counts them [the CPU]",
          .may_be_empty = true};
}

Flag GpusFlag() {
  return {.name = "gpu",
          .value = "ID[,ID]|all",
          .help = "train on these GPUs, as `crema device_query` counts them, each with batch_size records [the CPU]",
          .may_be_empty = true};
}

Flag IterationsFlag(const std::string& help) {
  return {.name = "iterations", .value = "N", .help = help, .min = 1, .max = 1000000000};
}

Flag PrecisionFlag() {
  return {.name = "precision",
          .value = "f32|tf32|bf16|fp16",
          .help =
              "tf32: GPUs round what they multiply; bf16, or fp16 on GPUs: what images between layers are held and "
              "convolved in"};
}

Flag MemoryLimitFlag() {
  return {.name = "memory_limit",
          .value = "SIZE",
          .help = "run layers again in the backward pass where the net, trained, would take more than this (800MB)"};
}

Flag SkipPassesFlag() {
  return {.name = "skip_passes",
          .value = "NAMES",
          .help = "passes of the compiler to leave out: fuse_layers, choose_layouts, lay_out_weights, split_batch"};
}

Flag ThreadsFlag() {
  return {.name = "threads",
          .value = "N",
          .help = "threads that compute; 0: one a core, or OMP_NUM_THREADS",
          .min = 0,
          .max = 4096};
}

Flag DataThreadsFlag() {
  return {
      .name = "data_threads",
      .value = "N",
      .help =
          "threads that read and decode, for each data layer; 0: as data_param { threads } says, or where it is not "
          "set one, and one per core where images are decoded",
      .min = 0,
      .max = 256};
}

Flag ProfileFlag() {
  return {.name = "profile",
          .value = "FILE",
          .help = "write when each step ran as a trace (JSON) for ui.perfetto.dev or chrome://tracing"};
}

Flag ProfileIterationsFlag() {
  return {.name = "profile_iterations",
          .value = "N",
          .help = "how many iterations the profile holds at most, the first ones",
          .min = 1,
          .max = 100000,
          .needs = {"profile"}};
}

Phase PhaseOf(const CommandLine& line, const std::string& value) {
  if (value == "TRAIN") return TRAIN;
  if (value == "TEST") return TEST;
  Fail(line, "--phase=" + value + ": expected TRAIN or TEST" + DidYouMean(value, {"TRAIN", "TEST"}));
}

std::vector<std::pair<std::string, Shape>> ShapesOf(const CommandLine& line) {
  std::vector<std::pair<std::string, Shape>> shapes;
  for (const std::string& text : line.values("shape")) {
    shapes.push_back(ParseShape(line, text));
    for (size_t i = 0; i + 1 < shapes.size(); ++i) {
      if (shapes[i].first == shapes.back().first) Fail(line, "--shape is given twice for \"" + shapes[i].first + "\"");
    }
  }
  return shapes;
}

Device& DeviceOf(const CommandLine& line) {
  if (!line.has("gpu")) return CpuDevice();
  if (FLAGS_gpu == "all" || FLAGS_gpu.find(',') != std::string::npos) {
    Fail(line, "--gpu=" + FLAGS_gpu + ": this command computes on one GPU; give its number, --gpu=0");
  }
  return OpenGpu(GpuNumber(line, FLAGS_gpu));
}

std::vector<int> GpusOf(const CommandLine& line) {
  std::vector<int> ids;
  if (FLAGS_gpu == "all") {
    std::string why;
    const size_t count = DescribeGpus(&why).size();
    if (count == 0) throw EnvironmentError("no GPU: " + why);
    for (size_t id = 0; id < count; ++id) ids.push_back(static_cast<int>(id));
  } else {
    for (const std::string& text : CommaList(line, "gpu", FLAGS_gpu)) {
      const int id = GpuNumber(line, text);
      if (std::count(ids.begin(), ids.end(), id) > 0) {
        Fail(line, "--gpu=" + FLAGS_gpu + ": GPU " + text + " is given twice");
      }
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<Device*> DevicesOf(const CommandLine& line) {
  if (!line.has("gpu")) return {&CpuDevice()};
  std::vector<Device*> devices;
  for (const int id : GpusOf(line)) devices.push_back(&OpenGpu(id));
  return devices;
}

void LogDevices(const std::vector<Device*>& devices) {
  if (devices.empty() || devices[0]->type() == DeviceType::kCpu) {
    const int threads = omp_get_max_threads();
    LOG(INFO) << "Using the CPU, " << threads << (threads == 1 ? " thread" : " threads");
    return;
  }
  for (const Device* device : devices) LOG(INFO) << "Using GPU " << device->name();
}

void ApplyThreads() {
  const int asked = FLAGS_threads > 0 ? FLAGS_threads : omp_get_max_threads(), threads = UseComputeThreads(asked);
  if (threads < asked) {
    LOG(WARNING) << threads << (threads == 1 ? " thread computes" : " threads compute") << ", not " << asked
                 << ": no more are possible" << (std::getenv("OMP_THREAD_LIMIT") ? " with OMP_THREAD_LIMIT" : "");
  }
}

NetOptions NetOptionsOf(const CommandLine& line) {
  NetOptions options;
  options.phase = FLAGS_phase.empty() ? TRAIN : PhaseOf(line, FLAGS_phase);
  options.level = FLAGS_level;
  options.stages = CommaList(line, "stage", FLAGS_stage);
  options.shapes = ShapesOf(line);
  if (FLAGS_precision == "bf16") {
    options.precision = Precision::kBF16;
  } else if (FLAGS_precision == "fp16") {
    options.precision = Precision::kFP16;
  } else if (FLAGS_precision == "tf32") {
    options.precision = Precision::kTF32;
  } else if (FLAGS_precision != "f32") {
    Fail(line, "--precision=" + FLAGS_precision + ": f32, tf32, bf16 or fp16 was expected");
  }
  if (!FLAGS_memory_limit.empty()) {
    const std::optional<size_t> limit = ParseBytes(FLAGS_memory_limit);
    if (!limit || *limit == 0) {
      Fail(line, "--memory_limit=" + FLAGS_memory_limit + ": a size such as 800MB or 2GiB was expected");
    }
    options.memory_limit = *limit;
    options.recompute = Recompute::kAuto;
  }
  options.skip_passes = CommaList(line, "skip_passes", FLAGS_skip_passes);
  options.context.data_threads = FLAGS_data_threads;
  return options;
}

NetFile ReadModel(const CommandLine& line) {
  RefuseModelOfZoo(line);
  try {
    return ReadNetFile(FLAGS_model);
  } catch (const UserError&) {
    bool is_solver = false;
    std::string net;
    try {
      const SolverParameter solver = ReadSolverFile(FLAGS_model).solver;
      is_solver = solver.has_base_lr() || solver.has_net() || solver.has_train_net() || solver.has_max_iter();
      net = solver.has_net() ? solver.net() : solver.train_net();
    } catch (const std::exception&) {
      // Neither: the complaints about it as a net stand.
    }
    if (!is_solver) throw;
    Fail(line, "--model=" + FLAGS_model + " is a solver file, expected a net" +
                   (net.empty() ? "" : "; its net is --model=" + net));
  }
}

void PrepareNet(const CommandLine& line, Net& net) {
  PrintWarnings(net.warnings());
  RefuseInputs(
      net, "the net",
      "a program that embeds crema fills (include/crema/net.h), and nothing does here, so that it would be "
      "zeros; crema evaluate scores such a net on labelled images, crema predict, detect and extract run it on "
      "the images that they are given");
  LoadWeightsFlag(line, net);
}

DataExtent ExtentOf(Net& net) {
  for (const auto& [layer, known] : net.data_extents()) {
    if (known.epoch == 0) net.FindDataExtent(layer);
  }
  for (const auto& [layer, extent] : net.data_extents()) {
    if (extent.epoch > 0) return extent;
  }
  return {};
}

void PrintWarnings(const std::vector<Diagnostic>& warnings) {
  for (const Diagnostic& warning : warnings) std::cerr << warning.ToString() << "\n";
}

}  // namespace crema::tools
