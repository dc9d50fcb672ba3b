// Where sockets of one machine are that no other user may reach.
#ifndef CREMA_DISTRIBUTED_SOCKETS_PRIVATE_FOLDER_H_
#define CREMA_DISTRIBUTED_SOCKETS_PRIVATE_FOLDER_H_

#include <string>

namespace crema {

// A folder for a socket that only this user can reach; removed at the end. At both ends those are removed, too, that
// processes of this user left which were killed.
class PrivateFolder {
 public:
  // Throws EnvironmentError.
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }
  // Where to listen.
  std::string socket() const;

 private:
  std::string path_;
  int lock_ = -1;  // on the folder, while its process lives
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_PRIVATE_FOLDER_H_
