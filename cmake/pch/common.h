// The precompiled header: the parts of the standard library that the project uses, the third-party
// headers that most files need, and the generated messages.
//
// GCC instantiates the templates that plain inline functions of a header call in each translation
// unit again, even if the precompiled header has them. So headers with many such functions are
// expensive: <filesystem> is left to the files that use it, this guard keeps the special functions
// (Bessel and others) out of <cmath>, and cmake/lighter_headers.cmake and
// common/proto/outline_accessors.py take such functions out of other headers.
#define _GLIBCXX_BITS_SPECFUN_H 1

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/extension_set.h>
#include <google/protobuf/generated_message_reflection.h>
#include <google/protobuf/generated_message_util.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/map.h>
#include <google/protobuf/map_entry.h>
#include <google/protobuf/map_field_inl.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection_ops.h>
#include <google/protobuf/repeated_field.h>
#include <google/protobuf/service.h>
#include <google/protobuf/wire_format.h>
#include <google/protobuf/wire_format_lite.h>
#include <boost/system/result.hpp>
#include <nlohmann/json.hpp>

#include "common/proto/common.pb.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/object_store.pb.h"
#include "common/proto/rpc.pb.h"
#include "common/proto/worker.pb.h"
