// Which FAISS this is.
#ifndef ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_
#define ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_

#include <string>

namespace attendant {

// The version that indexes are built with, as "1.7.3".
std::string FaissVersion();

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_
