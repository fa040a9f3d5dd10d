// Reads the frames of the interrupted thread's own Python code in a signal handler: without the
// GIL, which that thread may hold, wait for, or not have. Every read goes through the kernel,
// because the memory may be half changed; a wrong address ends the stack. The profile's thread
// reads code objects in the same way: one that was freed in the meantime is no code object any
// more, and its name then says so.
//
// The layout is that of the Python version this is compiled for, as its internal headers define
// it.
#include "python/binding/python_frames.h"

#include "python/binding/py.h"

// The interpreter's internal headers are written for C.
#define Py_BUILD_CORE 1
#undef HAVE_STD_ATOMIC
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <unordered_map>

#include "observability/profile/language.h"
#include "observability/profile/memory.h"

namespace rt::python {
namespace {

using profile::FrameName;
using profile::LanguageFrame;
using profile::read_memory;

constexpr size_t kMaxName = 400, kMaxLineTable = 64 << 10;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

#if PY_VERSION_HEX >= 0x030B0000
using Frame = _PyInterpreterFrame;
// The part of a frame in front of its variables.
constexpr size_t kFrameHead = offsetof(_PyInterpreterFrame, localsplus);

uint64_t innermost(const PyThreadState& thread) {
#if PY_VERSION_HEX >= 0x030D0000
  return address_of(thread.current_frame);
#else
  const _PyCFrame* evaluator = thread.cframe;
  _PyCFrame copy;
  return read_memory(address_of(evaluator), &copy) ? address_of(copy.current_frame) : 0;
#endif
}

bool stands_for_c(const Frame& frame) {
#if PY_VERSION_HEX >= 0x030C0000
  // There is one below the frames of each evaluator.
  return frame.owner == FRAME_OWNED_BY_CSTACK;
#else
  (void)frame;
  return false;
#endif
}

LanguageFrame described(const Frame& frame) {
#if PY_VERSION_HEX >= 0x030D0000
  return {address_of(frame.f_executable), address_of(frame.instr_ptr), false};
#elif PY_VERSION_HEX >= 0x030C0000
  return {address_of(frame.f_code), address_of(frame.prev_instr), false};
#else
  return {address_of(frame.f_code), address_of(frame.prev_instr), frame.is_entry};
#endif
}
uint64_t caller(const Frame& frame) { return address_of(frame.previous); }
#else
using Frame = PyFrameObject;
constexpr size_t kFrameHead = offsetof(PyFrameObject, f_localsplus);

uint64_t innermost(const PyThreadState& thread) { return address_of(thread.frame); }
bool stands_for_c(const Frame&) { return false; }
// The instruction is a number here, and each frame has an evaluator of its own.
LanguageFrame described(const Frame& frame) {
  return {address_of(frame.f_code), static_cast<uint64_t>(static_cast<int64_t>(frame.f_lasti)),
          true};
}
uint64_t caller(const Frame& frame) { return address_of(frame.f_back); }
#endif

// Runs in a signal handler. The state of the thread is a thread-local of CPython, so reading it
// takes no lock.
size_t capture(LanguageFrame* out, size_t capacity) noexcept {
  PyThreadState* state = PyGILState_GetThisThreadState();
  PyThreadState thread;
  if (!state || !read_memory(address_of(state), &thread)) return 0;
  size_t count = 0;
  alignas(Frame) std::byte head[sizeof(Frame)] = {};
  for (uint64_t at = innermost(thread); at != 0 && count < capacity;) {
    if (!read_memory(at, head, kFrameHead)) break;
    const auto& frame = *reinterpret_cast<const Frame*>(head);
    if (stands_for_c(frame)) {
      if (count > 0) out[count - 1].entry = true;
    } else {
      out[count] = described(frame);
      if (out[count].code == 0) break;
      ++count;
    }
    at = caller(frame);
  }
  return count;
}

// The UTF-8 of a str object in the compact form, which the names of code have.
std::string text_of(PyObject* object) {
  PyASCIIObject head;
  if (!object || !read_memory(address_of(object), &head) ||
      head.ob_base.ob_type != &PyUnicode_Type || !head.state.compact)
    return "?";
  size_t length =
      std::min<size_t>(static_cast<size_t>(std::max<Py_ssize_t>(head.length, 0)), kMaxName);
  const size_t kind = head.state.kind;
  std::string raw(length * kind, '\0');
  uint64_t data = address_of(object) +
                  (head.state.ascii ? sizeof(PyASCIIObject) : sizeof(PyCompactUnicodeObject));
  if (kind < 1 || kind > 4 || (length > 0 && !read_memory(data, raw.data(), raw.size())))
    return "?";
  if (head.state.ascii) return raw;
  std::string utf8;
  for (size_t i = 0; i < length; ++i) {
    uint32_t c = 0;
    std::memcpy(&c, raw.data() + i * kind, kind);
    if (c < 0x80) {
      utf8 += static_cast<char>(c);
    } else if (c < 0x800) {
      utf8 += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      utf8 += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      utf8 += {static_cast<char>(0xF0 | (c >> 18 & 7)), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
               static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  return utf8;
}

std::string bytes_of(PyObject* object) {
  PyBytesObject head;
  constexpr size_t kHead = offsetof(PyBytesObject, ob_sval);
  if (!object || !read_memory(address_of(object), &head, kHead) ||
      head.ob_base.ob_base.ob_type != &PyBytes_Type)
    return "";
  std::string out(
      std::min<size_t>(static_cast<size_t>(std::max<Py_ssize_t>(head.ob_base.ob_size, 0)),
                       kMaxLineTable),
      '\0');
  if (!out.empty() && !read_memory(address_of(object) + kHead, out.data(), out.size())) return "";
  return out;
}

#if PY_VERSION_HEX >= 0x030B0000
// The table of locations. An entry begins with a byte (1, a kind of 4 bits, the length - 1 in code
// units of 3 bits); the kind says what follows (Objects/locations.md of CPython).
struct Locations {
  const std::string& table;
  size_t at = 0;

  uint32_t byte() { return at < table.size() ? static_cast<unsigned char>(table[at++]) : 0; }
  uint32_t varint() {
    uint32_t value = 0, shift = 0, more = 0x40;
    while (more && shift < 30) {
      uint32_t next = byte();
      value |= (next & 0x3F) << shift;
      more = next & 0x40;
      shift += 6;
    }
    return value;
  }
  int signed_varint() {
    uint32_t value = varint();
    return value & 1 ? -static_cast<int>(value >> 1) : static_cast<int>(value >> 1);
  }
};

int line_at(const PyCodeObject& code, const LanguageFrame& frame) {
  const std::string table = bytes_of(code.co_linetable);
  const uint64_t start = frame.code + offsetof(PyCodeObject, co_code_adaptive);
  // A new frame stands before its first instruction.
  const uint64_t unit =
      frame.instruction > start ? (frame.instruction - start) / sizeof(_Py_CODEUNIT) : 0;
  Locations in{table};
  int line = code.co_firstlineno;
  for (uint64_t covered = 0; in.at < table.size();) {
    uint32_t first = in.byte(), kind = first >> 3 & 15;
    int here = line;
    bool known = true;
    if (kind == 15) {
      known = false;
    } else if (kind == 14) {
      here = line += in.signed_varint();
      in.varint(), in.varint(), in.varint();
    } else if (kind == 13) {
      here = line += in.signed_varint();
    } else if (kind >= 10) {
      here = line += static_cast<int>(kind - 10);
      in.byte(), in.byte();
    } else {
      in.byte();
    }
    covered += (first & 7) + 1;
    if (unit < covered) return known ? here : code.co_firstlineno;
  }
  return code.co_firstlineno;
}

PyObject* name_of(const PyCodeObject& code) { return code.co_qualname; }
constexpr size_t kCodeHead = offsetof(PyCodeObject, co_code_adaptive);
#else
PyObject* name_of(const PyCodeObject& code) { return code.co_name; }
constexpr size_t kCodeHead = sizeof(PyCodeObject);

int line_at(const PyCodeObject& code, const LanguageFrame& frame) {
  int line = code.co_firstlineno;
  const auto instruction = static_cast<int64_t>(frame.instruction);
#if PY_VERSION_HEX >= 0x030A0000
  // Pairs of the number of bytes of code and the difference of their line to that of the pair
  // before; -128 means that they have no line.
  const std::string table = bytes_of(code.co_linetable);
  int64_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    end += static_cast<unsigned char>(table[i]);
    auto delta = static_cast<signed char>(table[i + 1]);
    if (delta != -128) line += delta;
    if (instruction * 2 < end) return line;
  }
#else
  const std::string table = bytes_of(code.co_lnotab);
  int64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += static_cast<unsigned char>(table[i]);
    if (address > instruction) break;
    line += static_cast<signed char>(table[i + 1]);
  }
#endif
  return line;
}
#endif

class PythonSymbols final : public profile::LanguageSymbols {
 public:
  void resolve(std::span<const LanguageFrame> frames, std::vector<FrameName>* names) override {
    names->clear();
    for (const LanguageFrame& frame : frames) names->push_back(name(frame));
  }

 private:
  struct Known {
    FrameName name;
    // These tell whether the same code is still at its address.
    PyObject* filename = nullptr;
    PyObject* function = nullptr;
    int first_line = 0;
  };

  const FrameName& name(const LanguageFrame& frame) {
    static const FrameName kGone{"[code that is gone]", "", 0};
    alignas(PyCodeObject) std::byte head[sizeof(PyCodeObject)] = {};
    const auto& code = *reinterpret_cast<const PyCodeObject*>(head);
    if (!read_memory(frame.code, head, kCodeHead) ||
        Py_TYPE(reinterpret_cast<PyObject*>(head)) != &PyCode_Type)
      return kGone;
    Known& known = known_[frame.code * 31 + frame.instruction];
    if (known.filename != code.co_filename || known.function != name_of(code) ||
        known.first_line != code.co_firstlineno) {
      known = {{text_of(name_of(code)), text_of(code.co_filename), line_at(code, frame)},
               code.co_filename,
               name_of(code),
               code.co_firstlineno};
    }
    return known.name;
  }
  std::unordered_map<uint64_t, Known> known_;
};

}  // namespace

void offer_python_frames() {
  static const std::string name =
      std::string("Python ") +
      std::string(Py_GetVersion()).substr(0, std::string(Py_GetVersion()).find(' '));
  static const profile::Language python{
      name.c_str(), "_PyEval_EvalFrameDefault", capture,
      [] { return std::unique_ptr<profile::LanguageSymbols>(new PythonSymbols); }};
  profile::set_language(&python);
}

}  // namespace rt::python
