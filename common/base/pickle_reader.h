// Reads pickles of plain data, as protocols 2 to 5 write them: the opcodes, their operands, the
// stack and the marks. A builder makes the values, and says which kinds there are.
//
// The bytes need not be trusted. No operand goes beyond the end, no opcode takes values that are
// below the last mark or not there, and the stack grows with what has been read, not with what was
// announced. Everything is in the header, so that the builder's functions are inlined: the results
// of most small tasks are read here (python/binding/mini_pickle.cc).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"

namespace rt {

// The names are those of CPython's pickletools.
namespace pickle {
inline constexpr uint8_t kProto = 0x80, kFrame = 0x95, kStop = '.', kNone = 'N', kNewTrue = 0x88,
                         kNewFalse = 0x89, kBinInt = 'J', kBinInt1 = 'K', kBinInt2 = 'M',
                         kLong1 = 0x8a, kLong4 = 0x8b, kBinFloat = 'G', kShortBinUnicode = 0x8c,
                         kBinUnicode = 'X', kBinUnicode8 = 0x8d, kShortBinBytes = 'C',
                         kBinBytes = 'B', kBinBytes8 = 0x8e, kByteArray8 = 0x96, kEmptyTuple = ')',
                         kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87, kTuple = 't', kMark = '(',
                         kEmptyList = ']', kAppend = 'a', kAppends = 'e', kEmptyDict = '}',
                         kSetItem = 's', kSetItems = 'u', kEmptySet = 0x8f, kMemoize = 0x94,
                         kBinPut = 'q', kLongBinPut = 'r', kBinGet = 'h', kLongBinGet = 'j';
}  // namespace pickle

// A stack in place, for small pickles.
template <class T, size_t kMost>
class SmallPickleStack {
 public:
  size_t size() const { return size_; }
  T* at(size_t index) { return elements_ + index; }
  T pop() { return elements_[--size_]; }
  void cut_to(size_t size) { size_ = size; }
  // False when it is full.
  bool push(T element) {
    if (size_ == kMost) return false;
    elements_[size_++] = element;
    return true;
  }

 private:
  T elements_[kMost];
  size_t size_ = 0;
};

// A stack as large as the pickle demands.
template <class T>
class PickleStack {
 public:
  size_t size() const { return elements_.size(); }
  T* at(size_t index) { return elements_.data() + index; }
  T pop() {
    T last = elements_.back();
    elements_.pop_back();
    return last;
  }
  void cut_to(size_t size) { elements_.resize(size); }
  bool push(T element) {
    elements_.push_back(element);
    return true;
  }

 private:
  std::vector<T> elements_;
};

// A builder has:
//
//   using Value = T*;                          // null says that it refuses
//   using Stack = PickleStack<Value>;          // or a small one
//   using Marks = PickleStack<size_t>;
//   Value none();
//   Value boolean(bool);
//   Value integer(int64_t);
//   Value long_integer(std::string_view);      // more than 8 bytes, little-endian, with a sign
//   Value real(double);
//   Value text(std::string_view);              // UTF-8, perhaps with lone surrogates
//   Value bytes(std::string_view);
//   Value byte_array(std::string_view);
//   Value tuple(Value* items, size_t count);   // takes the items over, unless it refuses
//   Value list();
//   Value dict();
//   bool append(Value list, Value* items, size_t count);    // false: refused, or not a list
//   bool set_items(Value dict, Value* items, size_t count);  // keys and values in turn
//   bool memoize(Value);                       // under the next number
//   bool put(uint32_t number, Value);
//   Value get(uint32_t number);
//   void unknown(uint8_t opcode);              // an opcode of no plain data
//   void drop(Value);                          // it is not needed any more
//
// It may also refuse by an exception.
template <class Builder>
class PickleReader {
 public:
  using Value = typename Builder::Value;

  PickleReader(Bytes pickle, Builder& builder)
      : at_(pickle.data()), end_(pickle.data() + pickle.size()), builder_(builder) {}
  PickleReader(const PickleReader&) = delete;
  ~PickleReader() { drop_from(0); }

