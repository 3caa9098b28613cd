// Reads stored JSON without exceptions.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_JSON_MEMBERS_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_JSON_MEMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace attendant {

// Reads members of one JSON object. A missing member, or one of another type,
// makes ok() false and reads as empty; no exception is thrown.
class JsonMembers {
 public:
  explicit JsonMembers(const nlohmann::json& object) : object_(object) {
    ok_ = object.is_object();
  }

  bool ok() const { return ok_; }

  std::string String(const char* key) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr || !member->is_string()) return Fail("");
    return member->get<std::string>();
  }
  std::int64_t Integer(const char* key) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr || !member->is_number_integer()) return Fail(0);
    return member->get<std::int64_t>();
  }
  double Number(const char* key) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr || !member->is_number()) return Fail(0);
    return member->get<double>();
  }
  bool Boolean(const char* key) {
    const nlohmann::json* member = Find(key);
    if (member == nullptr || !member->is_boolean()) return Fail(false);
    return member->get<bool>();
  }
  const nlohmann::json& Array(const char* key) {
    static const nlohmann::json* const empty =
        new nlohmann::json(nlohmann::json::array());
    const nlohmann::json* member = Find(key);
    if (member == nullptr || !member->is_array()) {
      ok_ = false;
      return *empty;
    }
    return *member;
  }
  // Returns `kind`, or fails if it is unset.
  template <typename T>
  T Kind(std::optional<T> kind) {
    if (!kind.has_value()) ok_ = false;
    return kind.value_or(T{});
  }

 private:
  const nlohmann::json* Find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  template <typename T>
  T Fail(T value) {
    ok_ = false;
    return value;
  }

  const nlohmann::json& object_;
  bool ok_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_JSON_MEMBERS_H_
