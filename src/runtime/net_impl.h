// What is inside a Net; shared by the files that implement it.
#ifndef CREMA_RUNTIME_NET_IMPL_H_
#define CREMA_RUNTIME_NET_IMPL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "crema/net.h"
#include "graph/program.h"
#include "runtime/executor.h"
#include "runtime/parameters.h"

namespace crema {

struct Net::Impl {
  Impl(const NetFile& file, const NetOptions& given);

  // The parameter that stands for `param` of another net; null without one.
  // What stands for each parameter of another net; null where nothing does.
  std::function<const Parameter*(int param)> LentTo(const Graph& other) const;
  // What this net takes from that of share_with or train_with.
  std::function<const Parameter*(int param)> Borrowed() const;
  // Of the parameters, also those of the net that owns some of them; and that of the next forward pass.
  uint64_t Version() const;
  uint64_t NextVersion();
  // Someone writes parameters, and with them those of the net that owns some of them.
  void ParametersChanged();
  // The value a blob's name stands for at the end of the net; -1 without one.
  int LastValue(const std::string& blob) const;

  NetOptions options;
  std::unique_ptr<CompiledNet> compiled;
  ParameterStore parameters;
  Executor executor;
  uint64_t pass = 0;
  std::atomic<uint64_t> version = 1;  // 0: of no parameters
  std::optional<uint64_t> last_pass;  // none before the first
  bool gradients_cleared = true;
};

}  // namespace crema

#endif  // CREMA_RUNTIME_NET_IMPL_H_
