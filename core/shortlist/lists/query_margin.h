// How far below the score expected of its best keys a query looks for lists.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_QUERY_MARGIN_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_QUERY_MARGIN_H_

#include "core/base/minus_infinity.h"

namespace attendant {

// The margin hangs on the query's peak, the score of its best list: it is `far`
// up to far_peak, `near` from near_peak on, and changes linearly between them,
// since codes of 4 bits tell a peak only roughly.
struct QueryMargin {
  float near = 0;
  float far = 0;
  float far_peak = kMinusInfinityF;  // <= near_peak
  float near_peak = kMinusInfinityF;

  // Returns how far from keys a query of this peak is, in [0, 1]; 1 if the peak
  // is NaN. Peaks are halved because their difference may overflow.
  float FarnessOf(float peak) const {
    if (peak >= near_peak) return 0;
    if (!(peak > far_peak)) return 1;
    return (near_peak / 2 - peak / 2) / (near_peak / 2 - far_peak / 2);
  }
  // The difference of the margins may overflow as well.
  float At(float peak) const {
    const float farness = FarnessOf(peak);
    return (1 - farness) * near + farness * far;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_QUERY_MARGIN_H_
