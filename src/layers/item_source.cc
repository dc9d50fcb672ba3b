#include "layers/item_source.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "data/transform_check.h"

namespace crema {

namespace {

constexpr uint32_t kMaxThreads = 256, kMaxPrefetch = 4096;

// Names the random numbers of a layer: by its name, so that they stay the same when layers are added around it.
uint32_t DrawerOf(const std::string& name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ (hash >> 22)) & ((1u << 22) - 1);
}

void Copy(const float* from, const Tensor& top) {
  ParallelFor(top.count(), 1 << 17, [&](int64_t begin, int64_t end) {
    std::memcpy(top.f32() + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

// That one of `ranks` in this process may take.
int CoresOf(int ranks) {
  return static_cast<int>(
      std::clamp(std::thread::hardware_concurrency() / static_cast<unsigned>(ranks), 1u, kMaxThreads));
}

}  // namespace

void ItemSource::Setup(LayerSetup& setup) {
  setup.ExpectBottoms(0);
  setup.ExpectTops(1, 2);
  setup.MakeSource();
  phase_ = setup.phase();
  name_ = setup.param().name();
  type_ = setup.param().type();
  fields_ = ReadFields(setup.param());
  transform_ = setup.param().transform_param();
  source_ = setup.ResolvePath(fields_.source);
  CheckCommonFields(setup);
  CheckFields(setup);
  mean_file_ = setup.ResolvePath(transform_.mean_file());
  source_place_ = setup.where(Field("source"));

  const Shape data = DataShape(setup);
  const Shape label = setup.tops() > 1 && setup.shape_override(1) ? *setup.shape_override(1) : Shape{data[0]};
  if (label.count() != data[0]) {
    setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + label.ToString() + ": a batch has " +
                          std::to_string(data[0]) + " labels");
  }
  setup.SetTop(0, data);
  if (setup.tops() > 1) setup.SetTop(1, label);
  batch_ = static_cast<uint64_t>(data[0]);
}

void ItemSource::Forward(const LayerRun& run) {
  try {
    if (!prefetcher_) Start(run);
    if (!run.replay || !prefetcher_->current().data) prefetcher_->Next();
  } catch (const UserError& error) {
    throw UserError(source_place_, "layer \"" + name_ + "\" (" + type_ + "): " + error.diagnostics().front().message);
  }
  Copy(prefetcher_->current().data, run.tops[0]);
  if (run.tops.size() > 1) Copy(prefetcher_->current().labels, run.tops[1]);
}

void ItemSource::set_position(uint64_t records) {
  start_ = records;
  if (prefetcher_) prefetcher_->Seek(records);
}

void ItemSource::ReadBatches(const BatchSchedule& schedule) {
  start_ = schedule.first * batch_;
  schedule_ = {0, schedule.run, schedule.stride};
  if (prefetcher_) prefetcher_->Follow(schedule);
}

std::string ItemSource::DescribeItem(int64_t index) const {
  if (!prefetcher_ || !prefetcher_->current().data) return {};
  return prefetcher_->loader().Describe(prefetcher_->current().first + static_cast<uint64_t>(index));
}

DataSupply ItemSource::data_supply() const {
  if (!prefetcher_) return {};
  DataSupply supply;
  supply.waited_seconds = prefetcher_->waited_seconds();
  supply.threads = prefetcher_->threads();
  supply.prefetch = static_cast<int>(fields_.prefetch);
  const int cores = CoresOf(ranks_);
  if (supply.threads < cores) {
    supply.remedy = "more threads would help: raise " + (flag_decides_ ? "--data_threads" : Field("threads")) +
                    " (now " + std::to_string(supply.threads) + " for " + std::to_string(cores) + " cores)";
  } else {
    supply.remedy = std::string(prefetcher_->loader().decodes() ? "decoding" : "preparing it") + " takes " +
                    (cores == 1 ? "the only core" : "all " + std::to_string(cores) + " cores") +
                    ": store smaller images (convert_imageset --shorter_side=256)";
  }
  return supply;
}

void ItemSource::CheckCommonFields(LayerSetup& setup) const {
  if (fields_.source.empty()) {
    setup.Fail(fields_.block,
               "does not say where the data is; add " + fields_.block + " { source: \"" + example_of_source() + "\" }");
  }
  if (fields_.batch_size == 0) {
    setup.Fail(Field("batch_size"), "batch_size must be at least 1; add it to " + fields_.block);
  }
  if (fields_.prefetch == 0 || fields_.prefetch > kMaxPrefetch) {
    setup.Fail(Field("prefetch"), "prefetch is " + std::to_string(fields_.prefetch) + "; it must be from 1 to " +
                                      std::to_string(kMaxPrefetch) + " batches made ahead");
  }
  if (fields_.threads > kMaxThreads) {
    setup.Fail(Field("threads"), "threads is " + std::to_string(fields_.threads) + "; it must be from 0 to " +
                                     std::to_string(kMaxThreads) + ", where 0 leaves the number to crema");
  }
  if (const auto mistake = FindMistake(transform_)) setup.Fail("transform_param." + mistake->field, mistake->message);
}

Shape ItemSource::DataShape(LayerSetup& setup) {
  if (const Shape* shape = setup.shape_override(0)) {
    if (shape->axes() != 4 || shape->count() < 1) {
      setup.Fail("top", "the shape given for \"" + setup.param().top(0) + "\" is " + shape->ToString() +
                            "; expected N,C,H,W, each at least 1");
    }
    return *shape;
  }
  if (SourceExists()) return ShapeOfSource(setup);
  if (const auto extent = FixedExtentOf(transform_)) return ShapeWithoutSource(setup, *extent);
  const std::string& top = setup.param().top(0);
  setup.Fail(Field("source"), "cannot tell the shape of \"" + top + "\": " + what_source_is() + " \"" + fields_.source +
                                  "\" does not exist here, and no crop_size fixes it; make the " + what_source_is() +
                                  ", correct the path, or pass --shape=" + top + "=" +
                                  std::to_string(fields_.batch_size) + ",C,H,W");
}

Shape ItemSource::ShapeOfSource(LayerSetup& setup) {
  std::string field = "transform_param.mean_file";
  try {
    const Transform transform(transform_, phase_, mean_file_);
    field = Field("source");
    const ImageSize size = ItemSizeOf(setup, transform);
    return Shape{fields_.batch_size, size.channels, size.height, size.width};
  } catch (const UserError& error) {
    // What has a place of its own stands in another file.
    if (!error.diagnostics().front().where.file.empty()) throw;
    setup.Fail(field, error.diagnostics().front().message);
  }
}

Shape ItemSource::ShapeWithoutSource(LayerSetup& setup, const ImageExtent& extent) const {
  int64_t channels = 3;
  if (transform_.force_gray()) {
    channels = 1;
  } else if (transform_.mean_value_size() > 1) {
    channels = transform_.mean_value_size();
  } else if (!transform_.force_color()) {
    setup.Warn(Field("source"), std::string(what_source_is()) + " \"" + fields_.source +
                                    "\" does not exist here; 3 channels are assumed for \"" + setup.param().top(0) +
                                    "\" (--shape says otherwise)");
  }
  return Shape{fields_.batch_size, channels, extent.height, extent.width};
}

void ItemSource::Start(const LayerRun& run) {
  SampleOrder order;
  order.seed = run.context->seed;
  order.drawer = DrawerOf(name_);
  order.shuffle = fields_.shuffle;
  order.DrawSkip(fields_.rand_skip);
  auto loader = MakeLoader(Transform(transform_, phase_, mean_file_), order);
  const Shape& top = run.tops[0].shape();
  const Shape wanted{top[1], top[2], top[3]};
  if (loader->item_shape() != wanted) {
    throw UserError("the net was compiled for images of " + wanted.ToString() + ", but those of \"" + source_ +
                    "\" are " + loader->item_shape().ToString() +
                    " (channels x height x width); correct --shape or crop_size");
  }
  ranks_ = run.context->ranks;
  flag_decides_ = run.context->data_threads > 0;
  PrefetchOptions options;
  options.batch = top[0];
  options.ahead = static_cast<int>(fields_.prefetch);
  options.threads = run.context->data_threads > 0 ? run.context->data_threads
                    : fields_.threads > 0         ? static_cast<int>(fields_.threads)
                    : loader->decodes()           ? CoresOf(ranks_)
                                                  : 1;
  options.start = start_;
  // Ranks take turns.
  const auto rank = static_cast<uint64_t>(run.context->rank), ranks = static_cast<uint64_t>(run.context->ranks);
  options.schedule = schedule_.value_or(BatchSchedule{rank, 1, ranks});
  prefetcher_.emplace(std::move(loader), options);
}

}  // namespace crema
