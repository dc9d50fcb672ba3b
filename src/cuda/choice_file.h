// Choices between kernels that were measured once for a machine, kept on the disk between runs.
#ifndef CREMA_CUDA_CHOICE_FILE_H_
#define CREMA_CUDA_CHOICE_FILE_H_

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
  void Remember(const std::string& key, int choice);

 private:
  void Read();

  std::string path_;
  std::map<std::string, int> choices_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CHOICE_FILE_H_
