// The connections of the HTTP server: how many there are, how they end, and WebSockets.
#include "http_fixture.h"

namespace rt::http {
namespace {

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
  fd = raw();  // Two requests arrive in one piece.
  std::string two =
      "GET /open HTTP/1.1\r\n\r\nGET /items/x HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n";
  ::send(fd, two.data(), two.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "x none"), HasSubstr("for all"));
  ::close(fd);
}

TEST_F(HttpTest, MoreConnectionsThanThreadsWaitTheirTurn) {
  begin({.max_connections = 2, .idle_timeout_ms = 200});
  int first = raw(), second = raw();
  httplib::Client http = plain_client();
  // The server answers when a silent connection has timed out.
  EXPECT_EQ(http.Get("/open")->status, 200);
  ::close(first);
  ::close(second);
}

TEST_F(HttpTest, AConnectionWithoutAThreadIsRefused) {
  std::atomic<bool> exhausted{true};
  begin({.token = "secret",
         .max_connections = 1,
         .start_thread = [&](std::function<void()> work) -> Result<std::thread> {
           if (exhausted)
             return {boost::system::in_place_error,
                     make_error(Code::kResourceExhausted, "no more threads")};
           return start_thread(std::move(work));
         }});
  for (int i = 0; i < 2; ++i) {
    const int fd = raw();
    const std::string answer = read_until(fd, "never");
    EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, testing::EndsWith("503: no more threads"));
    ::close(fd);
  }
  // Its place is free again, and the loop goes on.
  exhausted = false;
  EXPECT_EQ(client().Get("/items/x")->body, "x none");
}

TEST_F(HttpTest, UnauthenticatedConnectionsDoNotBlockClients) {
  begin({.token = "secret",
         .max_connections = 3,
         .idle_timeout_ms = 600'000,
         .io_timeout_ms = 600'000});
  int known = raw();
  const std::string question = "GET /items/x HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n",
                    beginning = question.substr(0, 30);
  ::send(known, question.data(), question.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(known, "x none"), HasSubstr("200 OK"));
  std::vector<int> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(raw());
    if (i % 2 == 0) ::send(strangers.back(), beginning.data(), beginning.size(), MSG_NOSIGNAL);
  }
  auto answer = client().Get("/items/x");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "x none");
  ::send(known, question.data(), question.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(known, "x none"), HasSubstr("200 OK"))
      << "one that had shown the token was closed";
  for (int fd : strangers) ::close(fd);
  ::close(known);
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

TEST_F(HttpTest, WebSocketsTalkUntilTheOtherSideCloses) {
  begin();
  int fd = raw();
  std::string hello = handshake("/talk/you");
  ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "\r\n\r\n"),
              testing::AllOf(HasSubstr("101"), HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
  EXPECT_THAT(read_until(fd, "\xbf\xbd"), HasSubstr("hello you\xef\xbf\xbd"));
  // The frame is masked and has no body.
  const unsigned char close_frame[] = {0x88, 0x80, 1, 2, 3, 4};
  ::send(fd, close_frame, sizeof close_frame, MSG_NOSIGNAL);
  read_until(fd, "never");  // The server answers with its own close frame and closes.
  for (int i = 0; i < 2000 && ended == 0; ++i) ::poll(nullptr, 0, 5);
  EXPECT_EQ(ended, 1);
  ::close(fd);
}

TEST_F(HttpTest, AWebSocketThatIsBrokenOffHasNoClosingFrame) {
  begin();
  const std::string closing_frame = "\x88\x02\x03\xe8";  // Status 1000: normal.
  for (const char* path : {"/breaks-off", "/raises/late"})
    EXPECT_THAT(exchange(handshake(path)),
                testing::AllOf(HasSubstr("101"), Not(HasSubstr(closing_frame))))
        << path;
  EXPECT_THAT(exchange(handshake("/breaks-off")), HasSubstr("a part"));
}

TEST_F(HttpTest, AWebSocketReadsWhatCameWithTheHandshake) {
  begin();
  int fd = raw();
  const unsigned char close_frame[] = {0x88, 0x80, 1, 2, 3, 4};
  const std::string both =
      handshake("/talk/you") + std::string(reinterpret_cast<const char*>(close_frame), 6);
  ::send(fd, both.data(), both.size(), MSG_NOSIGNAL);
  EXPECT_THAT(read_until(fd, "never"), HasSubstr("101"));
  for (int i = 0; i < 2000 && ended == 0; ++i) ::poll(nullptr, 0, 5);
  EXPECT_EQ(ended, 1);
  ::close(fd);
}

TEST_F(HttpTest, WebSocketsAreRefusedBeforeTheyBegin) {
  begin();
  for (auto [path, token, status] :
       {std::tuple("/talk/nobody", "secret", "404"), std::tuple("/talk/you", "wrong", "403"),
        std::tuple("/open", "secret", "405"), std::tuple("/nowhere", "secret", "404")}) {
    int fd = raw();
    std::string hello = handshake(path, token);
    ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    EXPECT_THAT(read_until(fd, "\r\n"), HasSubstr(status)) << path;
    ::close(fd);
  }
  EXPECT_EQ(client().Get("/talk/you")->status, 405);
}

TEST_F(HttpTest, AWebSocketWhoseHandlerFailsEndsAlone) {
  begin();
  for (auto [path, answer] : {std::pair("/raises/early", "500"), std::pair("/raises/late", "101")})
    EXPECT_THAT(exchange(handshake(path)), HasSubstr(answer)) << path;
  EXPECT_EQ(client().Get("/items/x")->body, "x none");
}

}  // namespace
}  // namespace rt::http
