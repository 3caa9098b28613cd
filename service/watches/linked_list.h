// A linked list that does not allocate.
#ifndef ATTENDANT_SERVICE_WATCHES_LINKED_LIST_H_
#define ATTENDANT_SERVICE_WATCHES_LINKED_LIST_H_

namespace attendant {

// Intrusive: members hold their own links, which only the list accesses, under
// the same synchronisation as the list. The list does not own its members. Each
// member is in at most one list. Not thread-safe.
//
//   class Call : public LinkedList<Call>::Links { ... };
template <typename T>
class LinkedList {
 public:
  class Links {
   private:
    friend class LinkedList;
    T* before_ = nullptr;
    T* after_ = nullptr;
  };

  // Null if there is none.
  T* first() const { return first_; }
  T* After(const T& member) const { return LinksOf(member).after_; }

  void AddFirst(T& member) {
    LinksOf(member).after_ = first_;
    if (first_ != nullptr) LinksOf(*first_).before_ = &member;
    first_ = &member;
  }

  void Remove(T& member) {
    Links& links = LinksOf(member);
    if (links.after_ != nullptr) LinksOf(*links.after_).before_ = links.before_;
    if (links.before_ != nullptr) {
      LinksOf(*links.before_).after_ = links.after_;
    } else {
      first_ = links.after_;
    }
    links = {};
  }

 private:
  static Links& LinksOf(T& member) { return member; }
  static const Links& LinksOf(const T& member) { return member; }

  T* first_ = nullptr;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_LINKED_LIST_H_
