// Choices between kernels that were measured once for a machine, kept on the disk between runs.
#ifndef CREMA_CUDA_DEVICE_CHOICE_FILE_H_
#define CREMA_CUDA_DEVICE_CHOICE_FILE_H_

#include <map>
#include <optional>
#include <string>

namespace crema::cuda {

// Lines of a number and a key. What cannot be read is taken for absent, what cannot be written is left: choices are
// then made again. Several processes may use one file.
class ChoiceFile {
 public:
  // In $XDG_CACHE_HOME/crema, or ~/.cache/crema; kept in memory only where neither is known.
  explicit ChoiceFile(const std::string& name);
  std::optional<int> Find(const std::string& key) const;
  // Returns the choice that stands from now on: where another process was first, its choice, so that all compute the
  // same; unless that is `unusable`, which is replaced.
  int Remember(const std::string& key, int choice, std::optional<int> unusable = {});

 private:
  // What others wrote; choices that this process knows stay as they are.
  void Read();
  void Write() const;

  std::string path_;
  std::map<std::string, int> choices_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_DEVICE_CHOICE_FILE_H_
