// A compiled network that can be run: the entry point for programs that embed crema.
//
//   NetFile file = ReadNetFile("deploy.prototxt");
//   Net net(file, {.phase = TEST, .backward = false});
//   net.LoadWeights(ReadWeights("lenet.caffemodel"));
//   net.Forward();
//   Tensor prob = net.blob("prob");
#ifndef CREMA_NET_H_
#define CREMA_NET_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crema/batch_schedule.h"
#include "crema/context.h"
#include "crema/data_supply.h"
#include "crema/files.h"
#include "crema/parameter_layout.h"
#include "crema/tensor.h"

namespace crema {

enum class Precision { kF32, kTF32, kBF16, kFP16 };
enum class Recompute { kNone, kAuto };

struct NetOptions {
  Phase phase = TRAIN;
  int level = 0;
  std::vector<std::string> stages = {};
  // Shapes of data tops whose source does not exist here (--shape=data=64,1,28,28).
  std::vector<std::pair<std::string, Shape>> shapes = {};
  // A source of data that is not there is an error; false: what has a shape all the same is compiled.
  bool needs_data = false;
  // Where relative paths in the file are looked for after the working directory (the solver's folder); the net file's
  // own folder is always the last.
  std::vector<std::string> search_folders = {};
  // Device (null: the CPU; crema/device.h has others) and random seed.
  Context context = {};
  // kBF16: images between layers that can are bf16; convolutions and inner products multiply in bf16 and add in f32;
  // parameters, their gradients and updates, losses and statistics stay f32. Falls back to kF32, with a warning, on
  // CPUs without AVX-512 BF16. kTF32: only what convolutions and products of matrices multiply is rounded; falls back
  // likewise on devices without it, as CPUs are. kFP16: as kBF16 in IEEE half precision, on GPUs from compute
  // capability 5.3 on; a solver scales the loss then (SolverParameter.loss_scale), a net alone does not.
  Precision precision = Precision::kF32;
  // Keep every tensor readable after a pass, at the cost of memory and time: no two share storage, no layers are fused.
  bool keep_all = false;
  // Blobs that are the net's outputs, instead of those that no layer reads. Of a name that several layers write in
  // place it is the last value. Layers that read something and make nothing of use for these are left out, losses too.
  // A name that the net does not have is a UserError.
  std::vector<std::string> outputs = {};
  // Compile a backward pass. false for nets that are only used: they are smaller, and faster, since BatchNorm is folded
  // into convolutions and parts of the batch go through several layers at a time.
  bool backward = true;
  // Add to the parameters' gradients instead of overwriting them from the second Backward after ClearGradients on
  // (iter_size > 1).
  bool accumulate = false;
  // Give each parameter's gradient a place of its own (Parameter::grad). false: it lies in the memory of the pass, from
  // the layers that make it to the GradientReader that Backward is given. Not with `accumulate`, which is a UserError.
  bool keep_gradients = true;
  // With keep_gradients: tell a GradientReader of each parameter's gradient as soon as it is complete, where Backward
  // is given one.
  bool announce_gradients = false;
  // Differentiate inputs too, as force_backward: true in the file does.
  bool force_backward = false;
  // Passes of the compiler to leave out: those that only make nets faster ("fuse_layers", "choose_layouts",
  // "lay_out_weights", "split_batch"; crema compile --explain lists all). For comparing and for finding mistakes.
  std::vector<std::string> skip_passes = {};
  // Whether some layers may run again in the backward pass, so that what they made need not be kept: as few as keep the
  // net within memory_limit. Results are the same bits.
  Recompute recompute = Recompute::kNone;
  // Bytes of activations, gradients, workspaces, parameters and parameter_copies together; 0: none for kNone, the
  // device's free memory for kAuto. A net with a backward pass that cannot be kept within it is a UserError; others are
  // not limited.
  size_t memory_limit = 0;
  // Where a file sets it, for messages.
  Location memory_limit_at = {};
  // Numbers that who trains the net keeps beside each number of a parameter (a solver's history).
  int parameter_copies = 0;
  // Layers of the same name use this net's parameters, whose memory must outlive this net.
  const class Net* share_with = nullptr;
  // A net of the same file and options, but for Context::rank, whose memory must outlive this net: both train the same
  // parameters, in its memory. Gradients, and what passes change (BatchNorm's statistics), each net has for itself.
  const class Net* train_with = nullptr;
  // Work in the memory that share_with needs only during its passes, where that suffices: then neither net keeps
  // anything but its inputs while the other one runs, and they must not run at the same time. A
  // UserError without share_with.
  bool share_memory = false;
};

// One learnable parameter or running statistic ("blob" in Caffe's files), in the order of Caffe's learnable_params.
// Several layers may use it (param { name: ... }); the first is the owner.
struct Parameter {
  std::string layer;  // owner
  int index = 0;      // which of the owner's blobs
  Shape shape;        // as files know it
  // In the memory of the net's device. Of that shape and plain; or, where there is a layout, flat tensors of
  // layout->count() floats that lie so.
  Tensor data;
  bool trained = false;  // a solver changes it, by its gradient
  Tensor grad;           // undefined where it is not trained, and without NetOptions::keep_gradients
  std::shared_ptr<const ParameterLayout> layout;
  float lr_mult = 1;
  float decay_mult = 1;
  class Device* device = nullptr;  // in whose memory the tensors lie

