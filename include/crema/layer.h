// The interface of a layer type, and how one is registered. docs/adding_a_layer.md walks through an example.
//
// The compiler drives a layer in this order, each step once:
//   Setup    check the parameters against the shapes of the bottoms; say the shapes of tops and learnable parameters
//   Plan     choose kernels for the device; ask for workspace and for tensors kept from forward to backward
//   Forward, Backward   any number of times; must not allocate
// A layer instance belongs to one net and is used by one thread at a time.
#ifndef CREMA_LAYER_H_
#define CREMA_LAYER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crema/batch_schedule.h"
#include "crema/context.h"
#include "crema/data_supply.h"
#include "crema/error.h"
#include "crema/net.pb.h"
#include "crema/parameter_layout.h"
#include "crema/tensor.h"

namespace crema {

class Operations;  // ops/operations.h

// Where a field of the layer under construction stands: "convolution_param.kernel_size" or "bottom".
// An empty path, or a field that was not set, gives the layer's own place.
using FieldLocator = std::function<Location(std::string_view field)>;

// One learnable parameter ("blob" in Caffe's files), asked for in Setup.
struct ParamRequest {
  Shape shape;
  FillerParameter filler;
  // False for running statistics: saved and loaded with the weights, never touched by the solver.
  bool learnable = true;
};

// What Setup sees and fills in.
class LayerSetup {
 public:
  LayerSetup(const LayerParameter& param, Phase phase, std::vector<TensorSpec> bottoms, FieldLocator locate);

  const LayerParameter& param() const { return *param_; }
  // Of a layer that was fused from several (crema/fusion.h): their parameters in the order of the members, of which
  // param() is the first (but see Fusion::gathers). Otherwise param() alone.
  std::span<const LayerParameter* const> members() const { return members_; }
  // Of fused layers: what LayerRun::layer_index is to each of the members where it runs alone.
  int member_index(int member) const { return member_indices_[member]; }
  void set_members(std::vector<const LayerParameter*> members, std::vector<int> indices) {
    members_ = std::move(members);
    member_indices_ = std::move(indices);
  }
  Phase phase() const { return phase_; }
  int bottoms() const { return static_cast<int>(bottoms_.size()); }
  int tops() const { return param_->top_size(); }
  const TensorSpec& bottom(int i) const { return bottoms_[i]; }
  const Shape& bottom_shape(int i) const { return bottoms_[i].shape; }
  // For messages: its name and shape, "data" (8x3x32x32).
  std::string DescribeBottom(int i) const {
    return "\"" + param_->bottom(i) + "\" (" + bottoms_[i].shape.ToString() + ")";
  }
  // The same as a sentence: "data" is 8x3x32x32.
  std::string BottomIs(int i) const { return "\"" + param_->bottom(i) + "\" is " + bottoms_[i].shape.ToString(); }

  // Stops Setup with a diagnostic at `field` (see FieldLocator) of this layer.
  [[noreturn]] void Fail(std::string_view field, const std::string& message) const;
  void Warn(std::string_view field, const std::string& message);
  Location where(std::string_view field = {}) const { return locate_(field); }
  // A path written in the file: as it is where it exists in the working directory, else in the first of the search
  // folders (the solver's, the net's) that has it, else as it is.
  std::string ResolvePath(const std::string& path) const;
  void set_search_folders(std::vector<std::string> folders) { folders_ = std::move(folders); }
  // NetOptions::needs_data.
  bool needs_data() const { return needs_data_; }
  void set_needs_data(bool needs_data) { needs_data_ = needs_data; }

  // Number of bottoms/tops this type takes; max < 0: no upper bound.
  void ExpectBottoms(int min, int max) const;
  void ExpectTops(int min, int max) const;
  void ExpectBottoms(int n) const { ExpectBottoms(n, n); }
  void ExpectTops(int n) const { ExpectTops(n, n); }
  // Turns a possibly negative axis into [0, axes of bottom `i`), or fails at `field`.
  int CanonicalAxis(std::string_view field, int axis, int bottom = 0) const;

