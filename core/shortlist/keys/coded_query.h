// Queries as codes of 8 or 16 bits a component, for keys as codes.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/kernels/codes.h"
#include "core/shortlist/keys/key_codes.h"
#include "core/shortlist/keys/rotation.h"

namespace attendant {

// How many bits a component of a query has. With 8 many queries take little
// more than half the time, and logits err by the query's rounding too, alike
// for keys that are alike.
enum class QueryBits { k8, k16 };

// What a query is to all KeyCodes of a rotation. The planes are somebody
// else's.
struct CutQuery {
  const std::int8_t* high = nullptr;
  const std::int8_t* low = nullptr;  // null: 8 bits
  std::int32_t high_sum = 0;         // over components
  std::int32_t low_sum = 0;
  float scale = 0;        // what a code of 1 stands for
  double norm = 0;        // of the query
  double coded_norm = 0;  // of what the codes stand for
  double error_norm = 0;  // of the rotated query, less that
  // The same of the high plane alone.
  double high_error_norm = 0;
};

// Bytes of a plane of such codes.
std::int64_t QueryPlaneBytes(std::int64_t dim);

// Rotates `query`, which it overwrites, of the norm given, and cuts it into
// codes: planes of QueryPlaneBytes each, the low one null for 8 bits. False if
// it is too large or too small for floats to do so.
bool CutIntoCodes(const Rotation& rotation, std::span<float> query, double norm,
                  std::int8_t* high, std::int8_t* low, CutQuery* code);

// A query as the code kernels take it. Reused from query to query, it does not
// allocate. Not thread-safe.
class CodedQuery {
 public:
  CodedQuery() = default;
  // It points into itself, as what moves does not mind.
  CodedQuery(CodedQuery&&) = default;
  CodedQuery& operator=(CodedQuery&&) = default;

  // Codes `query` [dim], whose logits are dot products x logit_factor. False if
  // its logits may be beyond a float, or too small for one. Queries of one call
  // of KeyCodes::Logits have the same bits.
  bool Encode(const KeyCodes& codes, std::span<const float> query,
              double logit_factor, QueryBits bits = QueryBits::k16);
  // A query that was cut before by the same rotation, whose planes must live as
  // long; false as above.
  bool Take(const CutQuery& code, const KeyCodes& codes, double logit_factor);
  // The same query, which was encoded and not taken, for other codes of the
  // same rotation; false as above.
  bool EncodeAs(const CodedQuery& other, const KeyCodes& codes);

  // Of a query that was encoded with 16 bits, reads so many from now on, and
  // errs accordingly.
  void Read(QueryBits bits);

  // Those that it was encoded for.
  const KeyCodes& codes() const { return *codes_; }
  // Valid until the next Encode or Take, and while the object lives.
  const CodeQuery& view() const { return view_; }
  // The same with another logit factor, and with its first 8 bits alone.
  CodeQuery WithFactor(double logit_factor,
                       QueryBits bits = QueryBits::k16) const {
    CodeQuery query = view_;
    query.unit = static_cast<float>(code_.scale * logit_factor);
    query.low = bits == QueryBits::k8 ? nullptr : code_.low;
    return query;
  }
  double norm() const { return code_.norm; }  // of the query

  // The logit of a key of scale s is off by at most
  // LogitErrorPerScale(bits) x s + logit_error().
  double LogitErrorPerScale(CodeBits bits) const;
  double logit_error() const { return logit_error_; }
  // What reading so many bits of the query adds to a logit: as a random number,
  // it has at most this deviation. That of keys which are alike is alike.
  double LogitDeviation(QueryBits bits) const;
  double LogitDeviation() const {
    return LogitDeviation(view_.low == nullptr ? QueryBits::k8
                                               : QueryBits::k16);
  }
  // As a random number, it has this variance for a key of scale 1; of scale s
  // s^2 of it.
  double LogitVariancePerSquareScale(CodeBits bits) const;

 private:
  double ErrorNorm(QueryBits bits) const {
    return bits == QueryBits::k8 ? code_.high_error_norm : code_.error_norm;
  }
  void SetLogitError(double error_norm);

  const KeyCodes* codes_ = nullptr;
  CutQuery code_;
  std::vector<float> rotated_;
  std::vector<std::int8_t> planes_;  // high, then low
  CodeQuery view_;
  double logit_factor_ = 1;
  double logit_norm_ = 0;  // of the coded query, x logit_factor
  double logit_error_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_CODED_QUERY_H_