  std::string name() const { return layer + "[" + std::to_string(index) + "]"; }
  // shape.count() values in C order, whatever the layout. Throws UserError where the gradient is not defined.
  void CopyDataTo(float* plain) const;
  void CopyGradTo(float* plain) const;
  void SetData(const float* plain) const;
};

// One net output: a top that no layer reads, or that NetOptions::outputs names.
struct NetOutput {
  std::string name;
  Tensor value;
  float loss_weight = 0;
  bool is_loss = loss_weight != 0;  // or made by a loss layer, which may have loss_weight 0
};

// One top of an Input layer, to be written before Forward.
struct NetInput {
  std::string name;
  Tensor value;
};

// What LoadWeights did.
struct WeightsReport {
  std::vector<std::string> copied, ignored, fresh;  // layer names: copied, only in the file, only in the net
};

// Told how long each step of a net's passes took, by the thread that runs them. Steps are those of Net::compiled(),
// numbered through forward and backward.
class StepRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~StepRecorder() = default;
  virtual void OnStep(int step, Clock::time_point begin, Clock::time_point end) = 0;
};

// Told each parameter's gradient within the backward pass, by the thread that runs it, once it is complete and the pass
// reads the parameter no more.
class GradientReader {
 public:
  virtual ~GradientReader() = default;
  // `parameter` counts as Net::parameters() does, and may be changed; `gradient` is gone after the call, unless the net
  // keeps it.
  virtual void OnGradient(int parameter, const Tensor& gradient) = 0;
};

// Used by one thread at a time, and so are nets together that share_with or train_with joins, save that passes of nets
// with train_with may run at the same time. Nets that are not joined do not know of each other.
class Net {
 public:
  // Compiles and allocates; parameters are filled as their fillers say. Throws UserError with every mistake found.
  Net(const NetFile& file, const NetOptions& options);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  const std::string& name() const;
  Phase phase() const;
  // What the files were told about: old syntax, settings without effect, assumptions.
  const std::vector<Diagnostic>& warnings() const;

  // Runs one forward pass and returns the sum of the weighted losses. Throws UserError for unusable data.
  float Forward();
  // Gradients of the last Forward into parameters()' grad, or, without keep_gradients, one after the other to `reader`;
  // with announce_gradients both.
  // Throws UserError before the first Forward, and where there are none: of a net with share_with, or without
  // `backward`, or where neither keep_gradients nor `reader` takes them.
  void Backward(GradientReader* reader = nullptr);
  // Both, and then calls `then`, unless the loss is not finite. On a GPU it is not known yet when the work of Backward,
  // and what `then` issues, is on its way: who changes parameters there leaves them alone for such a loss.
  float ForwardBackward(GradientReader* reader = nullptr, const std::function<void()>& then = {});
  // Makes the next Backward overwrite the gradients.
  void ClearGradients();
  // Repeats the last forward pass on the same batch, with the same random numbers and without moving running
  // statistics, and then its backward pass, which overwrites the gradients.
  void RepeatBackward();
  // From the next backward pass on gradients are those of the losses times *factor, a number in the device's memory
  // that must outlive the passes; null: times 1.
  void set_loss_factor(const float* factor);

  // Number of forward passes so far; random numbers (dropout) depend on it.
  uint64_t pass() const;
  void set_pass(uint64_t pass);