  // The value of the pickle, which then is the caller's. Null if the pickle is damaged or the
  // builder has refused a part of it. May be called once.
  Value read() {
    if (left() < 3 || *at_ != pickle::kProto) return nullptr;
    at_ += 2;
    while (at_ < end_) {
      const uint8_t opcode = *at_++;
      if (opcode == pickle::kStop)
        return values_.size() == 1 && marks_.size() == 0 ? values_.pop() : nullptr;
      if (!step(opcode)) return nullptr;
    }
    return nullptr;
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  template <class T>
  bool number(T* value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(value, at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  // Reads a length of type L and as many bytes.
  template <class L>
  bool sized(std::string_view* bytes) {
    L length;
    if (!number(&length) || left() < length) return false;
    *bytes = {reinterpret_cast<const char*>(at_), static_cast<size_t>(length)};
    at_ += length;
    return true;
  }

  // The values below it belong to an opcode that comes later.
  size_t floor() { return marks_.size() == 0 ? 0 : *marks_.at(marks_.size() - 1); }
  bool has(size_t count) { return values_.size() - floor() >= count; }
  void drop_from(size_t from) {
    while (values_.size() > from) builder_.drop(values_.pop());
  }
  bool push(Value value) {
    if (value == nullptr) return false;
    if (values_.push(value)) return true;
    builder_.drop(value);
    return false;
  }
  // Removes the last mark; `from` is where it was.
  bool pop_mark(size_t* from) {
    if (marks_.size() == 0) return false;
    *from = marks_.pop();
    return true;
  }

  template <class T>
  bool integer() {
    T value;
    return number(&value) && push(builder_.integer(value));
  }
  template <class L>
  bool long_integer() {
    std::string_view bytes;
    if (!sized<L>(&bytes)) return false;
    if (bytes.size() > sizeof(int64_t)) return push(builder_.long_integer(bytes));
    int64_t value = !bytes.empty() && (bytes.back() & 0x80) ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return push(builder_.integer(value));
  }
  bool real() {
    uint64_t bits;
    return number(&bits) && push(builder_.real(std::bit_cast<double>(__builtin_bswap64(bits))));
  }
  template <class L>
  bool text() {
    std::string_view bytes;
    return sized<L>(&bytes) && push(builder_.text(bytes));
  }
  template <class L>
  bool bytes() {
    std::string_view bytes;
    return sized<L>(&bytes) && push(builder_.bytes(bytes));
  }
  bool byte_array() {
    std::string_view bytes;
    return sized<uint64_t>(&bytes) && push(builder_.byte_array(bytes));
  }
  bool tuple_from(size_t from) {
    Value tuple = builder_.tuple(values_.at(from), values_.size() - from);
    if (tuple == nullptr) return false;
    values_.cut_to(from);
    return push(tuple);
  }
  bool tuple_of(size_t count) { return has(count) && tuple_from(values_.size() - count); }
  bool tuple_from_mark() {
    size_t from;
    return pop_mark(&from) && tuple_from(from);
  }
  bool append_from(size_t from) {
    if (from == floor()) return false;
    if (!builder_.append(*values_.at(from - 1), values_.at(from), values_.size() - from))
      return false;
    drop_from(from);
    return true;
  }
  bool append_from_mark() {
    size_t from;
    return pop_mark(&from) && append_from(from);
  }
  bool set_items_from(size_t from) {
    const size_t count = values_.size() - from;
    if (from == floor() || count % 2 != 0) return false;
    if (!builder_.set_items(*values_.at(from - 1), values_.at(from), count)) return false;
    drop_from(from);
    return true;
  }
  bool set_items_from_mark() {
    size_t from;
    return pop_mark(&from) && set_items_from(from);
  }
  bool memoize() { return has(1) && builder_.memoize(*values_.at(values_.size() - 1)); }
  template <class N>
  bool put() {
    N index;
    return number(&index) && has(1) && builder_.put(index, *values_.at(values_.size() - 1));
  }
  template <class N>
  bool get() {
    N index;
    return number(&index) && push(builder_.get(index));
  }
  bool skip(size_t count) {
    if (left() < count) return false;
    at_ += count;
    return true;
  }

  bool step(uint8_t opcode) {
    switch (opcode) {
      case pickle::kNone: return push(builder_.none());
      case pickle::kNewTrue: return push(builder_.boolean(true));
      case pickle::kNewFalse: return push(builder_.boolean(false));
      case pickle::kBinInt1: return integer<uint8_t>();
      case pickle::kBinInt2: return integer<uint16_t>();
      case pickle::kBinInt: return integer<int32_t>();
      case pickle::kLong1: return long_integer<uint8_t>();
      case pickle::kLong4: return long_integer<uint32_t>();
      case pickle::kBinFloat: return real();
      case pickle::kShortBinUnicode: return text<uint8_t>();
      case pickle::kBinUnicode: return text<uint32_t>();
      case pickle::kBinUnicode8: return text<uint64_t>();
      case pickle::kShortBinBytes: return bytes<uint8_t>();
      case pickle::kBinBytes: return bytes<uint32_t>();
      case pickle::kBinBytes8: return bytes<uint64_t>();
      case pickle::kByteArray8: return byte_array();
      case pickle::kEmptyTuple: return push(builder_.tuple(nullptr, 0));
      case pickle::kTuple1: return tuple_of(1);
      case pickle::kTuple2: return tuple_of(2);
      case pickle::kTuple3: return tuple_of(3);
      case pickle::kTuple: return tuple_from_mark();
      case pickle::kMark: return marks_.push(values_.size());
      case pickle::kEmptyList: return push(builder_.list());
      case pickle::kAppend: return has(2) && append_from(values_.size() - 1);
      case pickle::kAppends: return append_from_mark();
      case pickle::kEmptyDict: return push(builder_.dict());
      case pickle::kSetItem: return has(3) && set_items_from(values_.size() - 2);
      case pickle::kSetItems: return set_items_from_mark();
      case pickle::kMemoize: return memoize();
      case pickle::kBinPut: return put<uint8_t>();
      case pickle::kLongBinPut: return put<uint32_t>();
      case pickle::kBinGet: return get<uint8_t>();
      case pickle::kLongBinGet: return get<uint32_t>();
      case pickle::kFrame: return skip(sizeof(uint64_t));
      default: return builder_.unknown(opcode), false;
    }
  }

  const uint8_t* at_;
  const uint8_t* const end_;
  Builder& builder_;
  typename Builder::Stack values_;
  typename Builder::Marks marks_;
};

}  // namespace rt