  // Of f32 numbers, also where these are labels or indices.
  void SetTop(int i, Shape shape);
  // A filler that cannot be, as of an unknown type, fails. Returns the index that Forward and Backward find it under.
  int AddParam(ParamRequest request);

  // Tops are the bottom's own memory under another shape (Flatten, Reshape, Split): the compiler emits no step, Forward
  // and Backward are never called, and gradients pass through.
  void MakeView() { view_ = true; }
  // Tops hold elements of the differentiated bottoms, moved, repeated or left out whatever their values are, but none
  // changed (Concat, Crop, Permute): labels remain labels, and probabilities probabilities. Views do so anyway.
  void MoveElements() { moves_elements_ = true; }
  // Top 0 may be written over bottom 0, and the gradient of bottom 0 over that of top 0 (elementwise layers). The
  // compiler does so only where nothing reads the overwritten values later.
  void AllowInPlace() { in_place_ = true; }
  // Forward and Backward also take images (bottoms and tops of three to five axes) with channels last: all of them then
  // have that layout, which LayerPlan::bottom(0).layout tells. Without this every tensor is plain.
  void AllowChannelsLast() { channels_last_ = ChannelsLast::kAllowed; }
  // The same, and the layer is much faster so: the compiler brings its images into that layout.
  void PreferChannelsLast() { channels_last_ = ChannelsLast::kPreferred; }
  // Images that lie channels last may also be DType::kBF16 or, on a GPU, DType::kF16, all of them alike: so are then
  // those of their gradients. Parameters and their gradients stay f32.
  void AllowHalfPrecision() { half_precision_ = true; }
  // Without a backward pass, what the layer makes of an item of the batch (axis 0 of all bottoms and tops) depends on
  // this item alone: it may be set up for, and run on, a few items at a time, several such layers beside each other.
  void AllowSplitBatch() { splits_batch_ = true; }
  // Along an axis behind the channels (height, width), what stands at x of a bottom stands at scale * x + shift of a
  // top.
  struct AxisMap {
    double scale = 1, shift = 0;
  };
  // One for each such axis of tops and differentiated bottoms; without it Crop cannot be aligned through the layer, but
  // for one that may work in place, or is a view of the same shape.
  void SetCoordinateMap(std::vector<AxisMap> map) { coordinate_map_ = std::move(map); }
  // Every element stays where it is along these axes.
  void KeepCoordinates();
  // Bottom i is never differentiated (labels, indices).
  void NoGradient(int i);
  // Top 0 is a loss: its loss_weight is 1 where the file sets none.
  void MakeLoss() { loss_ = true; }
  // The layer has no backward pass at all (Accuracy, ArgMax).
  void MakeNonDifferentiable() { differentiable_ = false; }
  // The layer produces data: tops hold until its next Forward. Bottoms, if it has any, tell it shapes alone (PriorBox).
  void MakeSource() { source_ = true; }

  // Which of the classes of the scores of sequences is the blank, by the field that says so: the compiler warns where
  // layers of as many classes disagree.
  struct Blank {
    std::string field;
    int64_t classes = 0;
    int32_t label = 0;
  };
  void SetBlank(Blank blank) { blank_ = std::move(blank); }

  // Files that passes read, and one that they write, by the field that names it: the compiler refuses nets that write
  // what they read.
  void SetFilesRead(std::vector<std::string> paths) { files_read_ = std::move(paths); }
  struct FileWritten {
    std::string field, path;
  };
  void SetFileWritten(FileWritten file) { file_written_ = std::move(file); }

  // Multiply-adds of one forward pass counted as two operations; for reports only.
  void SetFlops(double forward) { flops_ = forward; }

  // For layers whose shape depends on data that may not be there (Data): the shape the user gave with --shape for top
  // i.
  const Shape* shape_override(int top) const;
  void set_shape_overrides(std::vector<std::pair<std::string, Shape>> overrides) { overrides_ = std::move(overrides); }

