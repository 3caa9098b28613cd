// Logs how the server's catalogs were recovered at startup.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_
#define ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_

#include "core/catalog/live/catalog_set.h"

namespace attendant {

// Logs, for each catalog, that it was opened and from what; then everything
// that is damaged or could not be removed.
void LogOpened(const CatalogSet& catalogs);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_
