// Python's frames for profiles (common/profile).
#pragma once

namespace rt::python {

// Once, with the GIL.
void offer_python_frames();

}  // namespace rt::python
