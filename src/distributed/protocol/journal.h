// Where commits are made durable.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_JOURNAL_H_
#define CREMA_DISTRIBUTED_PROTOCOL_JOURNAL_H_

#include "distributed/protocol/messages.pb.h"

namespace crema {

class Journal {
 public:
  virtual ~Journal() = default;
  // Returns when the record is on the disk. Throws EnvironmentError, and has then written nothing that will be read.
  virtual void Write(const JournalRecord& record) = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_JOURNAL_H_
