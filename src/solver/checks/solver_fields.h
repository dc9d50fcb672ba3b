// What is wrong with fields of a solver file, collected: for the parts of CheckSolver.
#ifndef CREMA_SOLVER_CHECKS_SOLVER_FIELDS_H_
#define CREMA_SOLVER_CHECKS_SOLVER_FIELDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "crema/solver.h"

namespace crema {

class SolverFields {
 public:
  // `file` must outlive this.
  explicit SolverFields(const SolverFile& file) : file_(file) {}

  bool Has(const std::string& field) const;
  void Error(std::string_view field, std::string message);
  void Warn(std::string_view field, std::string message);

  // An error unless the number is in [low, high), and so finite where `high` is; `hint` ends the message.
  void Range(const std::string& field, double value, double low, double high, const std::string& hint = {});
  void NotNegative(const std::string& field, double value, const std::string& hint = {});
  // An error unless it is one of `words`.
  void Word(const std::string& field, const std::string& word, const std::vector<std::string>& words);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_.list(); }

 private:
  Location At(std::string_view field) const { return file_.source ? file_.source->Field(field) : Location{}; }

  const SolverFile& file_;
  Diagnostics diagnostics_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_SOLVER_FIELDS_H_
