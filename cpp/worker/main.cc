// ray-cpp-worker runs C++ remote functions. The node-manager starts it.
#include "ray/api/visibility.h"

namespace ray::internal {
RAY_API int WorkerMain(int argc, char** argv);  // Defined in src/worker_main.cc.
}

int main(int argc, char** argv) { return ray::internal::WorkerMain(argc, argv); }
