// The FAISS release that this program is built with.
#ifndef ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_
#define ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_

#include <string>

namespace attendant {

// Returns the version of FAISS that builds indexes, such as "1.7.3".
std::string FaissVersion();

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_BUILDS_FAISS_BUILD_H_
