// Tells the profiler (observability/profile) how to read Python's frames.
#pragma once

namespace rt::python {

// To be called once, with the GIL.
void offer_python_frames();

}  // namespace rt::python
