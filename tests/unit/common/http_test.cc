// HTTP requests of real clients to a server on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "common/base/utf8.h"
#include "common/http/access.h"
#include "common/http/server.h"
#include "common/net/asio_loop.h"
#include "common/net/sockets.h"

namespace rt::http {
namespace {

using testing::HasSubstr;

class HttpTest : public testing::Test {
 protected:
  void begin(ServerOptions options = {.token = "secret"}) {
    server = std::make_unique<Server>(loop, std::move(options));
    server->on("GET", "/open", [](Call& call) { text(call.response, 200, "for all"); }, Access::kOpen);
    server->on("GET", "/items/([^/]+)", [](Call& call) { text(call.response, 200, call.parts[0] + " " + call.query("n", "none")); });
    server->on("POST", "/echo", [](Call& call) { json(call.response, 200, call.request.body); });
    server->on("GET", "/raises", [](Call&) { throw std::runtime_error("of the handler"); });
    server->on("GET", "/long", [this](Call& call) {
      call.response.set_chunked_content_provider("text/plain", [this](size_t, httplib::DataSink& sink) {
        ++pieces;
        return sink.write("piece\n", 6) && !Server::ending();
      });
    });
    server->on_websocket("/talk/([a-z]+)", [](Call& call) { if (call.parts[0] == "nobody") text(call.response, 404, "no such one"); },
                         [this](net::WebSocket& socket, const Call& call) {
                           socket.send_text("hello " + call.parts[0] + "\xff");
                           while (socket.wait(10)) ++waits;
                           ++ended;
                         });
    auto fd = net::listen_on(net::Address::tcp("127.0.0.1", 0));
    ASSERT_TRUE(fd);
    ASSERT_TRUE(server->listen_fd(*fd));
    port = server->port();
    thread = std::thread([this] { loop.run(); });
  }
  void TearDown() override {
    if (!thread.joinable()) return;
    loop.post([this] {
      server.reset();
      loop.stop();
    });
    thread.join();
  }
  httplib::Client client() {
    httplib::Client made("127.0.0.1", port);
    made.set_default_headers({{"Authorization", "Bearer secret"}});
    return made;
  }
  int raw() {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    net::SockAddr address;
    net::literal_sockaddr("127.0.0.1", port, address);
    EXPECT_EQ(::connect(fd, address.get(), address.size), 0);
    timeval limit{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
  }
  // What arrives until `end` was seen, or the connection ends.
  static std::string read_until(int fd, const std::string& end) {
    std::string got;
    char byte;
    while (got.find(end) == std::string::npos && ::recv(fd, &byte, 1, 0) == 1) got += byte;
    return got;
  }

  net::AsioLoop loop;
  std::unique_ptr<Server> server;
  std::thread thread;
  int port = 0;
  std::atomic<int> pieces{0}, waits{0}, ended{0};
};

TEST_F(HttpTest, RoutesByMethodAndPath) {
  begin();
  auto http = client();
  EXPECT_EQ(http.Get("/items/a%20b?n=3")->body, "a b 3");
  EXPECT_EQ(http.Get("/items/x")->body, "x none");
  EXPECT_EQ(http.Head("/items/x")->status, 200);
  EXPECT_EQ(http.Get("/items/x/y")->status, 404);
  EXPECT_EQ(http.Post("/items/x", "", "text/plain")->status, 405);
  EXPECT_EQ(http.Get("/echo")->status, 405);
  EXPECT_EQ(http.Post("/echo", "{\"a\": 1}", "application/json")->body, "{\"a\": 1}");
  auto raised = http.Get("/raises");
  EXPECT_EQ(raised->status, 500);
  EXPECT_THAT(raised->body, HasSubstr("of the handler"));
}

TEST_F(HttpTest, TheTokenIsTakenFromThreePlaces) {
  begin();
  httplib::Client http("127.0.0.1", port);
  EXPECT_EQ(http.Get("/open")->body, "for all");
  auto missing = http.Get("/items/x");
  EXPECT_EQ(missing->status, 401);
  EXPECT_EQ(missing->body, "Unauthorized: Missing authentication token");
  EXPECT_EQ(http.Get("/no/such")->status, 401);
  for (const char* wrong : {"Bearer other", "secret", "Bearer ", "Bearer secretsecret", "Basic secret"}) {
    auto refused = http.Get("/items/x", {{"Authorization", wrong}});
    EXPECT_EQ(refused->status, 403) << wrong;
    EXPECT_EQ(refused->body, "Forbidden: Invalid authentication token");
  }
  EXPECT_EQ(http.Get("/items/x", {{"X-Ray-Authorization", "Bearer secret"}})->status, 200);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "a=b; ray-authentication-token=secret; c=d"}})->status, 200);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "ray-authentication-token=no"}})->status, 403);
  EXPECT_EQ(http.Get("/items/x", {{"Cookie", "xray-authentication-token=secret"}})->status, 401);
}

TEST_F(HttpTest, WithoutATokenEverybodyMayAsk) {
  begin({});
  EXPECT_EQ(httplib::Client("127.0.0.1", port).Get("/items/x")->status, 200);
}

