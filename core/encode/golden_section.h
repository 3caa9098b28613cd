// Golden-section search (Kiefer 1953) in which the caller supplies the function
// values, so that several searches can share one pass over the data.
#ifndef ATTENDANT_CORE_ENCODE_GOLDEN_SECTION_H_
#define ATTENDANT_CORE_ENCODE_GOLDEN_SECTION_H_

#include <numbers>

namespace attendant {

// Searches for the minimum of a function that first falls and then rises within
// [low, high]; its value at `best_at` is already known to be `best`. Order of
// calls: Next, Tell, Next, Tell, and so on until Width is small.
class GoldenSection {
 public:
  GoldenSection(double low, double high, double best_at, double best)
      : low_(low),
        high_(high),
        inner_(low + kShare * (high - low)),
        outer_(high - kShare * (high - low)),
        best_at_(best_at),
        best_(best) {}

  // Returns where to evaluate the function next.
  double Next() const { return inner_known_ ? outer_ : inner_; }

  // Supplies the function's value at Next().
  void Tell(double value) {
    if (value < best_) {
      best_ = value;
      best_at_ = Next();
    }
    (inner_known_ ? at_outer_ : at_inner_) = value;
    (inner_known_ ? outer_known_ : inner_known_) = true;
    if (inner_known_ && outer_known_) Narrow();
  }

  double Width() const { return high_ - low_; }
  // The least value seen, and its position.
  double best() const { return best_; }
  double best_at() const { return best_at_; }

 private:
  static constexpr double kShare = 2 - std::numbers::phi;  // .382

  // Drops the end of the interval next to the greater of the two inner points.
  void Narrow() {
    if (at_inner_ < at_outer_) {
      high_ = outer_;
      outer_ = inner_;
      at_outer_ = at_inner_;
      inner_ = low_ + kShare * (high_ - low_);
      inner_known_ = false;
    } else {
      low_ = inner_;
      inner_ = outer_;
      at_inner_ = at_outer_;
      outer_ = high_ - kShare * (high_ - low_);
      outer_known_ = false;
    }
  }

  double low_;
  double high_;
  double inner_;
  double outer_;
  double at_inner_ = 0;
  double at_outer_ = 0;
  bool inner_known_ = false;
  bool outer_known_ = false;
  double best_at_;
  double best_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_GOLDEN_SECTION_H_
