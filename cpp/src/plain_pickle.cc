#include "plain_pickle.h"

#include <fmt/core.h>

#include <cstring>
#include <deque>
#include <msgpack.hpp>
#include <vector>

#include "ray/api/exceptions.h"
#include "ray/api/serializer.h"

namespace ray::internal {
namespace {

constexpr int kMaxDepth = 200;
// Limit of the result: a pickle may refer to one large part many times.
constexpr size_t kMaxBytes = size_t{1} << 30;

[[noreturn]] void refuse(const std::string& what) {
  throw RayException(
      "The value was stored by Python and holds " + what +
      ": C++ reads None, bool, int, float, str, bytes, list, tuple and dict. Pass such values.");
}
[[noreturn]] void malformed() {
  throw RayException("The value was stored by Python and is damaged.");
}

struct Node {
  enum class Kind { kNone, kBool, kInt, kUnsigned, kFloat, kText, kBytes, kList, kDict, kMark };
  Kind kind = Kind::kNone;
  int64_t number = 0;  // The value; for kUnsigned its bits.
  double real = 0;
  std::string_view bytes;
  std::vector<const Node*> items;  // For dicts: key, value, key, value, and so on.
};

class Unpickler {
 public:
  explicit Unpickler(std::string_view in) : in_(in) {}

  const Node& run() {
    for (;;) {
      auto opcode = number<uint8_t>();
      if (opcode == '.') return *pop();
      step(opcode);
    }
  }

 private:
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(uint64_t size) {
    if (size > in_.size()) malformed();
    std::string_view bytes = in_.substr(0, size);
    in_.remove_prefix(size);
    return bytes;
  }
  Node& make(Node::Kind kind) {
    nodes_.emplace_back().kind = kind;
    stack_.push_back(&nodes_.back());
    return nodes_.back();
  }
  Node* pop() {
    if (stack_.empty()) malformed();
    Node* node = stack_.back();
    stack_.pop_back();
    return node;
  }
  Node* top(Node::Kind kind) {
    if (stack_.empty() || stack_.back()->kind != kind) malformed();
    return stack_.back();
  }
  // Pops what was pushed since the last mark.
  std::vector<const Node*> pop_to_mark() {
    size_t at = stack_.size();
    while (at > 0 && stack_[at - 1]->kind != Node::Kind::kMark) --at;
    if (at == 0) malformed();
    std::vector<const Node*> items(stack_.begin() + static_cast<ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return items;
  }
  void tuple(size_t size) {
    std::vector<const Node*> items(size);
    while (size > 0) items[--size] = pop();
    make(Node::Kind::kList).items = std::move(items);
  }
  void extend(Node::Kind kind, const std::vector<const Node*>& items) {
    Node* container = top(kind);
    if (kind == Node::Kind::kDict && items.size() % 2) malformed();
    container->items.insert(container->items.end(), items.begin(), items.end());
  }
  void text(Node::Kind kind, uint64_t size) { make(kind).bytes = take(size); }
  void integer(int64_t value) { make(Node::Kind::kInt).number = value; }
  // Reads a little-endian two's complement number of any length.
  void long_integer(uint64_t size) {
    std::string_view bytes = take(size);
    bool negative = !bytes.empty() && (bytes.back() & 0x80);
    while (bytes.size() > 9) {
      if (bytes.back() != (negative ? '\xff' : '\0')) refuse("an integer beyond 64 bits");
      bytes.remove_suffix(1);
    }
    if (bytes.size() == 9 && bytes.back() != '\0') refuse("an integer beyond 64 bits");
    uint64_t value = negative ? ~uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), 8));
    make(bytes.size() == 9 ? Node::Kind::kUnsigned : Node::Kind::kInt).number =
        static_cast<int64_t>(value);
  }
  void real() {
    auto bits = __builtin_bswap64(number<uint64_t>());
    std::memcpy(&make(Node::Kind::kFloat).real, &bits, sizeof bits);
  }
  void remember(uint32_t index) {
    if (stack_.empty() || index > memo_.size()) malformed();
    if (index == memo_.size()) memo_.emplace_back();
    memo_[index] = stack_.back();
  }
  void recall(uint32_t index) {
    if (index >= memo_.size()) malformed();
    stack_.push_back(memo_[index]);
  }

  void step(uint8_t opcode) {
    using Kind = Node::Kind;
    switch (opcode) {
      case 0x80: take(1); return;  // PROTO
      case 0x95: take(8); return;  // FRAME
      case 'N': make(Kind::kNone); return;
      case 0x88: make(Kind::kBool).number = 1; return;
      case 0x89: make(Kind::kBool); return;
      case 'J': integer(number<int32_t>()); return;
      case 'K': integer(number<uint8_t>()); return;
      case 'M': integer(number<uint16_t>()); return;
      case 0x8a: long_integer(number<uint8_t>()); return;
      case 0x8b: long_integer(number<uint32_t>()); return;
      case 'G': real(); return;
      case 0x8c: text(Kind::kText, number<uint8_t>()); return;
      case 'X': text(Kind::kText, number<uint32_t>()); return;
      case 0x8d: text(Kind::kText, number<uint64_t>()); return;
      case 'C': text(Kind::kBytes, number<uint8_t>()); return;
      case 'B': text(Kind::kBytes, number<uint32_t>()); return;
      case 0x8e:
      case 0x96: text(Kind::kBytes, number<uint64_t>()); return;  // BINBYTES8, BYTEARRAY8
      case ']':
      case ')': make(Kind::kList); return;
      case '}': make(Kind::kDict); return;
      case '(': make(Kind::kMark); return;
      case 't': {
        auto items = pop_to_mark();
        make(Kind::kList).items = std::move(items);
        return;
      }
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 'a': {
        const Node* item = pop();
        return extend(Kind::kList, {item});
      }
      case 'e': {
        auto items = pop_to_mark();
        return extend(Kind::kList, items);
      }
      case 's': {
        const Node* item = pop();
        const Node* key = pop();
        return extend(Kind::kDict, {key, item});
      }
      case 'u': {
        auto items = pop_to_mark();
        return extend(Kind::kDict, items);
      }
      case 0x94: return remember(static_cast<uint32_t>(memo_.size()));
      case 'q': return remember(number<uint8_t>());
      case 'r': return remember(number<uint32_t>());
      case 'h': return recall(number<uint8_t>());
      case 'j': return recall(number<uint32_t>());
      case 0x8f: refuse("a set");
      default: refuse("an object of a Python class, a set or a reference");
    }
  }

  std::string_view in_;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_, memo_;
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
      case Kind::kMark: malformed();
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
  if (pickle.empty() || static_cast<uint8_t>(pickle[0]) != 0x80)
    refuse("references");  // An array of references only is no pickle.
  Unpickler unpickler(pickle);
  std::string out;
  Packer(out).pack(unpickler.run());
  return out;
}

}  // namespace ray::internal