  // Results, read by the compiler.
  const std::vector<TensorSpec>& top_specs() const { return top_specs_; }
  const std::vector<bool>& top_set() const { return top_set_; }
  const std::vector<ParamRequest>& params() const { return params_; }
  const std::vector<Diagnostic>& warnings() const { return warnings_; }
  enum class ChannelsLast { kNever, kAllowed, kPreferred };
  ChannelsLast channels_last() const { return channels_last_; }
  bool half_precision() const { return half_precision_; }
  bool is_view() const { return view_; }
  bool moves_elements() const { return view_ || moves_elements_; }
  bool in_place() const { return in_place_; }
  bool splits_batch() const { return splits_batch_; }
  bool is_loss() const { return loss_; }
  bool is_differentiable() const { return differentiable_; }
  bool is_source() const { return source_; }
  bool has_gradient(int bottom) const;
  const std::optional<std::vector<AxisMap>>& coordinate_map() const { return coordinate_map_; }
  const std::optional<Blank>& blank() const { return blank_; }
  const std::vector<std::string>& files_read() const { return files_read_; }
  const std::optional<FileWritten>& file_written() const { return file_written_; }
  double flops() const { return flops_; }

 private:
  const LayerParameter* param_;
  std::vector<const LayerParameter*> members_;
  std::vector<int> member_indices_;
  Phase phase_;
  std::vector<TensorSpec> bottoms_;
  FieldLocator locate_;
  std::vector<TensorSpec> top_specs_;
  std::vector<bool> top_set_;
  std::vector<ParamRequest> params_;
  std::vector<Diagnostic> warnings_;
  std::vector<int> no_gradient_;
  std::optional<std::vector<AxisMap>> coordinate_map_;
  std::vector<std::pair<std::string, Shape>> overrides_;
  std::vector<std::string> folders_;
  bool needs_data_ = false;
  ChannelsLast channels_last_ = ChannelsLast::kNever;
  bool half_precision_ = false;
  bool view_ = false, moves_elements_ = false, in_place_ = false, splits_batch_ = false;
  bool loss_ = false, differentiable_ = true, source_ = false;
  std::optional<Blank> blank_;
  std::vector<std::string> files_read_;
  std::optional<FileWritten> file_written_;
  double flops_ = 0;
};

// What Plan sees and fills in: the gradients that will be asked for are known here.
class LayerPlan {
 public:
  LayerPlan(const Context& context, std::vector<TensorSpec> bottoms, std::vector<TensorSpec> tops,
            std::vector<bool> bottom_grads, std::vector<bool> param_grads);

  const Context& context() const { return context_; }
  const TensorSpec& bottom(int i) const { return bottoms_[i]; }
  const TensorSpec& top(int i) const { return tops_[i]; }
  // Whether the net has a backward pass, and so a training that changes parameters all the time.
  bool trains() const { return trains_; }
  void set_trains(bool trains) { trains_ = trains; }
  // What products of f32 matrices may round their factors to (NetOptions::precision, on a device that is faster so).
  Factors factors() const { return factors_; }
  void set_factors(Factors factors) { factors_ = factors; }
  // Whether Backward will be called at all, and what it must write.
  bool backward() const;
  bool bottom_grad(int i) const { return bottom_grads_[i]; }
  bool param_grad(int i) const { return param_grads_[i]; }

  // Backward reads this bottom/top: keep it until then. Everything else may be overwritten once forward is past it.
  void BackwardReadsBottom(int i);
  void BackwardReadsTop(int i);
  // The gradient of bottom i is that of top 0, unchanged: Backward is not asked for it, nor called if nothing else is
  // left to write.
  void PassGradient(int i);
  // Backward writes over the gradient of top 0, which is then given for this layer's use alone.
  void OverwriteTopGradient() { overwrites_ = true; }
  // A tensor written by Forward and read by Backward (a mask, an argmax); index for saved().
  int Save(TensorSpec spec);
  // Scratch memory for the duration of one Forward or Backward.
  void Workspace(size_t forward_bytes, size_t backward_bytes);

