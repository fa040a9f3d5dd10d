// Values as msgpack. User types take part with MSGPACK_DEFINE(fields...), enums with
// MSGPACK_ADD_ENUM(type).
#pragma once

#include <any>
#include <cstdint>
#include <msgpack.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "ray/api/exceptions.h"
#include "ray/api/runtime.h"

namespace ray {
namespace internal {

RAY_API std::string DemangledName(const char* name);

struct StringWriter {
  std::string& out;
  void write(const char* data, std::size_t size) { out.append(data, size); }
};

template <class T>
EncodedValue Encode(const T& value) {
  EncodedValue out;
  StringWriter writer{out.bytes};
  if constexpr (std::is_arithmetic<T>::value || std::is_same<T, std::string>::value) {
    msgpack::pack(writer, value);
  } else {
    PackScope scope(out);  // Notes the references inside.
    msgpack::pack(writer, value);
  }
  return out;
}

// Throws RayException when the bytes do not encode a T.
template <class T>
T Decode(const StoredValue& value) {
  try {
    if (value.format == ValueFormat::kMsgpack) {
      // Strings and byte vectors are read in place, as the value outlives the conversion.
      auto in_place = [](msgpack::type::object_type, std::size_t, void*) { return true; };
      msgpack::object_handle handle = msgpack::unpack(value.data, value.size, in_place);
      return handle.get().template as<T>();
    }
    msgpack::object object;
    if (value.format == ValueFormat::kRaw) {
      if (value.size > UINT32_MAX)
        throw RayException("C++ cannot read more than 2**32 - 1 bytes as one value.");
      object.type = msgpack::type::BIN;
      object.via.bin.ptr = value.data;
      object.via.bin.size = static_cast<uint32_t>(value.size);
    }
    return object.template as<T>();
  } catch (const msgpack::type_error&) {
    throw RayException("The value cannot be read as " + DemangledName(typeid(T).name()) +
                       ": it was stored as another type.");
  } catch (const msgpack::unpack_error& error) {
    throw RayException("The value cannot be read as " + DemangledName(typeid(T).name()) +
                       ": it is not msgpack (" + error.what() + ").");
  }
}

}  // namespace internal
}  // namespace ray

namespace msgpack {
MSGPACK_API_VERSION_NAMESPACE(MSGPACK_DEFAULT_API_NS) {
  namespace adaptor {

  // A std::any is read as nil (empty), bool, uint64_t, int64_t, double, std::string or
  // std::vector<char>. Vectors of char and of unsigned char can be sent. A positive integer
  // arrives as uint64_t whatever its type was, because msgpack does not keep that.
  template <>
  struct pack<std::any> {
    template <class Stream>
    msgpack::packer<Stream>& operator()(msgpack::packer<Stream>& packer,
                                        const std::any& value) const {
      if (!value.has_value()) return packer.pack_nil();
      if (auto* v = std::any_cast<bool>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<uint64_t>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<int64_t>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<unsigned>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<int>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<double>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<float>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<std::string>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<const char*>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<std::vector<char>>(&value)) return packer.pack(*v);
      if (auto* v = std::any_cast<std::vector<unsigned char>>(&value)) return packer.pack(*v);
      throw msgpack::type_error();
    }
  };

  template <>
  struct convert<std::any> {
    const msgpack::object& operator()(const msgpack::object& object, std::any& value) const {
      switch (object.type) {
        case msgpack::type::NIL: value.reset(); break;
        case msgpack::type::BOOLEAN: value = object.via.boolean; break;
        case msgpack::type::POSITIVE_INTEGER: value = object.via.u64; break;
        case msgpack::type::NEGATIVE_INTEGER: value = object.via.i64; break;
        case msgpack::type::FLOAT32:
        case msgpack::type::FLOAT64: value = object.via.f64; break;
        case msgpack::type::STR:
          value = std::string(object.via.str.ptr, object.via.str.size);
          break;
        case msgpack::type::BIN:
          value = std::vector<char>(object.via.bin.ptr, object.via.bin.ptr + object.via.bin.size);
          break;
        default: throw msgpack::type_error();
      }
      return object;
    }
  };

  }  // namespace adaptor
}  // MSGPACK_API_VERSION_NAMESPACE
}  // namespace msgpack
