// oneDNN's blocked layouts as offsets: the axes are independent of each other.
#include <algorithm>
#include <numeric>

#include "ops/onednn.h"

namespace crema::onednn {

namespace {

struct Blocking {
  Dims dims, strides, block_sizes, block_axes;
};

#if DNNL_VERSION_MAJOR >= 3

bool ReadBlocking(const Desc& desc, Blocking* blocking) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked || desc.get_submemory_offset() != 0) return false;
  *blocking = {desc.get_dims(), desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()};
  return true;
}

#else

bool ReadBlocking(const Desc& desc, Blocking* blocking) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.offset0 != 0) return false;
  const dnnl_blocking_desc_t& from = data.format_desc.blocking;
  const auto list = [](const dnnl_dim_t* first, int n) { return Dims(first, first + n); };
  *blocking = {list(data.dims, data.ndims), list(from.strides, data.ndims), list(from.inner_blks, from.inner_nblks),
               list(from.inner_idxs, from.inner_nblks)};
  return true;
}

#endif

// Of every index along `axis`.
std::vector<int64_t> Offsets(const Blocking& blocking, int axis) {
  std::vector<int64_t> offsets(blocking.dims[axis]);
  for (int64_t i = 0; i < blocking.dims[axis]; ++i) {
    int64_t left = i, stride = 1;
    for (size_t b = blocking.block_sizes.size(); b-- > 0;) {
      const int64_t size = blocking.block_sizes[b];
      if (blocking.block_axes[b] == axis) {
        offsets[i] += left % size * stride;
        left /= size;
      }
      stride *= size;
    }
    offsets[i] += left * blocking.strides[axis];
  }
  return offsets;
}

std::string NameOf(const Blocking& blocking) {
  std::vector<int> order(blocking.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return blocking.strides[a] > blocking.strides[b]; });
  std::string name;
  for (const int axis : order) {
    const bool blocked =
        std::find(blocking.block_axes.begin(), blocking.block_axes.end(), axis) != blocking.block_axes.end();
    name += static_cast<char>((blocked ? 'A' : 'a') + axis);
  }
  for (size_t b = 0; b < blocking.block_sizes.size(); ++b) {
    name += std::to_string(blocking.block_sizes[b]) + static_cast<char>('a' + blocking.block_axes[b]);
  }
  return name;
}

}  // namespace

std::shared_ptr<const ParameterLayout> LayoutOf(const Desc& desc) {
  Blocking blocking;
  if (!ReadBlocking(desc, &blocking)) return nullptr;
  std::vector<int64_t> columns = {0};
  for (int axis = 1; axis < static_cast<int>(blocking.dims.size()); ++axis) {
    const std::vector<int64_t> offsets = Offsets(blocking, axis);
    std::vector<int64_t> longer;
    for (const int64_t outer : columns) {
      for (const int64_t inner : offsets) longer.push_back(outer + inner);
    }
    columns = std::move(longer);
  }
  return std::make_shared<ParameterLayout>(NameOf(blocking), static_cast<int64_t>(desc.get_size() / sizeof(float)),
                                           Offsets(blocking, 0), std::move(columns));
}

}  // namespace crema::onednn
