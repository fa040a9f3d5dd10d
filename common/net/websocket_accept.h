// How an HTTP server that parses requests with Boost.Beast begins a WebSocket conversation.
#pragma once

#include <memory>
#include <string>

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>

#include "common/net/websocket.h"

namespace rt::net {

using UpgradeRequest = boost::beast::http::request<boost::beast::http::buffer_body>;

// Answers the handshake; kProtocol when it fails. `rest` is what was received behind the head of
// the request. Each later operation may wait `timeout_ms` as well.
Result<std::unique_ptr<WebSocket>> accept_websocket(std::unique_ptr<Channel> channel,
                                                    const UpgradeRequest& request, std::string rest,
                                                    int64_t timeout_ms);

}  // namespace rt::net