  // Tensor of the last value written under a blob's name; undefined if there is none. Without keep_all only inputs and
  // outputs are sure to hold their values after a pass. Of a net on a GPU these, and those of inputs() and outputs(),
  // lie in the host's memory: what inputs hold is uploaded by Forward, other values are copies. Without keep_all only
  // the gradients of inputs are sure to hold, with force_backward.
  Tensor blob(const std::string& name) const;
  Tensor blob_grad(const std::string& name) const;
  std::vector<std::string> blob_names() const;
  // Of a net with keep_all: calls `visit` with every top of every layer, in the order of layers, as the layer made it
  // (blob() knows the last value of a name that several layers write), and with its gradient, which is undefined where
  // there is none. The tensors lie in the host's memory and are good for that call.
  using TopVisitor = std::function<void(const std::string& layer, const std::string& top, const Tensor& value,
                                        const Tensor& gradient)>;
  void VisitTops(const TopVisitor& visit) const;
  std::vector<NetOutput> outputs() const;
  // The tops of all Input and MemoryData layers in the net's order. Unlike blob(), the first value under each name.
  std::vector<NetInput> inputs() const;

  // Who writes through these, or through parameter_block(), later than the call says so with ParametersChanged(): nets
  // that are not trained keep converted copies.
  std::span<Parameter> parameters();
  std::span<const Parameter> parameters() const;
  // All parameter values (gradients) as one contiguous block in parameters()' order, each as it is stored, padding
  // between them zero, in the memory of the device. Only for nets that own all their parameters.
  std::span<float> parameter_block();
  std::span<float> gradient_block();
  void ParametersChanged();

  // Copies by layer name. Throws UserError naming layer and both shapes where they differ; nothing is copied then.
  WeightsReport LoadWeights(const std::vector<LayerWeights>& weights);
  // Every layer with blobs, shared ones in each, in Caffe's binary form.
  NetParameter ToProto(bool write_gradients = false) const;

  // Positions of the data layers: (layer name, records delivered), of all ranks (Context::ranks) together.
  std::vector<std::pair<std::string, uint64_t>> data_positions() const;
  // The same without names, in that order; allocates nothing where `records` has held them before.
  void CopyDataPositions(std::vector<uint64_t>* records) const;
  // Changes nothing where there is no such data layer.
  void set_data_position(const std::string& layer, uint64_t records);
  // Of all data layers, in that order. Throws UserError where there are more, or fewer.
  void set_data_positions(const std::vector<uint64_t>& records);
  // Makes every data layer go on with batch schedule.first of its stream, where batch b is records [b * batch_size,
  // (b + 1) * batch_size), and by that schedule. Cheap where that is what it does anyway; else batches that were made
  // ahead are lost. Throws UserError where a run is empty or longer than the stride.
  void ReadBatches(const BatchSchedule& schedule);
  // The first batch that begins behind all that the data layers have read; 0 without any.
  uint64_t next_batch() const;

  // What recurrent layers carry from pass to pass: (layer name, values in the device's memory), which may be written
  // between passes.
  std::vector<std::pair<std::string, Tensor>> recurrent_states() const;
  // The next pass begins anew, with zeros.
  void ClearRecurrentStates();

  // How much the data layers read, as far as that is known without opening their sources: (layer name, extent).
  std::vector<std::pair<std::string, DataExtent>> data_extents() const;
  // Opens the source of a data layer where data_extents() does not know all of it yet. Throws UserError where that
  // fails.
  void FindDataExtent(const std::string& layer);
  // How the data layers get their batches: (layer name, what it says).
  std::vector<std::pair<std::string, DataSupply>> data_supplies() const;

  // The first parameter that holds a NaN: `parameter conv1[0]`. Empty if there is none. Infinities may be meant: masks
  // of attention are stored as such. Waits for the device.
  std::string FindNanParameter() const;

  // Repeats the last forward pass on the same batch and names the first parameter or layer that holds a NaN or an
  // infinity: `parameter conv1[0]` or `layer "loss" (SoftmaxWithLoss), top "loss"`. Empty if there is none.
  std::string FindNonFinite();

  // Times every step from the next pass on; null: no more. Without a recorder no clock is read. `recorder` must outlive
  // the passes.
  void set_recorder(StepRecorder* recorder);

  // The compiled form, for dumps and tests (src/graph/program.h).
  const struct CompiledNet& compiled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crema

#endif  // CREMA_NET_H_
