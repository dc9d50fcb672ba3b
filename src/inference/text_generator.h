// Text that a language model writes: unit by unit, each drawn from the probabilities that the net gives what comes
// next.
#ifndef CREMA_INFERENCE_TEXT_GENERATOR_H_
#define CREMA_INFERENCE_TEXT_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crema/net.h"

namespace crema {

struct UnitDraw {
  double temperature = 1;  // probabilities become p^(1 / temperature), in their shares; 0: the most probable unit
  int64_t top = 0;         // so many of the most probable units, of equal ones the first; 0: all
};

// The unit that a share of all, in [0, 1), falls on. One of probability 0 is never drawn. Throws UserError where the
// numbers are no probabilities.
int64_t DrawUnit(const UnitDraw& draw, std::span<const float> probabilities, double share);

// Reads units, by their numbers, and tells what may come next. One thread.
class TextGenerator {
 public:
  // Compiles the net, as TEST, for one text of a vocabulary of so many units. It has an Input for their numbers, and
  // one output, made by a Softmax layer, that holds a probability for each unit at each place. With LSTM or RNN layers,
  // which keep their state, a second Input is the bottom that tells them whether the text goes on, and the net sees one
  // unit at a time, whatever extents its file has (steps x texts). Other nets (texts x places) see as many of the
  // latest units as they have places, from the first place on, and must not look ahead. Throws UserError where the net
  // is no such one.
  TextGenerator(NetFile file, NetOptions options, int64_t units);

  Net& net() { return *net_; }
  // The text goes on with this unit.
  void Read(int64_t unit);
  // The probability of each unit to be the next. At least one was read. Valid until the next call.
  std::span<const float> Next();

 private:
  void FindInputs(const std::vector<std::string>& in_file, const std::string& continues);
  void FindOutput(const NetParameter& file, const NetState& state);

  int64_t units_;
  bool recurrent_ = false;
  std::unique_ptr<Net> net_;
  Tensor input_, continues_;  // the second one of recurrent nets alone
  std::string output_;
  bool began_ = false;
  std::vector<int64_t> latest_;  // what other nets see, and whether they have seen it
  bool is_seen_ = false;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_TEXT_GENERATOR_H_
