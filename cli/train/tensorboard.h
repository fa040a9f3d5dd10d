// TensorBoard as a program that a command runs in the foreground.
#pragma once

#include <functional>
#include <string>

#include "common/base/status.h"

namespace rt::cli {

// The Python interpreter that has TensorBoard and its plug-in for profiles of PyTorch: `wanted`, or
// if that is empty the one of the `tensorboard` on PATH, or else python3. kNotFound, with the
// command that installs what is missing, if it lacks one of them.
Result<std::string> tensorboard_python(const std::string& wanted);

struct TensorBoard {
  std::string python, logdir;
  std::string host;  // Where to listen; empty: TensorBoard's default, which is this machine only.
  int port = 0;      // 0: TensorBoard's usual port, or the next free one.
  // Called with the URL once TensorBoard answers there, and again at least every `repeat_ms`.
  std::function<void(const std::string& url)> shown;
  int64_t repeat_ms = 10'000;
};

// Runs TensorBoard until SIGINT, SIGTERM or SIGHUP, and ends it. Its messages go to stderr. Fails
// if it cannot be started or ends by itself. TensorBoard ends with this process, however it ends.
Status run_tensorboard(const TensorBoard& wanted);

// The URL in a line of TensorBoard's output that says where it is; empty if the line does not.
std::string tensorboard_url(const std::string& line);

}  // namespace rt::cli
