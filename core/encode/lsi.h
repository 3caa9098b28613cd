// Latent semantic indexing of events (Deerwester et al. 1990): items are rows
// of the right singular vectors of a customers x items matrix, and histories
// are folded in as sums of these rows.
#ifndef ATTENDANT_CORE_ENCODE_LSI_H_
#define ATTENDANT_CORE_ENCODE_LSI_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/softmax/score.h"
#include "core/encode/svd.h"
#include "core/encode/temperature.h"

namespace attendant {

// Events of customers with items, in time order for each customer.
struct Event {
  std::int32_t customer = 0;
  std::int32_t item = 0;
  double rating = 1;  // explicit rating; 1 per event if implicit
};
struct EventLog {
  std::vector<std::string> customer_ids;
  std::vector<std::string> item_ids;
  std::vector<Event> events;
};

// The meaning of an entry of the matrix.
enum class RatingKind {
  kLogCount,  // log(1 + number of events)
  kCount,     // number of events
  kExplicit,  // mean of the ratings
};
// The keys.
enum class KeyScale {
  kNone,      // V_k
  kSingular,  // V_k diag(s)
  kInverse,   // V_k diag(1 / s)
};

// The scale of the logit, 1 or 1 / sqrt(dim), is not searched: it gives the
// same softmax at another temperature, and the temperature is searched.
struct LsiOptions {
  std::int64_t dim = 64;
  RatingKind rating_kind = RatingKind::kLogCount;
  KeyScale key_scale = KeyScale::kNone;
  // If set, the search for defaults is skipped: DOT, SUM and this temperature.
  std::optional<double> temperature;
  // Called at each step with what is being done.
  std::function<void(absl::string_view)> progress;
};

struct LsiModel {
  std::int64_t dim = 0;
  std::vector<double> keys;             // [items, dim], row-major
  std::vector<double> singular_values;  // [dim]
  AttentionDefaults defaults;
};

// Fits the model. Unless a temperature is given, the last new item of each
// customer with at least 5 items is held out (unless no other customer is left
// to learn the item from), a first model is fitted to the rest, and defaults
// are chosen by the held-out items' negative log likelihood, with bought items
// masked and history weights of 1 (at most 2,000 customers). Then the model is
// fitted to all events. InvalidArgument if there are no events, an event is not
// finite or out of range, dim < 1, or nothing could be held out and no
// temperature is given.
absl::StatusOr<LsiModel> FitLsi(const EventLog& log, const LsiOptions& options);

// Returns the matrix that FitLsi decomposes.
SparseMatrix EventMatrix(const EventLog& log, RatingKind kind);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_LSI_H_
