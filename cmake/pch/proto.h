// Precompiled header: base.h and the generated messages.
#include "cmake/pch/base.h"
#include "common/proto/common.pb.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/object_store.pb.h"
#include "common/proto/rpc.pb.h"
#include "common/proto/worker.pb.h"