  // The chosen kernel and why others were passed over, for --dump=plan and --explain.
  void Chose(std::string kernel, std::vector<std::string> skipped = {});

  // Parameter i and its gradient, which are this layer's alone, may lie in a form of its kernel's own: KeepParameterAs
  // says which, and both are then flat tensors of layout->count() floats. Backward writes zeros into the padding.
  bool may_lay_out(int i) const { return laid_out(i).may; }
  void KeepParameterAs(int i, std::shared_ptr<const ParameterLayout> layout);
  // How parameter i, which another net owns, lies; null: plain. A net in which a layer does not ask for it does not
  // compile where that is not plain.
  std::shared_ptr<const ParameterLayout> TakeParameterLayout(int i);

  // What the compiler knows of a parameter's layout, and what became of it.
  struct LaidOut {
    bool may = false;                              // be kept in a form of the layer's choice
    std::shared_ptr<const ParameterLayout> given;  // it lies so already
    bool taken = false;                            // TakeParameterLayout was called
    std::shared_ptr<const ParameterLayout> kept;   // what KeepParameterAs said
  };
  void set_laid_out(std::vector<LaidOut> parameters) { laid_out_ = std::move(parameters); }
  LaidOut laid_out(int i) const { return static_cast<size_t>(i) < laid_out_.size() ? laid_out_[i] : LaidOut{}; }

  // Results, read by the compiler.
  const std::vector<int>& reads_bottom() const { return reads_bottom_; }
  const std::vector<int>& reads_top() const { return reads_top_; }
  bool passes_gradient(int bottom) const { return passes_gradient_[bottom]; }
  bool overwrites_top_gradient() const { return overwrites_; }
  const std::vector<TensorSpec>& saved() const { return saved_; }
  size_t forward_workspace() const { return forward_workspace_; }
  size_t backward_workspace() const { return backward_workspace_; }
  const std::string& kernel() const { return kernel_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  Context context_;
  std::vector<TensorSpec> bottoms_, tops_;
  std::vector<bool> bottom_grads_, param_grads_, passes_gradient_;
  bool overwrites_ = false, trains_ = true;
  Factors factors_ = Factors::kF32;
  std::vector<int> reads_bottom_, reads_top_;
  std::vector<TensorSpec> saved_;
  std::vector<LaidOut> laid_out_;  // by parameter
  size_t forward_workspace_ = 0, backward_workspace_ = 0;
  std::string kernel_;
  std::vector<std::string> skipped_;
};

// The tensors and circumstances of one Forward or Backward call.
struct LayerRun {
  const Context* context = nullptr;
  // What computes on the memory of the tensors below (ops/operations.h): the device's.
  Operations* ops = nullptr;
  // Counts forward passes of this net: (iteration * iter_size + part) of a train net. Random numbers depend on it.
  uint64_t pass = 0;
  // The batch of the previous call again, to look for the cause of a NaN or because what it made was not kept: sources
  // deliver it once more, states and statistics do not move.
  bool replay = false;
  // Of nets that are not trained: at least 1, and grows whenever parameters may have changed: what was derived from
  // them at another version is stale. In a backward pass it is not told (0).
  uint64_t parameters_version = 0;
  // Index of the layer in its net; with context->draw_seed(), pass and an element's index it names a random number.
  int layer_index = 0;

  std::span<const Tensor> bottoms, tops, params, saved;
  // Scratch as asked for in Plan; null where none was.
  std::byte* workspace = nullptr;

  // Backward only. Every defined tensor of bottom_grads and param_grads must be overwritten in full (never added to);
  // the compiler sums where several readers or shared parameters meet. Undefined ones are not wanted.
  std::span<const Tensor> top_grads, bottom_grads, param_grads;
};

class Layer {
 public:
  virtual ~Layer() = default;

