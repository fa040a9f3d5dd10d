#include "plain_pickle.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <msgpack.hpp>
#include <vector>

#include "common/base/pickle_reader.h"
#include "ray/api/exceptions.h"
#include "ray/api/serializer.h"

namespace ray::internal {
namespace {

constexpr int kMaxDepth = 200;
// Limit of the result: a pickle may refer to one large part many times.
constexpr size_t kMaxBytes = size_t{1} << 30;

[[noreturn]] void refuse(const std::string& what) {
  throw RayException("C++ cannot read this value, which Python stored: it holds " + what +
                     ". C++ reads None, bool, int (64 bits), float, str, bytes, bytearray, list, "
                     "tuple and dict, up to 1 GiB and 200 levels.");
}
[[noreturn]] void malformed() {
  throw RayException("The value was stored by Python and is damaged.");
}

struct Node {
  enum class Kind { kNone, kBool, kInt, kUnsigned, kFloat, kText, kBytes, kList, kDict };
  Kind kind = Kind::kNone;
  int64_t number = 0;  // The value; for kUnsigned its bits.
  double real = 0;
  std::string_view bytes;
  std::vector<const Node*> items;  // For dicts: key, value, key, value, and so on.
};

// The builder of an rt::PickleReader. It keeps all nodes, because a pickle may refer to each of
// them again.
class NodeBuilder {
 public:
  using Value = Node*;
  using Stack = rt::PickleStack<Node*>;
  using Marks = rt::PickleStack<size_t>;

  Node* none() { return make(Node::Kind::kNone); }
  Node* boolean(bool value) { return number(Node::Kind::kBool, value); }
  Node* integer(int64_t value) { return number(Node::Kind::kInt, value); }
  // The reader calls this for integers of more than 8 bytes only.
  Node* long_integer(std::string_view bytes) {
    const bool negative = bytes.back() & 0x80;
    while (bytes.size() > 9) {
      if (bytes.back() != (negative ? '\xff' : '\0')) refuse("an integer beyond 64 bits");
      bytes.remove_suffix(1);
    }
    if (bytes.back() != '\0') refuse("an integer beyond 64 bits");
    int64_t value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return number(Node::Kind::kUnsigned, value);
  }
  Node* real(double value) {
    Node* node = make(Node::Kind::kFloat);
    node->real = value;
    return node;
  }
  Node* text(std::string_view bytes) { return view(Node::Kind::kText, bytes); }
  Node* bytes(std::string_view bytes) { return view(Node::Kind::kBytes, bytes); }
  Node* byte_array(std::string_view bytes) { return view(Node::Kind::kBytes, bytes); }
  Node* tuple(Node** items, size_t count) {
    Node* node = list();
    append(node, items, count);
    return node;
  }
  Node* list() { return make(Node::Kind::kList); }
  Node* dict() { return make(Node::Kind::kDict); }
  bool append(Node* list, Node** items, size_t count) {
    return extend(Node::Kind::kList, list, items, count);
  }
  bool set_items(Node* dict, Node** items, size_t count) {
    return extend(Node::Kind::kDict, dict, items, count);
  }
  bool memoize(Node* node) {
    memo_.push_back(node);
    return true;
  }
  bool put(uint32_t index, Node* node) {
    if (index > memo_.size()) return false;
    if (index == memo_.size()) return memoize(node);
    memo_[index] = node;
    return true;
  }
  Node* get(uint32_t index) { return index < memo_.size() ? memo_[index] : nullptr; }
  [[noreturn]] void unknown(uint8_t opcode) {
    refuse(opcode == rt::pickle::kEmptySet ? "a set"
                                           : "an object of a Python class, a set or a reference");
  }
  void drop(Node*) {}

 private:
  Node* make(Node::Kind kind) {
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    return &node;
  }
  Node* number(Node::Kind kind, int64_t value) {
    Node* node = make(kind);
    node->number = value;
    return node;
  }
  Node* view(Node::Kind kind, std::string_view bytes) {
    Node* node = make(kind);
    node->bytes = bytes;
    return node;
  }
  static bool extend(Node::Kind kind, Node* container, Node** items, size_t count) {
    if (container->kind != kind) return false;
    container->items.insert(container->items.end(), items, items + count);
    return true;
  }

  std::deque<Node> nodes_;
  std::vector<Node*> memo_;
};

class Packer {
 public:
  explicit Packer(std::string& out) : out_(out), writer_{out}, packer_(writer_) {}

  void pack(const Node& node, int depth = 0) {
    if (depth > kMaxDepth) refuse("containers that are too deep or hold themselves");
    if (out_.size() > kMaxBytes) refuse("more than 1 GiB of data");
    using Kind = Node::Kind;
    switch (node.kind) {
      case Kind::kNone: packer_.pack_nil(); return;
      case Kind::kBool: packer_.pack(node.number != 0); return;
      case Kind::kInt: packer_.pack(node.number); return;
      case Kind::kUnsigned: packer_.pack(static_cast<uint64_t>(node.number)); return;
      case Kind::kFloat: packer_.pack(node.real); return;
      case Kind::kText:
        packer_.pack_str(size_of(node));
        packer_.pack_str_body(node.bytes.data(), size_of(node));
        return;
      case Kind::kBytes:
        packer_.pack_bin(size_of(node));
        packer_.pack_bin_body(node.bytes.data(), size_of(node));
        return;
      case Kind::kList: packer_.pack_array(static_cast<uint32_t>(node.items.size())); break;
      case Kind::kDict: packer_.pack_map(static_cast<uint32_t>(node.items.size() / 2)); break;
    }
    for (const Node* item : node.items) pack(*item, depth + 1);
  }

 private:
  static uint32_t size_of(const Node& node) {
    if (node.bytes.size() > UINT32_MAX) refuse("more than 4 GiB of text or bytes");
    return static_cast<uint32_t>(node.bytes.size());
  }

  std::string& out_;
  StringWriter writer_;
  msgpack::packer<StringWriter> packer_;
};

}  // namespace

std::string msgpack_of_pickle(std::string_view pickle) {
  // The binding stores a list that holds nothing but ObjectRefs without pickling it.
  if (pickle.empty() || static_cast<uint8_t>(pickle[0]) != 0x80) refuse("ObjectRefs");
  NodeBuilder builder;
  const Node* value = rt::PickleReader<NodeBuilder>(rt::as_bytes(pickle), builder).read();
  if (value == nullptr) malformed();
  std::string out;
  Packer(out).pack(*value);
  return out;
}

}  // namespace ray::internal