TEST_F(HttpTest, BrowsersReadAndActForNobodyElse) {
  begin();
  auto http = client();
  EXPECT_EQ(http.Get("/items/x", {{"User-Agent", "Mozilla/5.0"}})->status, 200);
  auto refused = http.Post("/echo", httplib::Headers{{"User-Agent", "Mozilla/5.0"}}, "{}", "application/json");
  EXPECT_EQ(refused->status, 405);
  EXPECT_EQ(refused->body, "'POST' method not allowed for browser traffic.");
  EXPECT_EQ(http.Post("/echo", httplib::Headers{{"Origin", "http://other"}}, "{}", "application/json")->status, 405);
  EXPECT_EQ(http.Get("/items/x", {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "no-cors"}})->status, 403);
  EXPECT_EQ(http.Get("/items/x", {{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Mode", "cors"}})->status, 200);
}

TEST_F(HttpTest, ConnectionsAreKeptAndLimitsHold) {
  begin({.max_body_bytes = 1000});
  auto http = client();
  http.set_keep_alive(true);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(http.Get("/open")->status, 200);
  EXPECT_EQ(http.Post("/echo", std::string(1000, 'x'), "text/plain")->status, 200);
  EXPECT_EQ(client().Post("/echo", std::string(1001, 'x'), "text/plain")->status, 413);
  int fd = raw();
  std::string head = "GET /open HTTP/1.1\r\nX: " + std::string(70'000, 'x');
  ::send(fd, head.data(), head.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr("431"));
  ::close(fd);
  fd = raw();
  ::send(fd, "nonsense\r\n\r\n", 12, MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr("400"));
  ::close(fd);
  fd = raw();   // two requests at once
  std::string two = "GET /open HTTP/1.1\r\n\r\nGET /items/x HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n";
  ::send(fd, two.data(), two.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "x none"), HasSubstr("for all"));
  ::close(fd);
}

TEST_F(HttpTest, MoreConnectionsThanThreadsWaitTheirTurn) {
  begin({.max_connections = 2, .idle_timeout_ms = 200});
  int first = raw(), second = raw();
  httplib::Client http("127.0.0.1", port);
  EXPECT_EQ(http.Get("/open")->status, 200);       // once one of the silent ones was given up
  ::close(first);
  ::close(second);
}

TEST_F(HttpTest, AnswersWithoutEndStopWithTheReader) {
  begin();
  auto http = client();
  size_t got = 0;
  http.Get("/long", [&](const char*, size_t n) { return (got += n) < 1000; });
  EXPECT_GE(got, 1000u);
}

TEST_F(HttpTest, TheServerEndsUnderOpenConnections) {
  begin();
  int silent = raw(), listening = raw();
  ::send(listening, "GET /long HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n", 53, MSG_NOSIGNAL);
  read_until(listening, "piece");
  TearDown();
  std::string rest = read_until(listening, "never");
  EXPECT_EQ(read_until(silent, "x"), "");
  ::close(silent);
  ::close(listening);
}

std::string handshake(const std::string& path, const std::string& token = "secret") {
  return "GET " + path + " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
         "Authorization: Bearer " + token + "\r\n\r\n";
}

TEST_F(HttpTest, WebSocketsTalkUntilTheOtherSideCloses) {
  begin();
  int fd = raw();
  std::string hello = handshake("/talk/you");
  ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n\r\n"), testing::AllOf(HasSubstr("101"), HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
  EXPECT_THAT(read_until(fd, "\xbf\xbd"), HasSubstr("hello you\xef\xbf\xbd"));
  const unsigned char close_frame[] = {0x88, 0x80, 1, 2, 3, 4};      // masked, empty
  ::send(fd, close_frame, sizeof close_frame, MSG_NOSIGNAL);
  read_until(fd, "never");                                           // its close frame, then the end
  for (int i = 0; i < 2000 && ended == 0; ++i) ::poll(nullptr, 0, 5);
  EXPECT_EQ(ended, 1);
  ::close(fd);
}

TEST_F(HttpTest, WebSocketsAreRefusedBeforeTheyBegin) {
  begin();
  for (auto [path, token, status] : {std::tuple("/talk/nobody", "secret", "404"), std::tuple("/talk/you", "wrong", "403"), std::tuple("/open", "secret", "405"),
                                     std::tuple("/nowhere", "secret", "404")}) {
    int fd = raw();
    std::string hello = handshake(path, token);
    ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr(status)) << path;
    ::close(fd);
  }
  EXPECT_EQ(client().Get("/talk/you")->status, 405);
}

TEST(Utf8, OnlyWholeCharactersStay) {
  EXPECT_EQ(valid_utf8("plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const char* bad : {"\xff", "\xc0", "\xc3", "\x80", "\xed"}) EXPECT_EQ(valid_utf8(bad), "\xef\xbf\xbd") << bad;
  EXPECT_EQ(valid_utf8("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");      // a surrogate
  size_t tail = 9;
  EXPECT_EQ(valid_utf8("ab\xe2\x82", &tail), "ab");
  EXPECT_EQ(tail, 2u);
  EXPECT_EQ(valid_utf8("ab\xff", &tail), "ab\xef\xbf\xbd");
  EXPECT_EQ(tail, 0u);
}

TEST(Secret, OnlyTheSameIsTheSame) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "abcabc"}) {
    EXPECT_FALSE(same_secret(other, "abc")) << other;
    EXPECT_FALSE(same_secret("abc", other)) << other;
  }
}

}  // namespace
}  // namespace rt::http