  virtual void Setup(LayerSetup& setup) = 0;
  virtual void Plan(LayerPlan& /*plan*/) {}
  virtual void Forward(const LayerRun& /*run*/) {}
  virtual void Backward(const LayerRun& /*run*/) {}
  // With AllowSplitBatch, after Plan: this layer and `first`, set up and planned alike, run beside each other. What
  // Forward of `first` made of parameters, which it has before this one runs, is read and not made again.
  virtual void ShareWeights(Layer& /*first*/) {}

  // The value at `position` of a bottom, in the order of memory, is unusable: throws a BadItem that says why. Called by
  // Forward itself, or, for what a GPU found (Operations::FindBadLabel), when the pass is over.
  virtual void OnBadValue(int64_t /*position*/, float /*value*/) const {}

  // What goes on from pass to pass beside parameters (an LSTM's hidden state and cell): flat f32 in the device's
  // memory, zeros at first. Undefined where there is none. Part of snapshots.
  virtual Tensor recurrent_state() const { return {}; }

  // Sources only: how many records were delivered, in all ranks (Context::ranks), saved in snapshots so that a resumed
  // run reads on from there.
  virtual uint64_t position() const { return 0; }
  virtual void set_position(uint64_t /*records*/) {}
  // Sources only: go on with batch schedule.first of the stream, where batch b is records [b * batch_size, (b + 1) *
  // batch_size), and by that schedule, also after later calls of set_position. Where that changes nothing, nothing that
  // was prepared is lost.
  virtual void ReadBatches(const BatchSchedule& /*schedule*/) {}
  // Sources only: the first batch of the stream that begins at position() or later.
  virtual uint64_t next_batch() const { return 0; }
  // Sources only: whether the latest Forward wrote anything. If not, what the tops held is not uploaded to a GPU again.
  virtual bool wrote_tops() const { return true; }
  // Sources only: names the record behind item `index` of the current batch for error messages ("record 00000042 of
  // x_lmdb").
  virtual std::string DescribeItem(int64_t /*index*/) const { return {}; }
  // Sources only: how much there is, as far as that is known without opening the source.
  virtual DataExtent data_extent() const { return {}; }
  // Sources only: opens the source where data_extent() does not know all yet. Throws UserError as Forward does.
  virtual void FindDataExtent() {}
  // Sources only: how batches come so far.
  virtual DataSupply data_supply() const { return {}; }
};

// Thrown by Forward when a value of the data is unusable (a label outside the class range). The runtime turns it into a
// UserError that names the record.
class BadItem : public std::runtime_error {
 public:
  BadItem(int of_bottom, int64_t of_item, std::string message)
      : std::runtime_error(std::move(message)), bottom(of_bottom), item(of_item) {}
  int bottom;    // which bottom of the throwing layer held it
  int64_t item;  // index along the batch axis; -1: which one is not known, the message says where the value is
};

// --- Registration -----------------------------------------------------------------------------------------------

struct LayerType {
  std::string name;
  std::unique_ptr<Layer> (*create)();
  // The *_param messages this type reads; a file that sets another one gets a warning.
  std::vector<std::string> reads;
};

// All registered types, sorted by name.
const std::vector<const LayerType*>& LayerTypes();
// Null where there is none of that name.
const LayerType* FindLayerType(std::string_view name);

namespace internal {
struct LayerRegistrar {
  LayerRegistrar(std::string name, std::unique_ptr<Layer> (*create)(), std::vector<std::string> reads);
};
}  // namespace internal

// REGISTER_LAYER(Pooling, PoolingLayer, "pooling_param"); at namespace scope in the layer's source file.
#define REGISTER_LAYER(Type, Class, ...)                          \
  static const ::crema::internal::LayerRegistrar register_##Type( \
      #Type, []() -> std::unique_ptr<::crema::Layer> { return std::make_unique<Class>(); }, {__VA_ARGS__})

}  // namespace crema

#endif  // CREMA_LAYER_H_
