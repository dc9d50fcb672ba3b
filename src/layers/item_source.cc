#include "layers/item_source.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/compute_threads.h"
#include "base/input_file.h"
#include "base/parallel.h"
#include "layers/field_range.h"

namespace crema {

namespace {

constexpr uint32_t kMaxThreads = 256, kMaxPrefetch = 4096;

// Names the random numbers of a layer: by its name, so that they stay the same when layers are added around it.
uint32_t DrawerOf(const std::string& name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ (hash >> 22)) & ((1u << 22) - 1);
}

// That one of `ranks` in this process may take.
int CoresOf(int ranks) { return std::clamp(UsableCores() / ranks, 1, int{kMaxThreads}); }

}  // namespace

void CopyValues(const float* from, int64_t count, float* to) {
  ParallelFor(count, 1 << 17, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

void ItemSource::Setup(LayerSetup& setup) {
  setup.ExpectBottoms(0);
  setup.MakeSource();
  phase_ = setup.phase();
  name_ = setup.param().name();
  type_ = setup.param().type();
  fields_ = ReadFields(setup.param());
  source_ = setup.ResolvePath(fields_.source);
  CheckCommonFields(setup);
  if (setup.needs_data() && !SourceExists()) {
    setup.Fail(Field("source"), "\"" + fields_.source + "\" does not exist; correct the path, or make it: the " +
                                    example_of_source() + RelativePathNote(fields_.source));
  }
  CheckFields(setup);
  source_place_ = setup.where(Field("source"));
  const std::vector<Shape> shapes = TopShapes(setup);
  for (size_t i = 0; i < shapes.size(); ++i) setup.SetTop(static_cast<int>(i), shapes[i]);
  batch_ = static_cast<uint64_t>(shapes[0][0]);
}

bool ItemSource::SourceExists() const {
  std::error_code ignored;
  return std::filesystem::exists(source_, ignored);
}

void ItemSource::NamingLayer(const std::function<void()>& action) const {
  try {
    action();
  } catch (const UserError& error) {
    const Diagnostic& first = error.diagnostics().front();
    const std::string file = first.where.ToString();
    throw UserError(source_place_,
                    "layer \"" + name_ + "\" (" + type_ + "): " + file + (file.empty() ? "" : " ") + first.message);
  }
}

void ItemSource::Forward(const LayerRun& run) {
  NamingLayer([&] {
    if (!prefetcher_) Start(run);
    if (!run.replay || !prefetcher_->current().data) prefetcher_->Next();
  });
  Deliver(prefetcher_->current(), run.tops);
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

void ItemSource::FindDataExtent() {
  if (epoch_ > 0 || !SourceExists()) return;
  NamingLayer([&] { epoch_ = MakeLoader(OrderOf(0))->records(); });
}

DataSupply ItemSource::data_supply() const {
  if (!prefetcher_) return {};
  DataSupply supply;
  supply.waited_seconds = prefetcher_->waited_seconds();
  supply.threads = prefetcher_->threads();
  supply.prefetch = static_cast<int>(fields_.prefetch);
  const int cores = CoresOf(ranks_);
  if (fields_.threads_help && supply.threads < cores) {
    supply.remedy = "more threads would help: raise " + (flag_decides_ ? "--data_threads" : Field("threads")) +
                    " (now " + std::to_string(supply.threads) + " for " + std::to_string(cores) + " cores)";
  } else {
    supply.remedy = Remedy(cores);
  }
  return supply;
}

void ItemSource::CheckCommonFields(LayerSetup& setup) const {
  // A template of a net, whose reader or whose user fills in the rest.
  const bool shape_is_enough = !setup.needs_data() && setup.shape_override(0);
  if (fields_.source.empty() && !shape_is_enough) {
    setup.Fail(fields_.block,
               "does not say where the data is; add " + fields_.block + " { source: \"" + example_of_source() + "\" }");
  }
  if (fields_.batch_size == 0 && !shape_is_enough) {
    setup.Fail(Field("batch_size"), "batch_size must be at least 1; add it to " + fields_.block);
  }
  ReadInRange(setup, Field("prefetch"), fields_.prefetch, {1, kMaxPrefetch}, "it is how many batches are made ahead");
  ReadInRange(setup, Field("threads"), fields_.threads, {0, kMaxThreads}, "0 leaves the number to crema");
  if (fields_.balance_classes && phase_ == TEST) {
    setup.Warn(Field("balance_classes"),
               "tests draw every class equally often, too, so that what they tell is not of the data as it is; write "
               "balance_classes into the layer of TRAIN alone");
  }
}

SampleOrder ItemSource::OrderOf(uint64_t seed) const {
  SampleOrder order;
  order.seed = seed;
  order.drawer = DrawerOf(name_);
  order.shuffle = fields_.shuffle;
  order.buffer = fields_.shuffle_buffer;
  order.balance_classes = fields_.balance_classes;
  order.DrawSkip(fields_.rand_skip);
  return order;
}

void ItemSource::Start(const LayerRun& run) {
  auto loader = MakeLoader(OrderOf(run.context->seed));
  epoch_ = loader->records();
  ranks_ = run.context->ranks;
  flag_decides_ = run.context->data_threads > 0;
  PrefetchOptions options;
  options.batch = static_cast<int64_t>(batch_);
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
