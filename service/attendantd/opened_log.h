// Tells the log how the catalogs of a server came back.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_
#define ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_

#include "core/catalog/live/catalog_set.h"

namespace attendant {

// Of each catalog that it was opened, and from what; and of all that is damaged
// or was left over.
void LogOpened(const CatalogSet& catalogs);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_OPENED_LOG_H_
